"""What to plug in: the optics at the ports of a node, and the switch whose cages hold them, at least cost.

Optics stand in cages, one in each, and none is faster than its cage. So a switch and its optics are chosen together:
a fast switch with few optics that split may cost less than one with a cage for every port.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from fabsim.topology.prices import OpticPrice, Prices, SwitchPrice

_SAME = 1e-9  # rates that differ by less are the same


@dataclass(frozen=True, order=True)
class Ends:
    """Ends of cables at one node that may share optics.

    Attributes:
        speed: bytes per second of each.
        reach: metres, of the shortest optics in the list that reach; where none do, the length of each cable.
        ports: how many.
        metres: of cable at them, all together.
        copper: whether copper may stand there.
    """

    speed: float
    reach: float
    ports: int
    metres: float
    copper: bool = True


@dataclass(frozen=True)
class Plugged:
    """So many of one part at some ends; `optic` is None where the list has none, though cages are taken."""

    ends: Ends
    optic: OpticPrice | None
    number: int

    @property
    def cost(self) -> float:
        """Without fibre."""
        return self.number * self.optic.cost if self.optic else 0.0


Filled = tuple[Plugged, ...]


def at_nic(all_ends: Sequence[Ends], prices: Prices) -> Filled:
    """The cheapest that reach."""
    return tuple(min(_options(ends, prices), key=lambda option: option.cost) for ends in all_ends)


def at_switch(all_ends: Sequence[Ends], prices: Prices) -> tuple[SwitchPrice | None, Filled]:
    """The cheapest switch with what stands in its cages; where none has cages for all, None, and what is at NICs."""
    able = [(switch, filled) for switch in prices.switches if (filled := _filled(switch, all_ends, prices)) is not None]
    if not able:
        return None, at_nic(all_ends, prices)
    return min(able, key=lambda choice: choice[0].cost + sum(part.cost for part in choice[1]))


def fits(part: SwitchPrice | OpticPrice, speed: float) -> bool:
    """Whether a part is as fast as that."""
    return speed <= part.speed * (1 + _SAME)


def _filled(switch: SwitchPrice, all_ends: Sequence[Ends], prices: Prices) -> Filled | None:
    """The cheapest parts that do in the cages of a switch; None where the cages are too few or too slow."""
    best: dict[int, tuple[float, Filled]] = {0: (0.0, ())}  # by the cages that are taken
    for ends in all_ends:
        grown: dict[int, tuple[float, Filled]] = {}
        for taken, (cost, filled) in best.items():
            for option in _options(ends, prices, switch):
                cages, more = taken + option.number, cost + option.cost
                if cages <= switch.ports and more < grown.get(cages, (inf,))[0]:
                    grown[cages] = more, (*filled, option)
        best = grown
    return min(best.values(), key=lambda found: found[0])[1] if best else None


def _options(ends: Ends, prices: Prices, switch: SwitchPrice | None = None) -> list[Plugged]:
    """All parts that would do, at a NIC or in the cages of a switch."""
    reaching = [
        optic
        for optic in prices.optics
        if fits(optic, ends.speed) and optic.reach >= ends.reach and (ends.copper or optic.pairs)
    ]
    cage = [] if switch is None else [switch]
    if not reaching:
        return [Plugged(ends, None, _number(cage, ends))] if all(fits(part, ends.speed) for part in cage) else []
    return [
        Plugged(ends, optic, _number([optic, *cage], ends))
        for optic in reaching
        if all(fits(part, optic.speed) for part in cage)
    ]


def _number(parts: Sequence[SwitchPrice | OpticPrice], ends: Ends) -> int:
    """How many parts, or cages, the ports take: each serves as many as all of `parts` split into."""
    shared = min((min(int(part.speed / ends.speed * (1 + _SAME)), part.split) for part in parts), default=1)
    return -(-ends.ports // max(shared, 1))
