"""Multi-plane fabrics: a NIC with P ports, each into a leaf-spine plane of its own. Planes share no switch.

Order of nodes: hosts, then plane by plane its leaves and its spines ("p3.leaf0", "p3.spine1").
Order of links, each a block: host up, leaf down to hosts (by host, then plane), leaf up, spine down (by leaf, then
plane, spine, parallel cable). So all lanes of a flow, plane after plane, are one contiguous row of links at each hop.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from fabsim.topology.graph import Fabric
from fabsim.topology.wiring import cable, check_numbers, grid, put_together


@dataclass(frozen=True)
class Preset:
    """A NIC of 800 Gbps cut into ports, and the leaf that goes with it: a switch of 51.2 Tbps, half down, half up.

    Source: Araujo et al., Resilient AI Supercomputer Networking using MRC and SRv6, arXiv:2605.04333 (2026); the ports
    of the leaf with 4 planes are those of the same switch at 200 Gbps.

    Attributes:
        planes: ports of a NIC.
        rate: bytes per second of each port.
        hosts_per_leaf, spines: ports of a leaf down and up.
    """

    planes: int
    rate: float
    hosts_per_leaf: int
    spines: int

    @property
    def full(self) -> int:
        """Hosts of the largest fabric of two tiers: as many leaves as a spine has ports."""
        return (self.hosts_per_leaf + self.spines) * self.hosts_per_leaf


PRESETS = {"8x100G": Preset(8, 12.5e9, 256, 256), "4x200G": Preset(4, 25e9, 128, 128)}


def multi_plane(
    planes: int,
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    *,
    rate: float,
    latency: float,
    switch_latency: float = 0.0,
    buffer: float = nan,
    uplinks: int = 1,
    fabric_rate: float | None = None,
    fabric_latency: float | None = None,
) -> Fabric:
    """`planes` leaf-spines over the same hosts; `leaves`, `spines` and `hosts_per_leaf` are those of one plane.

    Rates in bytes per second and port, latencies in seconds per cable (and per switch), buffer in bytes of every
    switch port; `fabric_rate` and `fabric_latency` between leaf and spine, where they differ from the hosts'.
    The pod of a switch is its plane. Raises InputError for a number out of range.
    """
    counts = {"planes": planes, "leaves": leaves, "spines": spines, "hosts per leaf": hosts_per_leaf}
    upper = rate if fabric_rate is None else fabric_rate
    wire = latency if fabric_latency is None else fabric_latency
    check_numbers(
        {**counts, "uplinks": uplinks, "hosts": leaves * hosts_per_leaf},
        {"rate": rate, "fabric rate": upper},
        {"latency": latency, "fabric latency": wire, "switch latency": switch_latency},
        buffer,
    )
    hosts, switches = leaves * hosts_per_leaf, leaves + spines
    host, plane = grid(hosts, planes)
    blocks = cable(host, hosts + plane * switches + host // hosts_per_leaf, rate, latency, (0.0, switch_latency))
    leaf, plane, spine, _ = grid(leaves, planes, spines, uplinks)
    first = hosts + plane * switches
    blocks += cable(first + leaf, first + leaves + spine, upper, wire, (switch_latency, switch_latency))

    names = [f"h{number}" for number in range(hosts)]
    for number in range(planes):
        names += [f"p{number}.leaf{leaf}" for leaf in range(leaves)]
        names += [f"p{number}.spine{spine}" for spine in range(spines)]
    tier = np.concatenate([np.zeros(hosts, int), np.tile(np.repeat([1, 2], [leaves, spines]), planes)])
    pod = np.concatenate([np.zeros(hosts, int), np.repeat(np.arange(planes), switches)])
    return put_together(names, hosts, tier, pod, blocks, buffer)
