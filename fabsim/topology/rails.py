"""Rail fabrics: GPU r of every server hangs at the switch of rail r, with spines above (rail-optimised) or without
(rail-only). Inside a server an NVLink switch may join its GPUs.

Hosts are GPUs, in the order group, server, rail. Switches: rails ("g0.rail3", or "rail3" where there are no spines),
spines ("spine2"), and one NVLink switch a server ("nvlink5"). A GPU with NVLink has two ports: NIC and NVLink.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from fabsim.topology.graph import Fabric
from fabsim.topology.wiring import INSIDE, Block, cable, check_numbers, grid, put_together


@dataclass(frozen=True)
class NvLink:
    """The switch inside a server.

    Attributes:
        rate: bytes per second of each GPU's port, each way.
        latency: seconds of each cable.
        switch_latency: seconds that the switch adds.
    """

    rate: float
    latency: float
    switch_latency: float = 0.0


def rail_optimised(
    groups: int,
    servers: int,
    rails: int,
    spines: int,
    *,
    rate: float,
    latency: float,
    switch_latency: float = 0.0,
    buffer: float = nan,
    uplinks: int = 1,
    fabric_rate: float | None = None,
    fabric_latency: float | None = None,
    nvlink: NvLink | None = None,
) -> Fabric:
    """Groups of `servers` servers with `rails` GPUs each; a group has one leaf a rail, all leaves meet at the spines.

    A leaf has `servers` ports down and `spines` x `uplinks` ports up. Rates in bytes per second, latencies in seconds,
    buffer in bytes of every switch port; `fabric_rate` and `fabric_latency` between leaf and spine. The pod of a node
    is its group. Raises InputError for a number out of range.
    """
    upper = rate if fabric_rate is None else fabric_rate
    wire = latency if fabric_latency is None else fabric_latency
    check_numbers(
        {"groups": groups, "spines": spines, "uplinks": uplinks},
        {"fabric rate": upper},
        {"fabric latency": wire},
    )
    _check_rails(groups * servers, rails, rate, latency, switch_latency, buffer, nvlink)
    hosts, leaves = groups * servers * rails, groups * rails
    group, server, rail = grid(groups, servers, rails)
    host = np.arange(hosts)
    blocks = cable(host, hosts + group * rails + rail, rate, latency, (0.0, switch_latency))
    leaf, spine, _ = grid(leaves, spines, uplinks)
    blocks += cable(hosts + leaf, hosts + leaves + spine, upper, wire, (switch_latency, switch_latency))
    names = [f"g{number // rails}.rail{number % rails}" for number in range(leaves)]
    names += [f"spine{number}" for number in range(spines)]
    tier = [1] * leaves + [2] * spines
    pod = [*(np.arange(leaves) // rails).tolist(), *[-1] * spines]
    return _with_servers(group * servers + server, group.tolist(), names, tier, pod, blocks, buffer, nvlink)


def rail_only(
    servers: int,
    rails: int,
    *,
    nvlink: NvLink,
    rate: float,
    latency: float,
    switch_latency: float = 0.0,
    buffer: float = nan,
) -> Fabric:
    """One switch a rail with a port for every server, and nothing above: rails meet only inside the servers.

    Two GPUs on different rails of different servers are not joined by switches; a GPU would have to forward, which is
    for the collective to do. Routing refuses such a pair. Units as in `rail_optimised`.
    Raises InputError for a number out of range.
    """
    _check_rails(servers, rails, rate, latency, switch_latency, buffer, nvlink)
    hosts = servers * rails
    server, rail = grid(servers, rails)
    blocks = cable(np.arange(hosts), hosts + rail, rate, latency, (0.0, switch_latency))
    names = [f"rail{number}" for number in range(rails)]
    return _with_servers(server, [0] * hosts, names, [1] * rails, [0] * rails, blocks, buffer, nvlink)


def _with_servers(
    server: np.ndarray,
    host_pod: list[int],
    names: list[str],
    tier: list[int],
    pod: list[int],
    blocks: list[Block],
    buffer: float,
    nvlink: NvLink | None,
) -> Fabric:
    """The fabric of some network switches, with an NVLink switch behind them for each server, where there is NVLink."""
    hosts, servers = len(server), int(server.max()) + 1
    if nvlink is not None:
        inside = hosts + len(names) + server
        blocks = [*blocks, *cable(np.arange(hosts), inside, nvlink.rate, nvlink.latency, (0.0, nvlink.switch_latency))]
        names = [*names, *(f"nvlink{number}" for number in range(servers))]
        tier, pod = [*tier, *[INSIDE] * servers], [*pod, *host_pod[:: hosts // servers]]
    all_names = [f"h{number}" for number in range(hosts)] + names
    return put_together(all_names, hosts, np.array([0] * hosts + tier), np.array([*host_pod, *pod]), blocks, buffer)


def _check_rails(
    servers: int, rails: int, rate: float, latency: float, switching: float, buffer: float, nvlink: NvLink | None
) -> None:
    inside = nvlink or NvLink(1.0, 0.0)
    check_numbers(
        {"servers": servers, "rails": rails, "hosts": servers * rails},
        {"rate": rate, "NVLink rate": inside.rate},
        {
            "latency": latency,
            "switch latency": switching,
            "NVLink latency": inside.latency,
            "NVLink switch latency": inside.switch_latency,
        },
        buffer,
    )
