"""How long a run is at least, before it is run, and what the frames of its result take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.machine import available
from fabsim.routing.load import certain_utilisation, utilisation
from fabsim.topology import Fabric
from fabsim.typing import Float, Int
from fabsim.units import show_size

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.scenario import Scenario

BY_LINK = 5
"""Numbers that a frame has of each link; of each flow it has one."""


def routed_seconds(scenario: Scenario, net: Network) -> Float:
    """[L] s that each link needs at line rate for what senders bring to it: over their ports by their rates, and behind
    each port as routed. A run may end sooner: what is lost at a slow link, or what a balancer moves, takes another
    path."""
    routes = replace(net.routes, weight=_over_ports(net))
    return utilisation(routes, scenario.packet.sizes.wire(net.flows.size), net.fabric.capacity)


def _over_ports(net: Network) -> Float:
    """[F, K] shares of a flow that has its NIC for itself: all ports in use are full, and in each the split holds."""
    path, weight, fabric = net.routes.path, net.routes.weight, net.fabric
    first = (path >= 0).argmax(axis=2)[:, :, None]
    nic = np.take_along_axis(path, first, axis=2)[:, :, 0].astype(np.int64)
    ports, row = np.unique(np.arange(len(nic))[:, None] * fabric.links + nic, return_inverse=True)
    row = row.reshape(nic.shape)
    used = np.bincount(row.reshape(-1), weight.reshape(-1))
    owner, link = np.divmod(ports, fabric.links)
    rate = np.where(used > 0, fabric.capacity[link], 0.0)
    part = rate / np.bincount(owner, rate)[owner]
    return weight * np.divide(part, used, out=np.zeros_like(used), where=used > 0)[row]


def ideal_seconds(scenario: Scenario, net: Network) -> float:
    """s at line rate for what no byte can avoid, so that no run ends sooner: all ports of a host together, for what it
    sends or receives, and a link, for flows that have it on all of their paths."""
    wire, flows, fabric = scenario.packet.sizes.wire(net.flows.size), net.flows, net.fabric
    links = certain_utilisation(net.routes, wire, fabric.capacity)
    sent, received = _of_hosts(fabric, wire, flows.src, fabric.src), _of_hosts(fabric, wire, flows.dst, fabric.dst)
    return float(np.concatenate([links, sent, received]).max())


def _of_hosts(fabric: Fabric, wire: Float, flow: Int, link: Int) -> Float:
    """s of each host; `flow` and `link` are the nodes at that end of flows [F] and links [L]."""
    load = np.bincount(flow, wire, fabric.hosts)
    rate = np.bincount(link, fabric.capacity, fabric.hosts)[: fabric.hosts]
    return np.divide(load, rate, out=np.zeros_like(rate), where=load > 0)


def least_steps(scenario: Scenario, net: Network, dt: float) -> int:
    """Steps of `dt` seconds until `until`, or, where that is the last completion, until it could be at the soonest."""
    seconds = ideal_seconds(scenario, net) if scenario.until == "done" else float(scenario.until)
    return int(np.ceil(seconds / dt))


def least_frames(scenario: Scenario, net: Network, dt: float) -> int:
    """Frames of so many steps."""
    return -(-least_steps(scenario, net, dt) // scenario.steps_of_frame(dt))


def frame_bytes(scenario: Scenario, net: Network, dt: float) -> float:
    """Bytes of so many frames."""
    width = 8 if scenario.precision == "float64" else 4
    return float(least_frames(scenario, net, dt)) * width * (BY_LINK * net.fabric.links + net.flows.count)


def refuse_too_long(scenario: Scenario, net: Network, dt: float) -> None:
    """Raises InputError for a run whose frames would not fit into memory, however soon it ends."""
    need, have = frame_bytes(scenario, net, dt), available()
    if need > have:
        text = f"the frames of the result need at least {show_size(need)} of memory, and {show_size(have)} is free"
        raise InputError(scenario.source.sentence(("every",), f"{text}; a longer every would do"))
