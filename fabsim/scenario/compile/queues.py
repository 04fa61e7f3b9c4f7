"""From the section `queue` to buffers and thresholds of the ports, and to the law of their queues.

How classes of traffic share a port stands in classes.py, what single ports have in ports.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from fabsim.errors import InputError
from fabsim.scenario.compile.classes import class_queues, queues_a_port, sized
from fabsim.scenario.compile.ports import at_links
from fabsim.scenario.keys.queue import Pfc, Shared, TailDrop, Trim
from fabsim.scenario.keys.routing import Drawn
from fabsim.topology import Fabric
from fabsim.topology.baseline import Baseline, Queues, default_queues
from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.text.document import Document

NEVER = 1e15
"""Bytes of a queue that no port ever has: a threshold that does not mark."""


def queues_of(scenario: Document, fabric: Fabric, base: Baseline) -> Queues:
    """Buffers and thresholds per link, of a port with one queue; a threshold above the other one is refused."""
    queue = scenario.queue
    buffer = queue.buffer if isinstance(queue, Trim | TailDrop) else "auto"
    queues = sized(scenario, fabric, base, ("queue",), buffer=buffer, ecn_low=queue.ecn_low, ecn_high=queue.ecn_high)
    if isinstance(queue, Trim | TailDrop):
        return queues
    bdp = base.at_ports(fabric)
    if isinstance(queue, Pfc) and np.any(queue.xon.bytes(bdp) > queue.xoff.bytes(bdp)):
        text = f"above xoff ({queue.xoff}), given {queue.xon}; give at most {queue.xoff}"
        raise InputError(scenario.source.sentence(("queue", "xon"), text))
    return replace(queues, buffer=np.full(fabric.links, np.nan))


def port_law(scenario: Document, net: Network, dt: SupportsFloat, real: Any) -> Any:
    """The queues of the ports, class by class. dt: s, the step; real: makes an array in the scenario's precision."""
    from fabsim.models.granular import GranularQueue
    from fabsim.models.pfc import PfcQueue
    from fabsim.models.queue import TrimQueue
    from fabsim.models.shared import SharedBuffer
    from fabsim.models.taildrop import TailDrop as TailDropQueue

    chosen, count = scenario.queue, queues_a_port(scenario)

    def each(by_link: Float) -> Any:
        """The same for all classes."""
        return real(np.tile(by_link, count))

    buffer, low, high = map(real, _sizes(scenario, net))
    sizes = buffer, low, high
    marks: dict[str, Any] = {"ecn_max": real(chosen.ecn_max), "at_enqueue": chosen.ecn_at == "enqueue"}
    match chosen:
        case Pfc():
            return PfcQueue(*sizes, *map(each, _pauses(scenario, chosen, net, float(dt))), **marks)
        case Shared():
            return SharedBuffer(*sizes, *map(each, _shares(scenario, chosen, net)), **marks)
        case TailDrop():
            return TailDropQueue(*sizes, **marks)
        case Trim() if _feels_packets(scenario, chosen):
            packet, turn = each(np.full(net.fabric.links, scenario.packet.mtu)), real(_round(scenario, chosen))
            return GranularQueue(*sizes, packet, turn=turn, **marks)
    return TrimQueue(*sizes, **marks)


def _sizes(scenario: Document, net: Network) -> tuple[Float, Float, Float]:
    """[L], or [C L], buffers and both thresholds; NEVER where there is none."""
    chosen, fabric, queues = scenario.queue, net.fabric, net.queues
    count = queues_a_port(scenario)
    if chosen.classes:
        own = class_queues(scenario, fabric, net.baseline)
        queues = own if isinstance(chosen, Trim | TailDrop) else replace(own, buffer=np.tile(queues.buffer, count))
    silent = np.tile((fabric.dst < fabric.hosts) & (not chosen.ecn_last_hop), count)
    low, high = (np.where(silent, NEVER, x) for x in (queues.ecn_low, queues.ecn_high))
    return np.where(np.isnan(queues.buffer), NEVER, queues.buffer), low, high


def _feels_packets(scenario: Document, queue: Trim) -> bool:
    """Whether packets come to the ports at random: as said, else where the routing or the sender draws for each."""
    if queue.granular != "auto":
        return bool(queue.granular)
    return scenario.routing.kind in ("switch_spray", "drawn") or scenario.balancer.kind == "reps"


def _round(scenario: Document, queue: Trim) -> float:
    """Packets after which a flow goes through its entropy values anew, as said, else those of the routing; without end
    where each packet draws one."""
    from fabsim.models.granular import ENDLESS

    routing = scenario.routing
    if queue.granular != "auto":
        return ENDLESS if isinstance(queue.granular, bool) else queue.granular
    return routing.entropies if isinstance(routing, Drawn) and scenario.balancer.kind != "reps" else ENDLESS


def _shares(scenario: Document, queue: Shared, net: Network) -> tuple[Float, Float]:
    """[L] each: bytes that the ports at each link's tail share, and the part of what is free that each may hold."""
    fabric, bdp = net.fabric, net.baseline.at_ports(net.fabric)
    alpha = at_links(scenario, fabric, bdp, "alpha", np.full(fabric.links, queue.alpha))
    if queue.memory != "auto":
        return np.full(fabric.links, queue.memory.bytes(bdp)), alpha
    own = default_queues(fabric, bdp, scenario.packet.mtu).buffer
    return np.bincount(fabric.src, own).astype(float)[fabric.src], alpha


def _pauses(scenario: Document, queue: Pfc, net: Network, dt: float) -> tuple[Float, ...]:
    """[L] each: xoff, xon and headroom in bytes, and the delay in seconds (two steps at least), of the head of each
    link."""
    fabric, bdp, mtu = net.fabric, net.baseline.at_ports(net.fabric), scenario.packet.mtu
    rate = np.where(fabric.capacity > 0, fabric.capacity, np.inf)
    delay = 2 * fabric.latency + 2 * mtu / rate if queue.delay == "auto" else np.full(fabric.links, float(queue.delay))
    delay = np.maximum(delay, 2 * dt)
    carried = fabric.capacity * delay + 2 * mtu
    headroom = carried if queue.headroom == "auto" else np.full(fabric.links, queue.headroom.bytes(bdp))
    headroom = at_links(scenario, fabric, bdp, "headroom", headroom)
    return np.full(fabric.links, queue.xoff.bytes(bdp)), np.full(fabric.links, queue.xon.bytes(bdp)), headroom, delay
