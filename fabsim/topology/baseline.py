"""The unloaded round trip and the bandwidth-delay product of a fabric, and the buffers and thresholds that follow.

As the UEC specification and its reference packet simulator have it, these are network-wide figures: those of the
longest of the shortest routes between any two hosts, whatever the traffic. Where flows are given routes that are longer
than any shortest (through a third group, or link by link), they are those of the longest of these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fabsim.topology.graph import Fabric
from fabsim.topology.longest import longest_in_use, longest_route
from fabsim.topology.servers import only_servers, within_server
from fabsim.topology.sites import only
from fabsim.topology.wiring import BORDER, INSIDE
from fabsim.typing import Bool, Float, Int

ECN_LOW = 0.2
ECN_HIGH = 0.8
"""Marking begins and is certain at these fractions of a buffer of one bandwidth-delay product (UEC defaults)."""


@dataclass(frozen=True)
class Baseline:
    """Network-wide figures of an idle fabric.

    Attributes:
        links: links on the longest route between two hosts, as above.
        latency: s, one way along it: wires and switches.
        rate: bytes per second of the fastest port of a NIC (ports to switches inside a server do not count).
        rtt: s, there and back, with one full packet and one header stored and forwarded at each link.
        bdp: bytes, rate times rtt.
        nic: bytes per second of all ports together of the fastest NIC; of a single port it is `rate`.
        own: the figures of each site by itself, with routes that do not leave it; none where there is one fabric.
        inside: the figures of a server by itself, over the switch in it; None where GPUs meet in the network only.
    """

    links: int
    latency: float
    rate: float
    rtt: float
    bdp: float
    nic: float
    own: tuple[Baseline, ...] = ()
    inside: Baseline | None = None

    def at_ports(self, fabric: Fabric) -> float | Float:
        """Bytes, bdp; where there are sites [L]: the ports of a site have its own, borders that of the whole."""
        if fabric.site is None:
            return self.bdp
        own = np.array([site.bdp for site in self.own])
        return np.where(fabric.tier[fabric.src] == BORDER, self.bdp, own[fabric.site[fabric.src]])

    def of_flows(self, fabric: Fabric, src: Int, dst: Int) -> Scope:
        """What flows between these hosts [F] know: a flow inside a site knows its figures, and one inside a server,
        which leaves by another port than the NIC's, those of the server."""
        scope = Scope(self.rtt, self.nic)
        if fabric.site is not None:
            site = fabric.site[src]
            rtt, nic = (np.array([getattr(one, name) for one in self.own])[site] for name in ("rtt", "nic"))
            scope = scope.but(site == fabric.site[dst], rtt, nic)
        for number, one in enumerate(self.own or (self,)):
            if one.inside is not None:
                near = within_server(fabric, src, dst)
                here = near if fabric.site is None else near & (fabric.site[src] == number)
                scope = scope.but(here, one.inside.rtt, one.inside.nic)
        return scope

    @property
    def nic_bdp(self) -> float:
        """Bytes, the rate of a whole NIC times rtt: what a flow over all its ports has in flight."""
        return self.nic * self.rtt


@dataclass(frozen=True)
class Scope:
    """Base round trip (s) and rate of a NIC (bytes per second) as senders know them: those of the network for all, or
    [F]."""

    rtt: float | Float
    nic: float | Float

    @property
    def nic_bdp(self) -> float | Float:
        """Bytes in flight over all ports of a NIC."""
        return self.nic * self.rtt

    def but(self, some: Bool, rtt: float | Float, nic: float | Float) -> Scope:
        """The same, but for some flows [F]; as it is where there are none."""
        return Scope(np.where(some, rtt, self.rtt), np.where(some, nic, self.nic)) if some.any() else self


@dataclass(frozen=True)
class Queues:
    """Defaults of the output queues. [L] bytes each."""

    buffer: Float
    ecn_low: Float
    ecn_high: Float


def baseline(fabric: Fabric, mtu: float, header: float, paths: Int | None = None) -> Baseline:
    """Round trip and bandwidth-delay product.

    rtt = 2 latency + links (mtu + header) / rate, over the route with the most links; of those, the one with the most
    latency. Of several sites it is the route with the most latency. Dead links do not count.

    Args:
        paths: [P, H] link numbers of routes that need not be shortest, right-aligned, -1 in front; those between hosts
            of one site count in its own figures, too.
    """
    links, one_way = longest_route(fabric) if paths is None else longest_in_use(fabric, paths)
    port = (fabric.src < fabric.hosts) & (fabric.speed > 0)
    outside = port & (fabric.tier[fabric.dst] != INSIDE)
    both = outside.any() and (port & ~outside).any()
    inside = baseline(only_servers(fabric), mtu, header) if both else None
    port = outside if outside.any() else port
    healthy = fabric.capacity[port] / fabric.speed[port]
    rate = float(healthy.max(initial=0.0))
    nic = float(np.bincount(fabric.src[port], healthy, minlength=1).max())
    rtt = 2 * one_way + (links * (mtu + header) / rate if rate else math.inf)
    sites = 0 if fabric.site is None else int(fabric.site.max()) + 1
    own = tuple(
        baseline(replace(only(fabric, site), site=None), mtu, header, _within(fabric, site, paths))
        for site in range(sites)
    )
    return Baseline(links, one_way, rate, rtt, rate * rtt, nic, own, inside)


def _within(fabric: Fabric, site: int, paths: Int | None) -> Int | None:
    """Those of the paths [P, H] that begin and end in a site."""
    if paths is None:
        return None
    assert fabric.site is not None
    first = np.take_along_axis(paths, (paths >= 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    begin, end = fabric.site[fabric.src[first]], fabric.site[fabric.dst[paths[:, -1]]]
    return paths[(begin == site) & (end == site)]


def default_queues(
    fabric: Fabric,
    bdp: float | Float,
    mtu: float,
    *,
    buffer: float | Float | None = None,
    ecn_low: float | Float | None = None,
    ecn_high: float | Float | None = None,
) -> Queues:
    """Buffers and thresholds of each link, in whole packets where they are derived.

    A buffer is 1 bandwidth-delay product, rounded up to whole packets; thresholds are 0.2 and 0.8 of that many
    packets, rounded up. All three shrink with the speed of a degraded link. What is given in bytes (for all links
    here, or by a link's own `Fabric.buffer`) is taken as it stands; thresholds follow a given buffer.

    Args:
        bdp, mtu: bytes; bdp of all links, or [L].
        buffer, ecn_low, ecn_high: bytes for a healthy link, or None to derive them.
    """
    packets = np.ceil(np.asarray(bdp) / mtu - 1e-9)
    healthy = packets * mtu if buffer is None else buffer
    low = _part(ECN_LOW, packets, mtu, buffer) if ecn_low is None else ecn_low
    high = _part(ECN_HIGH, packets, mtu, buffer) if ecn_high is None else ecn_high
    own = ~np.isnan(fabric.buffer)
    if not own.any():
        return Queues(healthy * fabric.speed, low * fabric.speed, high * fabric.speed)
    buffers = np.where(own, fabric.buffer, healthy * fabric.speed)
    given = np.where(own, fabric.buffer, 0.0) / np.where(np.asarray(healthy) > 0, healthy, 1.0)
    scale = np.where(own & (ecn_low is None), np.where(np.asarray(healthy) > 0, given, 1.0), fabric.speed)
    return Queues(buffers, low * scale, high * scale)


def _part(fraction: float, packets: Float, mtu: float, buffer: float | Float | None) -> float | Float:
    """A fraction of the derived buffer in whole packets, or of a given buffer as it is."""
    return np.ceil(fraction * packets - 1e-9) * mtu if buffer is None else fraction * buffer


def oversubscription(fabric: Fabric) -> float:
    """Capacity of the hosts' ports over that of the narrowest tier of links above them, as built: 1 where a fabric has
    as much up as down."""
    healthy = np.where(fabric.speed > 0, fabric.capacity / np.where(fabric.speed > 0, fabric.speed, 1.0), 0.0)
    level, up = fabric.tier[fabric.src], fabric.tier[fabric.dst] > fabric.tier[fabric.src]
    above = [healthy[up & (level == tier)].sum() for tier in np.unique(level[up])]
    return float(above[0] / min(above)) if above else 1.0
