"""What may stand under `fabric`: the kinds of fabric, and links that are not like the rest."""

from __future__ import annotations

from typing import Literal

from fabsim.scenario.keys.fields import ALMOST, Count, Fraction, Latency, Length, Many, Rate, Ratio, Section, Text, like


class Degraded(Section):
    """Links that are not like the rest. `link` is a name ("leaf0->spine3"), a pattern ("leaf*->spine0"), or a node
    ("spine0": all its links, both ways)."""

    link: Text = like(
        "spine0",
        means='a link ("leaf0->spine3"), a pattern ("leaf*->spine0"), or a node ("spine0": all its links, both ways)',
    )
    speed: Fraction | None = like(
        "0.25",
        None,
        means="the part of its rate that is left; 0 is dead. Queue and thresholds shrink with it",
        absent="as it was",
        smooth=ALMOST,
    )
    rate: Rate | None = like("100 Gbps", None, means="another line rate", absent="as it was", smooth=ALMOST)
    latency: Latency | None = like(
        "20 km", None, means="another propagation time, one way", absent="as it was", smooth=ALMOST
    )
    buffer: Length | None = like(
        "200 kB", None, means="another size of its output queue", absent="as `queue` says", smooth=ALMOST
    )
    loss: Fraction | None = like(
        "0.001",
        None,
        means="share of all packets that it loses at random, by the scenario's seed, in silence; `recovery` says when "
        "they come back",
        absent="as it was: none",
        smooth=ALMOST,
    )
    count: Count | None = like(
        "4",
        None,
        means="so many of the cables that fit, drawn by the scenario's seed, both ways",
        absent="all that fit",
    )


class FabricSection(Section):
    """What every fabric has."""

    degraded: Many[Degraded] = like(
        "[{link: spine0, speed: 0.25}]",
        (),
        means="links that are not like the rest: slow, dead, longer, or with another buffer",
        source="ours: a healthy fabric",
    )


RATE = like("400 Gbps", means="line rate of the hosts' links, in each direction", smooth=ALMOST)
LATENCY = like("1 us", means="propagation along each cable, one way", smooth=ALMOST)
SWITCH_LATENCY = like(
    "500 ns",
    0.0,
    means="time that every switch takes to forward a packet",
    source="ours: an ideal switch",
    smooth=ALMOST,
)
PORTS = like(
    "64", None, means="ports of a switch; more cables than that are refused", absent="not checked", smooth="choice"
)
"""Keys that several kinds of fabric have."""


class LeafSpine(FabricSection):
    """Two tiers: every leaf has `uplinks` cables to every spine."""

    kind: Literal["leaf_spine"]
    leaves: Count = like("8", means="leaf switches")
    spines: Count = like("16", means="spine switches")
    hosts_per_leaf: Count = like("16", means="hosts on each leaf, with one link each")
    rate: Rate = RATE
    latency: Latency = LATENCY
    fabric_rate: Rate | None = like(
        "400 Gbps",
        None,
        means="line rate of the links between leaves and spines",
        absent="the same as `rate`",
        smooth=ALMOST,
    )
    fabric_latency: Latency | None = like(
        "2 us",
        None,
        means="propagation along the cables between leaves and spines",
        absent="the same as `latency`",
        smooth=ALMOST,
    )
    switch_latency: Latency = SWITCH_LATENCY
    uplinks: Count = like("1", 1, means="cables from each leaf to each spine", source="ours: the plain fabric")
    ports: Count | None = PORTS


class TierSection(Section):
    """The switches of one tier and the cables below them, where they differ from the rest of the fat tree."""

    rate: Rate | None = like(
        "800 Gbps", None, means="line rate of the cables below this tier", absent="that of the fabric", smooth=ALMOST
    )
    latency: Latency | None = like(
        "2 us", None, means="propagation along the cables below this tier", absent="that of the fabric", smooth=ALMOST
    )
    switch_latency: Latency | None = like(
        "500 ns", None, means="forwarding time of the switches of this tier", absent="that of the fabric", smooth=ALMOST
    )
    bundle: Count = like(
        "1", 1, means="parallel cables in place of each one below this tier", source="ours: the plain tree"
    )


class Tiers(Section):
    """Differences by tier."""

    leaf: TierSection = like("{rate: 800 Gbps}", TierSection(), means="leaves and the cables of the hosts")
    agg: TierSection = like("{rate: 800 Gbps}", TierSection(), means="aggregation switches and the cables below them")
    core: TierSection = like("{rate: 800 Gbps}", TierSection(), means="core switches and the cables below them")


class Oversubscription(Section):
    """Ports down for each port up, at the leaves and at the aggregation switches."""

    leaf: Ratio = like(
        "4",
        1.0,
        means="capacity down over capacity up at the leaves, with `k`; it takes uplinks away",
        source="ours: full bisection",
        smooth="jumps",
    )
    agg: Ratio = like(
        "1",
        1.0,
        means="capacity down over capacity up at the aggregation switches, with `k`",
        source="ours: full bisection",
        smooth="jumps",
    )


class FatTree(FabricSection):
    """Three tiers: give `k` for the tree of k-port switches (with an oversubscription), or the numbers of each tier."""

    kind: Literal["fat_tree"]
    k: Count | None = like(
        "8",
        None,
        means="ports of every switch: k pods, k^3 / 4 hosts",
        absent="give the five numbers below",
        begin=True,
    )
    oversubscription: Oversubscription = like("{leaf: 4}", Oversubscription())
    pods: Count | None = like("8", None, means="pods, if there is no `k`", absent="from `k`")
    leaves_per_pod: Count | None = like("4", None, means="leaf switches in each pod", absent="from `k`")
    hosts_per_leaf: Count | None = like("4", None, means="hosts on each leaf", absent="from `k`")
    leaf_uplinks: Count | None = like(
        "4", None, means="links up from each leaf", absent="from `k` and `oversubscription`"
    )
    agg_uplinks: Count | None = like(
        "4", None, means="links up from each aggregation switch", absent="from `k` and `oversubscription`"
    )
    tiers: Tiers = like("{core: {rate: 800 Gbps}}", Tiers())
    rate: Rate = RATE
    latency: Latency = LATENCY
    switch_latency: Latency = SWITCH_LATENCY
    ports: Count | None = PORTS


class SingleSwitch(FabricSection):
    """All hosts behind one switch."""

    kind: Literal["single_switch"]
    hosts: Count = like("16", means="hosts, with one link each")
    rate: Rate = RATE
    latency: Latency = LATENCY
    switch_latency: Latency = SWITCH_LATENCY
    ports: Count | None = PORTS


class HtsimTopology(FabricSection):
    """A topology file of the htsim packet simulators (.topo)."""

    kind: Literal["htsim"]
    file: Text = like("fabric.topo", means="the topology file (.topo); its path starts at the folder of the scenario")
