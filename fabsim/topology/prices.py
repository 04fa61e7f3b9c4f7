"""A price list: switches, what stands at the ends of cables, and fibre."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SwitchPrice:
    """A switch.

    Attributes:
        name: as in a shop.
        ports: cages.
        speed: bytes per second of each.
        split: into how many slower ports a cage may be split.
        watts: typical, without optics.
        cost: in the currency of the list.
    """

    name: str
    ports: int
    speed: float
    split: int
    watts: float
    cost: float


@dataclass(frozen=True)
class OpticPrice:
    """One end of a cable: a transceiver, or half a copper cable.

    Attributes:
        name: as in a shop.
        speed: bytes per second.
        reach: metres.
        split: how many slower ports of one node it may serve at once.
        pairs: pairs of fibre that leave it; 0 for copper.
        watts, cost: of each end.
    """

    name: str
    speed: float
    reach: float
    split: int
    pairs: int
    watts: float
    cost: float


@dataclass(frozen=True)
class Prices:
    """All of them. `fibre` is the cost of one pair of fibre for a kilometre."""

    currency: str
    switches: tuple[SwitchPrice, ...]
    optics: tuple[OpticPrice, ...]
    fibre: float
