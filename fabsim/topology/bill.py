"""What a fabric is made of: switches, ports, optics, kilometres, watts and cost, by a price list.

Each switch is the cheapest of the list with enough cages; slower ports share a cage as far as it splits. At each end
of a cable stands the cheapest that reaches; equal ports of one node share one as far as it splits (a NIC with 8 ports
of 100 Gbps has one transceiver of 800). Switches and cables inside servers are not counted, nor are NICs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabsim.topology.graph import Fabric
from fabsim.topology.names import lane_numbers
from fabsim.topology.prices import OpticPrice, Prices, SwitchPrice
from fabsim.topology.wiring import INSIDE
from fabsim.typing import Float, Int
from fabsim.units import FIBRE_DELAY, show_rate

_SAME = 1e-9  # rates that differ by less are the same


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


def bill(fabric: Fabric, prices: Prices, switching: Float | float = 0.0) -> Bill:
    """Count and add up.

    Args:
        fabric: healthy; lengths are those of fibre with the latency of each cable (4.9 us per km).
        prices: the list.
        switching: seconds that each node adds to the links that leave it ([N] or for all switches), which are no wire.
    """
    ends, rate, length = _cables(fabric, switching)
    node = np.concatenate([ends[:, 0], ends[:, 1]])
    groups = Counter(zip(node.tolist(), np.tile(rate, 2).tolist(), np.tile(length, 2).tolist(), strict=True))
    found = _Sum()
    by_node: dict[int, Counter[float]] = {}
    for (at, speed, metres), ports in groups.items():
        found.add_ends(prices, speed, metres, ports)
        if at >= fabric.hosts:
            by_node.setdefault(at, Counter())[speed] += ports
    for needs, count in Counter(tuple(sorted(node.items())) for node in by_node.values()).items():
        found.add_switches(prices.switches, needs, count)
    return Bill(
        found.switches,
        found.optics,
        found.copper,
        ports=sum(node.total() for node in by_node.values()),
        cables=len(ends),
        kilometres=float(length.sum()) / 1e3,
        watts=found.watts,
        cost=found.cost,
        missing=tuple(f"{count} {what}" for what, count in found.missing.items()),
    )


class _Sum:
    """Counts so far."""

    def __init__(self) -> None:
        self.switches: Counter[str] = Counter()
        self.optics: Counter[str] = Counter()
        self.copper: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.watts = 0.0
        self.cost = 0.0

    def add_ends(self, prices: Prices, speed: float, metres: float, ports: int) -> None:
        """The ends of equal cables at one node."""
        fast = [optic for optic in prices.optics if _fits(optic, speed)]
        reaching = [optic for optic in fast if optic.reach >= metres]
        if not reaching:
            why = f"{metres / 1e3:.3g} km is beyond the reach" if fast else "too fast for the optics"
            self.missing[f"cable ends of {show_rate(speed)}: {why} of the list"] += ports
            return
        cost, number, optic = min(
            ((_number(optic, speed, ports) * optic.cost, _number(optic, speed, ports), optic) for optic in reaching),
            key=lambda option: option[0],
        )
        (self.optics if optic.pairs else self.copper)[optic.name] += number
        pairs = max(optic.pairs * speed / optic.speed, 1.0) if optic.pairs else 0.0
        self.watts += number * optic.watts
        self.cost += cost + 0.5 * pairs * ports * metres / 1e3 * prices.fibre  # the other half is the other end's

    def add_switches(self, switches: Sequence[SwitchPrice], needs: tuple[tuple[float, int], ...], count: int) -> None:
        """Equal switches, with so many ports of each speed."""
        able = [
            switch
            for switch in switches
            if all(_fits(switch, speed) for speed, _ in needs)
            and sum(_number(switch, speed, ports) for speed, ports in needs) <= switch.ports
        ]
        if not able:
            wanted = " and ".join(f"{ports} ports of {show_rate(speed)}" for speed, ports in needs)
            self.missing[f"switches with {wanted}: none in the list has as many"] += count
            return
        switch = min(able, key=lambda switch: switch.cost)
        self.switches[switch.name] += count
        self.watts += count * switch.watts
        self.cost += count * switch.cost


def _fits(part: SwitchPrice | OpticPrice, speed: float) -> bool:
    return speed <= part.speed * (1 + _SAME)


def _number(part: SwitchPrice | OpticPrice, speed: float, ports: int) -> int:
    """How many cages or transceivers so many ports of a speed take."""
    shared = min(int(part.speed / speed * (1 + _SAME)), part.split)
    return -(-ports // max(shared, 1))


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
