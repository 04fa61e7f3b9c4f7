"""What may stand under `fabric`: the kinds of fabric, and links that are not like the rest."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.fields import Count, Fraction, Latency, Length, Many, Rate, Ratio, Section, Text, like


class Degraded(Section):
    """Links that are not like the rest. `link` is a name ("leaf0->spine3"), a pattern ("leaf*->spine0"), or a node
    ("spine0": all its links, both ways)."""

    link: Text = like("spine0")
    speed: Fraction | None = like("0.25", None)
    rate: Rate | None = like("100 Gbps", None)
    latency: Latency | None = like("20 km", None)
    buffer: Length | None = like("200 kB", None)


class FabricSection(Section):
    """What every fabric has."""

    degraded: Many[Degraded] = like("[{link: spine0, speed: 0.25}]", ())


class LeafSpine(FabricSection):
    """Two tiers: every leaf has `uplinks` cables to every spine."""

    kind: Literal["leaf_spine"]
    leaves: Count = like("8")
    spines: Count = like("16")
    hosts_per_leaf: Count = like("16")
    rate: Rate = like("400 Gbps")
    latency: Latency = like("1 us")
    fabric_rate: Rate | None = like("400 Gbps", None)
    fabric_latency: Latency | None = like("2 us", None)
    switch_latency: Latency = like("500 ns", 0.0)
    uplinks: Count = like("1", 1)
    ports: Count | None = like("64", None)


class TierSection(Section):
    """The switches of one tier and the cables below them, where they differ from the rest of the fat tree."""

    rate: Rate | None = like("800 Gbps", None)
    latency: Latency | None = like("2 us", None)
    switch_latency: Latency | None = like("500 ns", None)
    bundle: Count = like("1", 1)


class Tiers(Section):
    """Differences by tier."""

    leaf: TierSection = TierSection()
    agg: TierSection = TierSection()
    core: TierSection = TierSection()


class Oversubscription(Section):
    """Ports down for each port up, at the leaves and at the aggregation switches."""

    leaf: Ratio = like("4", 1.0)
    agg: Ratio = like("1", 1.0)


class FatTree(FabricSection):
    """Three tiers: give `k` for the tree of k-port switches (with an oversubscription), or the numbers of each tier."""

    kind: Literal["fat_tree"]
    k: Count | None = like("8", None)
    oversubscription: Oversubscription = like("{leaf: 4}", Oversubscription())
    pods: Count | None = like("8", None)
    leaves_per_pod: Count | None = like("4", None)
    hosts_per_leaf: Count | None = like("4", None)
    leaf_uplinks: Count | None = like("4", None)
    agg_uplinks: Count | None = like("4", None)
    tiers: Tiers = like("{core: {rate: 800 Gbps}}", Tiers())
    rate: Rate = like("400 Gbps")
    latency: Latency = like("1 us")
    switch_latency: Latency = like("500 ns", 0.0)
    ports: Count | None = like("64", None)


class SingleSwitch(FabricSection):
    """All hosts behind one switch."""

    kind: Literal["single_switch"]
    hosts: Count = like("16")
    rate: Rate = like("400 Gbps")
    latency: Latency = like("1 us")
    switch_latency: Latency = like("500 ns", 0.0)
    ports: Count | None = like("64", None)


class HtsimTopology(FabricSection):
    """A topology file of the htsim packet simulators (.topo)."""

    kind: Literal["htsim"]
    file: Text = like("fabric.topo")


Fabric = Annotated[LeafSpine | FatTree | SingleSwitch | HtsimTopology, Field(discriminator="kind")]
