"""Where a run lies outside of what has been compared with packets, or where a packet cannot be taken for a fluid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
    return [*_messages(scenario, net), *_window(scenario, net), *_buffers(scenario, net)]


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
