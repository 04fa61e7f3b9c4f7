"""Direct fabrics, whose switches are routers with hosts of their own: torus and dragonfly."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, prod

import numpy as np

from fabsim.errors import InputError
from fabsim.topology.graph import Fabric
from fabsim.topology.wiring import cable, check_numbers, grid, put_together
from fabsim.typing import Int

FARTHEST = 120
"""Links between the farthest routers; routing counts them in a byte."""


def torus(
    dims: Sequence[int],
    *,
    rate: float,
    latency: float,
    switch_latency: float = 0.0,
    buffer: float = nan,
    fabric_rate: float | None = None,
    fabric_latency: float | None = None,
) -> Fabric:
    """A torus of any dimensions with one host a router: `dims` (4, 4, 8) has 128 hosts, router "r3.0.7" holds h103.

    Along each dimension the routers are a ring; a dimension of 2 is one cable, one of 1 none. Rate in bytes per second
    of a host's port, `fabric_rate` of each cable between routers (default: the same); latencies in seconds, buffer in
    bytes of every router port. Raises InputError for a number out of range.
    """
    dims = tuple(dims)
    upper = rate if fabric_rate is None else fabric_rate
    wire = latency if fabric_latency is None else fabric_latency
    check_numbers(
        {"dimensions": len(dims), **{f"dims[{i}]": size for i, size in enumerate(dims)}, "hosts": prod(dims)},
        {"rate": rate, "fabric rate": upper},
        {"latency": latency, "fabric latency": wire, "switch latency": switch_latency},
        buffer,
    )
    if sum(size // 2 for size in dims) > FARTHEST:
        raise InputError(f"dims: the farthest routers are more than {FARTHEST} links apart; give smaller ones")
    hosts = prod(dims)
    host = np.arange(hosts)
    blocks = cable(host, hosts + host, rate, latency, (0.0, switch_latency))
    at = np.indices(dims).reshape(len(dims), -1)
    for axis, size in enumerate(dims):
        begin = host if size > 2 else host[at[axis] < size - 1]
        ahead = at[:, begin].copy()
        ahead[axis] = (ahead[axis] + 1) % size
        end = np.asarray(np.ravel_multi_index(tuple(ahead), dims))
        blocks += cable(hosts + begin, hosts + end, upper, wire, (switch_latency, switch_latency))
    names = [f"h{number}" for number in range(hosts)]
    names += ["r" + ".".join(map(str, place)) for place in at.T.tolist()]
    return put_together(names, hosts, np.repeat([0, 1], hosts), np.zeros(2 * hosts, int), blocks, buffer)


def dragonfly(
    groups: int,
    routers_per_group: int,
    hosts_per_router: int,
    global_links: int,
    *,
    rate: float,
    latency: float,
    switch_latency: float = 0.0,
    buffer: float = nan,
    fabric_rate: float | None = None,
    fabric_latency: float | None = None,
    global_rate: float | None = None,
    global_latency: float | None = None,
) -> Fabric:
    """Groups of routers, all of a group joined to each other, all groups joined to each other (Kim et al., ISCA 2008).

    A router ("g2.r1") has `global_links` ports to other groups. The ports of a group, router by router, go to the next
    group, the one after it, ...; the rounds that are full are wired, so that each pair of groups has
    routers_per_group * global_links // (groups - 1) cables. Rates in bytes per second: `rate` of a host's port,
    `fabric_rate` inside a group, `global_rate` between groups (default: that inside); latencies likewise; buffer in
    bytes of every router port. The pod of a node is its group. Raises InputError for a number out of range, and for
    groups with fewer ports than there are other groups.
    """
    rates = [rate, rate if fabric_rate is None else fabric_rate]
    wires = [latency, latency if fabric_latency is None else fabric_latency]
    rates.append(rates[1] if global_rate is None else global_rate)
    wires.append(wires[1] if global_latency is None else global_latency)
    counts = {"groups": groups, "routers per group": routers_per_group, "hosts per router": hosts_per_router}
    hosts = prod(counts.values())
    check_numbers(
        {**counts, "global links": global_links, "hosts": hosts},
        dict(zip(("rate", "fabric rate", "global rate"), rates, strict=True)),
        {
            **dict(zip(("latency", "fabric latency", "global latency"), wires, strict=True)),
            "switch latency": switch_latency,
        },
        buffer,
    )
    switching = (switch_latency, switch_latency)
    routers = groups * routers_per_group
    host = np.arange(hosts)
    blocks = cable(host, hosts + host // hosts_per_router, rates[0], wires[0], (0.0, switch_latency))
    group, one, other = grid(groups, routers_per_group, routers_per_group)
    one, other = ((hosts + group * routers_per_group + router)[one < other] for router in (one, other))
    blocks += cable(one, other, rates[1], wires[1], switching)
    low, high = _between(groups, routers_per_group, global_links)
    blocks += cable(hosts + low, hosts + high, rates[2], wires[2], switching)
    names = [f"h{number}" for number in range(hosts)]
    names += [f"g{number // routers_per_group}.r{number % routers_per_group}" for number in range(routers)]
    pod = np.concatenate([host // (hosts_per_router * routers_per_group), np.arange(routers) // routers_per_group])
    return put_together(names, hosts, np.repeat([0, 1], [hosts, routers]), pod, blocks, buffer)


def _between(groups: int, routers: int, ports: int) -> tuple[Int, Int]:
    """Routers at both ends of each cable between groups, from the lower group to the higher, by pair of groups."""
    others = groups - 1
    if others and routers * ports < others:
        raise InputError(
            f"global links: a group of {routers} routers with {ports} each reaches {routers * ports} of {others} other "
            f"groups; give at least {-(-others // routers)}"
        )
    low, high, copy = grid(groups, groups, routers * ports // max(others, 1))
    low, high, copy = (axis[low < high] for axis in (low, high, copy))
    there = copy * others + high - low - 1  # port in the lower group: the (high - low)-th of its round
    back = copy * others + groups - (high - low) - 1  # and in the higher one, where the groups go on from the first
    return low * routers + there // ports, high * routers + back // ports
