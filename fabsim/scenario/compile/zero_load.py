"""The empty fabric: what each flow would take alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.typing import Float, Int

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.text.document import Document


def zero_load(scenario: Document, net: Network) -> Float:
    """[F] s: each flow alone in the empty fabric, on the paths it has, from its start to its last byte's arrival.

    No run is faster, however bytes are split over these paths, and whatever is lost on one and sent again on another.

    Bytes on the wire at the rate that its paths have together, then the propagation and one packet of store and forward
    at each link but the slowest, along the fastest path in use.
    """
    packet, path, used = scenario.packet.sizes, net.routes.path, net.routes.weight > 0
    wire, on_link = packet.wire(net.flows.size), path >= 0
    slowness = np.where(on_link, 1.0 / np.maximum(net.fabric.capacity[path], 1e-300), 0.0)
    forward = np.minimum(packet.mtu, wire)[:, None] * (slowness.sum(axis=2) - slowness.max(axis=2))
    latency = np.where(on_link, net.fabric.latency[path], 0.0).sum(axis=2) + forward
    return wire / _together(net) + np.where(used, latency, np.inf).min(axis=1)


def _together(net: Network) -> Float:
    """[F] bytes per second that the paths of each flow have together at most.

    By cuts: each path has one link at each place, counted from its end, and all links there carry no more than their
    sum. That holds for all paths of a flow, and for those of each of its ports, which add up: where one port is slow at
    the sender and another at the receiver, each plane has the rate of its slower end.
    """
    used = net.routes.weight > 0
    if used.shape[1] == 1:  # a path each
        path = net.routes.path[:, 0]
        return np.where(path >= 0, net.fabric.capacity[path], np.inf).min(axis=1)
    flow = np.broadcast_to(np.arange(net.flows.count)[:, None], used.shape)[used]
    path = net.routes.path[used]
    first = np.take_along_axis(path, (path >= 0).argmax(axis=1)[:, None], axis=1)
    places = np.where(path >= 0, path, first).astype(np.int64)
    ports, port = np.unique(flow * net.fabric.links + first[:, 0], return_inverse=True)
    each = np.bincount(ports // net.fabric.links, _narrowest(net, port, places))
    return np.minimum(_narrowest(net, flow, places), each)


def _narrowest(net: Network, group: Int, places: Int) -> Float:
    """[G] least sum of capacities at any place of the paths [P, H] of each group [P]."""
    cuts = []
    for link in places.T:
        owner, at = np.divmod(np.unique(group * net.fabric.links + link), net.fabric.links)
        cuts.append(np.bincount(owner, net.fabric.capacity[at]))
    return np.min(cuts, axis=0)
