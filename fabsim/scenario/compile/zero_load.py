"""The empty fabric: what each flow would take alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.text.document import Document


def zero_load(scenario: Document, net: Network) -> Float:
    """[F] s: each flow alone in the empty fabric, on the routes it has, from its start to its last byte's arrival.

    Bytes on the wire at the rate of the narrowest link for the share that it gets, then the propagation and one packet
    of store and forward at each link but the slowest, along the fastest path in use.
    """
    packet, path, weight = scenario.packet.sizes, net.routes.path, over_ports(net)
    wire = packet.wire(net.flows.size)
    on_link = path >= 0
    flow = np.broadcast_to(np.arange(net.flows.count)[:, None, None], path.shape)[on_link]
    link = path[on_link]
    share = np.broadcast_to(weight[:, :, None], path.shape)[on_link]
    pairs, row = np.unique(flow.astype(np.int64) * net.fabric.links + link, return_inverse=True)
    load = np.bincount(row, weights=share)
    owner, at = np.divmod(pairs, net.fabric.links)
    seconds_per_byte = np.zeros(net.flows.count)
    capacity = net.fabric.capacity[at]
    np.maximum.at(seconds_per_byte, owner, np.divide(load, capacity, out=np.zeros_like(load), where=load > 0))
    slowness = np.where(on_link, 1.0 / np.maximum(net.fabric.capacity[path], 1e-300), 0.0)
    forward = np.minimum(packet.mtu, wire)[:, None] * (slowness.sum(axis=2) - slowness.max(axis=2))
    latency = np.where(on_link, net.fabric.latency[path], 0.0).sum(axis=2) + forward
    return wire * seconds_per_byte + np.where(weight > 0, latency, np.inf).min(axis=1)


def over_ports(net: Network) -> Float:
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
