"""The fabric: nodes and directed links, as plain numpy arrays.

Hosts are nodes 0..hosts-1; switches follow. Every cable is two directed links. Parallel links stay parallel:
each is an entry of its own, so that one lane of a bundle can be slow or dead alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabsim.typing import Float, Int


@dataclass(frozen=True)
class Fabric:
    """A directed multigraph of hosts and switches.

    Shapes: N nodes, L directed links. SI units.

    Attributes:
        names: [N] node names; hosts come first ("h0"), then switches ("leaf3", "spine0", "core2").
        hosts: number of hosts.
        tier: [N] 0 for hosts, 1 for leaves (ToR) and routers, 2 for spines or aggregation, 3 for cores, 4 for switches
            inside a server, 5 for those at the border of a site.
        pod: [N] pod of a node, -1 for a core (two-tier fabrics are one pod); in a dragonfly its group, in rails its
            group of servers; for a switch of a multi-plane fabric its plane.
        src, dst: [L] node at the tail and the head of each link; the queue of a link stands at its tail.
        capacity: [L] line rate in bytes per second; 0 where the link is dead.
        latency: [L] seconds of wire, plus the switching latency of the tail node where that is a switch.
        buffer: [L] bytes of the output queue, NaN where it is to be derived from the bandwidth-delay product.
        speed: [L] fraction of the healthy line rate (1 healthy, 0.25 degraded, 0 dead).
        loss: [L] share of all bytes that is lost at random; None where no link loses anything.
        site: [N] site of each node; None where there is one.
    """

    names: tuple[str, ...]
    hosts: int
    tier: Int
    pod: Int
    src: Int
    dst: Int
    capacity: Float
    latency: Float
    buffer: Float
    speed: Float
    loss: Float | None = None
    site: Int | None = None

    @property
    def links(self) -> int:
        """Number of directed links."""
        return len(self.src)

    def link_name(self, link: int) -> str:
        """A name such as "leaf0->spine3", with "#2" for the third of parallel links."""
        same = np.flatnonzero((self.src == self.src[link]) & (self.dst == self.dst[link]))
        lane = f"#{int(np.searchsorted(same, link))}" if len(same) > 1 else ""
        return f"{self.names[self.src[link]]}->{self.names[self.dst[link]]}{lane}"
