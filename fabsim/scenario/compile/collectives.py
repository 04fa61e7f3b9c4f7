"""The collectives of a scenario: which flows they are, and the bytes by which bus bandwidth is reckoned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabsim.scenario.keys.traffic import AllToAll, Ring
from fabsim.typing import Bool

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.text.document import Document


@dataclass(frozen=True)
class Collective:
    """One group of hosts that works together.

    Attributes:
        name: its place in the traffic, and what it is.
        flows: [F] which flows belong to it.
        volume: bytes whose quotient by the time is the bus bandwidth.
    """

    name: str
    flows: Bool
    volume: float


def collectives(scenario: Document, net: Network) -> list[Collective]:
    """The rings and all-to-alls of the traffic.

    Bus bandwidth as nccl-tests has it (PERFORMANCE.md): of an all-reduce of S bytes over n ranks S / t x 2 (n - 1) / n;
    of an all-to-all with s bytes for each pair n s / t x (n - 1) / n.
    """
    found = []
    for number, entry in enumerate(scenario.traffic):
        mine, name = net.entry == number, f"traffic.{number}: {entry.kind}"
        if isinstance(entry, Ring):
            for group in entry.groups or (tuple(range(entry.ranks or net.fabric.hosts)),):
                ranks = len(group)
                volume = entry.size * 2.0 * (ranks - 1) / ranks
                found.append(Collective(f"{name} of {ranks}", mine & np.isin(net.flows.src, group), volume))
        elif isinstance(entry, AllToAll):
            ranks = len(np.unique(net.flows.src[mine]))
            found.append(Collective(f"{name} of {ranks}", mine, entry.size * (ranks - 1)))
    return found
