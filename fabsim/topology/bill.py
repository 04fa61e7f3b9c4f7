"""What a fabric is made of: switches, ports, optics, kilometres, watts and cost, by a price list.

At each end of a cable stands the cheapest that reaches; ports of one node that are as fast and need the same reach
share one as far as it splits (a NIC with 8 ports of 100 Gbps has one transceiver of 800). Each switch is the one of the
list that is cheapest together with what stands in its cages, see fill.py. A cable is copper or fibre at both ends.
Switches and cables inside servers are not counted, nor are NICs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from fabsim.topology.fill import Ends, Filled, Plugged, at_nic, at_switch, fits
from fabsim.topology.graph import Fabric
from fabsim.topology.names import lane_numbers
from fabsim.topology.prices import Prices, SwitchPrice
from fabsim.topology.wiring import INSIDE
from fabsim.typing import Float, Int
from fabsim.units import FIBRE_DELAY, show_rate


@dataclass(frozen=True)
class Bill:
    """The parts of a fabric.

    Attributes:
        switches, optics, copper: how many of each name; transceivers and copper ends apart.
        ports: ports of switches that are in use.
        cables: cables outside of servers.
        kilometres: of cable, all together.
        watts: of switches and of what stands at the ends of cables.
        cost: in the currency of the list, fibre included.
        missing: sentences about what the list does not have; that is neither in watts nor in cost.
    """

    switches: Counter[str]
    optics: Counter[str]
    copper: Counter[str]
    ports: int
    cables: int
    kilometres: float
    watts: float
    cost: float
    missing: tuple[str, ...]


@dataclass(frozen=True)
class _Node:
    """What the ports of a node need, at a switch or at a NIC."""

    switch: bool
    ends: tuple[Ends, ...]

    def choose(self, prices: Prices, optical: set[tuple[float, float]]) -> tuple[SwitchPrice | None, Filled]:
        """The switch, if it is one and the list has one, and what stands at its ports: no copper for cables that are
        `optical` (by speed and reach)."""
        ends = [replace(one, copper=(one.speed, one.reach) not in optical) for one in self.ends]
        return at_switch(ends, prices) if self.switch else (None, at_nic(ends, prices))


def bill(fabric: Fabric, prices: Prices, switching: Float | float = 0.0) -> Bill:
    """Count and add up.

    Args:
        fabric: healthy; lengths are those of fibre with the latency of each cable (4.9 us per km).
        prices: the list.
        switching: seconds that each node adds to the links that leave it ([N] or for all switches), which are no wire.
    """
    ends, rate, length = _cables(fabric, switching)
    nodes = _nodes(ends, rate, length, fabric.hosts, prices)
    found = _Sum()
    for node, (switch, filled) in _chosen(nodes, prices).items():
        for part in filled:
            found.add_ends(prices, part, nodes[node])
        if node.switch:
            found.add_switches(switch, node.ends, nodes[node])
    return Bill(
        found.switches,
        found.optics,
        found.copper,
        ports=sum(count * ends.ports for node, count in nodes.items() if node.switch for ends in node.ends),
        cables=len(ends),
        kilometres=float(length.sum()) / 1e3,
        watts=found.watts,
        cost=found.cost,
        missing=tuple(f"{count} {what}" for what, count in found.missing.items()),
    )


def _nodes(ends: Int, rate: Float, length: Float, hosts: int, prices: Prices) -> Counter[_Node]:
    """How many nodes need the same: by cables with these nodes [C, 2], rates [C] and lengths [C]."""
    groups = Counter(zip(ends.T.ravel().tolist(), np.tile(rate, 2).tolist(), np.tile(length, 2).tolist(), strict=True))
    reaches = {(speed, metres): _reach(prices, speed, metres) for _, speed, metres in groups}
    by_node: dict[int, dict[tuple[float, float], tuple[int, float]]] = {}
    for (node, speed, metres), ports in groups.items():
        mine, key = by_node.setdefault(node, {}), (speed, reaches[speed, metres])
        before = mine.get(key, (0, 0.0))
        mine[key] = before[0] + ports, before[1] + ports * metres
    return Counter(
        _Node(node >= hosts, tuple(sorted(Ends(*key, *counts) for key, counts in mine.items())))
        for node, mine in by_node.items()
    )


def _reach(prices: Prices, speed: float, metres: float) -> float:
    """Of the shortest optics that reach, or the length itself."""
    return min((one.reach for one in prices.optics if fits(one, speed) and one.reach >= metres), default=metres)


def _chosen(nodes: Counter[_Node], prices: Prices) -> dict[_Node, tuple[SwitchPrice | None, Filled]]:
    """What each node has. Cables that would be copper at one end and fibre at the other are fibre."""
    optical: set[tuple[float, float]] = set()
    while True:
        found = {node: node.choose(prices, optical) for node in nodes}
        parts = [part for _, filled in found.values() for part in filled if part.optic]
        copper, fibre = (
            {(part.ends.speed, part.ends.reach) for part in parts if part.optic and bool(part.optic.pairs) == light}
            for light in (False, True)
        )
        if not copper & fibre:
            return found
        optical |= copper & fibre


class _Sum:
    """Counts so far."""

    def __init__(self) -> None:
        self.switches: Counter[str] = Counter()
        self.optics: Counter[str] = Counter()
        self.copper: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.watts = 0.0
        self.cost = 0.0

    def add_ends(self, prices: Prices, part: Plugged, nodes: int) -> None:
        """What stands at the ends of cables at equal nodes."""
        ends, optic = part.ends, part.optic
        if optic is None:
            fast = any(fits(one, ends.speed) for one in prices.optics)
            why = f"{ends.reach / 1e3:.3g} km is beyond the reach" if fast else "too fast for the optics"
            self.missing[f"cable ends of {show_rate(ends.speed)}: {why} of the list"] += nodes * ends.ports
            return
        (self.optics if optic.pairs else self.copper)[optic.name] += nodes * part.number
        pairs = max(optic.pairs * ends.speed / optic.speed, 1.0) if optic.pairs else 0.0
        fibre = 0.5 * pairs * ends.metres / 1e3 * prices.fibre  # the other half is the other end's
        self.watts += nodes * part.number * optic.watts
        self.cost += nodes * (part.cost + fibre)

    def add_switches(self, switch: SwitchPrice | None, ends: tuple[Ends, ...], count: int) -> None:
        """Equal switches with such ports."""
        if switch is None:
            ports: Counter[float] = Counter()
            for one in ends:
                ports[one.speed] += one.ports
            wanted = " and ".join(f"{number} ports of {show_rate(speed)}" for speed, number in ports.items())
            self.missing[f"switches with {wanted}: none in the list has cages for as many"] += count
            return
        self.switches[switch.name] += count
        self.watts += count * switch.watts
        self.cost += count * switch.cost


def _cables(fabric: Fabric, switching: Float | float) -> tuple[Int, Float, Float]:
    """[C, 2] nodes, [C] bytes per second and [C] whole metres of each cable outside of servers.

    Two links that lead back and forth are one cable; a link without its opposite is one, too.
    """
    added = np.broadcast_to(np.asarray(switching, float), (len(fabric.names),))
    wire = fabric.latency - np.where(fabric.src < fabric.hosts, 0.0, added[fabric.src])
    lane, _ = lane_numbers(fabric)
    ends = np.sort(np.stack([fabric.src, fabric.dst], axis=1), axis=1)
    outside = np.flatnonzero((fabric.tier[ends] != INSIDE).all(axis=1))
    _, first = np.unique(np.column_stack([ends, lane])[outside], axis=0, return_index=True)
    link = outside[first]
    speed = fabric.speed[link]
    rate = fabric.capacity[link] / np.where(speed > 0, speed, 1.0)
    return ends[link], rate, np.round(np.maximum(wire[link], 0.0) / FIBRE_DELAY)
