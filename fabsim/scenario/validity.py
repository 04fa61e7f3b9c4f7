"""Where a run lies outside of what has been compared with packets, or where a packet cannot be taken for a fluid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fabsim.scenario.compile.laws import loses_in_silence
from fabsim.scenario.keys.balancer import Flowlet
from fabsim.scenario.keys.queue import GoBackN, Shared, TailDrop
from fabsim.scenario.keys.transport import Window
from fabsim.units import show_size

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.scenario import Scenario

FEW = 8
"""Packets. Messages that meet others have been compared with packets from hundreds of packets on (1 MB and more); one
of a single packet only alone, where latency is all. A message of a few packets meets a queue whole or not at all."""


class OutsideWarning(UserWarning):
    """A run that nobody has compared with packets."""


def outside(scenario: Scenario, net: Network) -> list[str]:
    """A sentence for each reason."""
    return [*_messages(scenario, net), *_window(scenario, net), *_buffers(scenario, net), *_go_back_n(scenario, net)]


def _messages(scenario: Scenario, net: Network) -> list[str]:
    """Messages of a few packets; a lone flow is exact at any size. A grain of a coupled flow is a message."""
    flows = net.flows
    message = np.where((flows.leader >= 0) & (flows.grain > 0), np.minimum(flows.grain, flows.size), flows.size)
    least = FEW * (scenario.packet.mtu - scenario.packet.header)
    small = np.flatnonzero((message > 0) & (message < least))
    if not len(small) or flows.count == 1:
        return []
    pairs = ", ".join(f"h{flows.src[i]} to h{flows.dst[i]}" for i in small[:3]) + (", ..." if len(small) > 3 else "")
    return [
        f"{len(small)} of {flows.count} flows send messages of less than {FEW} packets ({show_size(float(least))}): "
        f"{pairs}; a fluid is not validated for so few packets"
    ]


def _window(scenario: Scenario, net: Network) -> list[str]:
    if not isinstance(scenario.transport, Window):
        return []
    window = float(np.min(scenario.transport.window.bytes(net.scope().nic_bdp)))
    if window >= scenario.packet.mtu:
        return []
    text = f"a window of {show_size(window)} is less than a packet of {show_size(scenario.packet.mtu)}"
    return [f"{text}: packets would go one by one; a window below a packet is not validated"]


def _buffers(scenario: Scenario, net: Network) -> list[str]:
    living = net.fabric.capacity > 0
    small = living & (net.fabric.src >= net.fabric.hosts) & (net.queues.buffer < scenario.packet.mtu)
    if not small.any():
        return []
    text = f"{int(small.sum())} ports have a buffer of less than a packet of {show_size(scenario.packet.mtu)}"
    return [f"{text} ({net.fabric.link_name(int(small.argmax()))}): no whole packet fits; this is not validated"]


def _go_back_n(scenario: Scenario, net: Network) -> Iterator[str]:
    """Receivers that take nothing out of order, where packets overtake each other or are lost in bursts."""
    if not isinstance(scenario.recovery, GoBackN) or not loses_in_silence(scenario, net.fabric.loss):
        return
    several = int(((net.routes.weight > 0).sum(1) > 1).sum())
    if several and not isinstance(scenario.balancer, Flowlet):
        text = f"go_back_n, and {several} of {net.flows.count} flows over several paths at once"
        yield (
            f"{text}: packets overtake each other, and receivers that take nothing out of order would refuse most of "
            "them; a fluid has no order, and does not show it. One path a flow, or selective_repeat, would do"
        )
    if isinstance(scenario.queue, TailDrop | Shared):
        yield (
            "go_back_n at ports that drop: flows that overflow one together go back together, and overflow it again; "
            "packets fall out of step, and the fluid's mean took 0.8 to 2.6 times as long in the small incasts that "
            "were compared"
        )
    if net.fabric.loss is not None or any(event.loss for event in scenario.faults):
        yield (
            "go_back_n on links that lose: flows of a full port stay in step, and packets do not; the mean took "
            "1.0 to 1.8 times as long as packets in the small cases that were compared"
        )
