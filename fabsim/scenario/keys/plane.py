"""What may stand under `fabric` for hosts with several ports: multi-plane and rail fabrics."""

from __future__ import annotations

from typing import Literal

from fabsim.scenario.keys.fabric import LATENCY, SWITCH_LATENCY, FabricSection
from fabsim.scenario.keys.fields import ALMOST, Count, Latency, Rate, like

MRC = "arXiv:2605.04333"


class Switches(FabricSection):
    """What the switches are like."""

    switch_latency: Latency = SWITCH_LATENCY
    ports: Count | None = like(
        "512", None, means="ports of a switch; more cables than that are refused", absent="not checked", smooth="choice"
    )


class UpperLinks(Switches):
    """What the links between switches are like."""

    fabric_rate: Rate | None = like(
        "400 Gbps", None, means="line rate of the links between switches", absent="the same as `rate`", smooth=ALMOST
    )
    fabric_latency: Latency | None = like(
        "2 us",
        None,
        means="propagation along the cables between switches",
        absent="the same as `latency`",
        smooth=ALMOST,
    )


class MultiPlane(UpperLinks):
    """Hosts with a port into each of several leaf-spine planes that share no switch: give a preset and the leaves, or
    the numbers of a plane."""

    kind: Literal["multi_plane"]
    preset: Literal["8x100G", "4x200G"] | None = like(
        "8x100G",
        None,
        means="a NIC of 800 Gbps as 8 x 100 (leaves 256 down, 256 up) or 4 x 200 (128 down, 128 up); the keys that are "
        "given beside it hold",
        absent="give planes, spines, hosts_per_leaf and rate",
    )
    leaves: Count = like("4", means="leaf switches of each plane")
    planes: Count | None = like("4", None, means="planes, and ports of each host", absent="from `preset`", begin=True)
    spines: Count | None = like("4", None, means="spine switches of each plane", absent="from `preset`", begin=True)
    hosts_per_leaf: Count | None = like(
        "8",
        None,
        means="hosts on each leaf; each has a port to the leaf of that number in every plane",
        absent="from `preset`",
        begin=True,
    )
    rate: Rate | None = like(
        "200 Gbps",
        None,
        means="line rate of each port, in each direction",
        absent="from `preset`",
        smooth=ALMOST,
        begin=True,
    )
    latency: Latency = LATENCY
    uplinks: Count = like("1", 1, means="cables from each leaf to each spine of its plane", source=MRC)


class Rails(Switches):
    """What both rail fabrics have."""

    servers: Count = like("8", means="servers (of each group)")
    rails: Count = like("8", 8, means="GPUs of a server, one on each rail", source="servers of 8 GPUs")
    rate: Rate = like("400 Gbps", means="line rate of each GPU's NIC, in each direction", smooth=ALMOST)
    latency: Latency = like("1 us", means="propagation along each cable of the network, one way", smooth=ALMOST)
    nvlink_latency: Latency = like(
        "100 ns",
        100e-9,
        means="propagation inside a server, from a GPU to the NVLink switch or back",
        source="assumed",
        smooth=ALMOST,
    )


class RailOptimised(Rails, UpperLinks):
    """GPU r of every server hangs at the leaf of rail r of its group, spines above; NVLink inside the servers if it
    has a rate."""

    kind: Literal["rail_optimised"]
    groups: Count = like("1", 1, means="groups of servers, each with a leaf for every rail", source="ours: one group")
    spines: Count = like("8", means="spine switches, which join all leaves")
    uplinks: Count = like("1", 1, means="cables from each leaf to each spine", source="ours: the plain fabric")
    nvlink_rate: Rate | None = like(
        "450 GB/s",
        None,
        means="rate of each GPU into the NVLink switch of its server, in each direction",
        absent="no NVLink: GPUs of a server meet over the network",
        smooth=ALMOST,
    )


class RailOnly(Rails):
    """One switch a rail and nothing above: rails meet only inside the servers, over NVLink. GPUs on different rails of
    different servers are not connected."""

    begins_with = "shift"
    kind: Literal["rail_only"]
    nvlink_rate: Rate = like(
        "450 GB/s",
        means="rate of each GPU into the NVLink switch of its server, in each direction",
        smooth=ALMOST,
    )
