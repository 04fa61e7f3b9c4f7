"""What may stand under `fabric` for several sites that are joined by long-haul links."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.keys.direct import Dragonfly, Torus
from fabsim.scenario.keys.fabric import FabricSection, FatTree, LeafSpine, SingleSwitch
from fabsim.scenario.keys.fields import ALMOST, Count, Host, Latency, Length, Many, Rate, Section, like
from fabsim.scenario.keys.plane import MultiPlane, RailOptimised

OneSite = Annotated[
    LeafSpine | FatTree | SingleSwitch | MultiPlane | RailOptimised | Torus | Dragonfly, Field(discriminator="kind")
]


class Haul(Section):
    """Long-haul links between two sites, by one route. Several routes between the same sites may differ; a hash takes
    them for equal."""

    between: Annotated[Many[Host], Field(min_length=2, max_length=2)] | None = like(
        "[0, 1]", None, means="the two sites, by their number in `fabrics`, from 0", absent="the first two: [0, 1]"
    )
    preset: Literal["fairwater", "campus"] | None = like(
        "fairwater",
        None,
        means="a distance that is known: fairwater 1,127 km (Wisconsin to Georgia), campus 2 km",
        absent="give latency",
    )
    latency: Latency | None = like(
        "100 km",
        None,
        means="propagation along each link, one way: a time, or a distance in fibre at 4.9 us per km",
        absent="from `preset`",
        smooth=ALMOST,
        begin=True,
    )
    rate: Rate = like("1.6 Tbps", means="line rate of each link, in each direction", smooth=ALMOST)
    links: Count = like(
        "2",
        1,
        means="parallel links between each border switch and its counterpart at the other site",
        source="ours: the plain route",
    )

    @property
    def ends(self) -> tuple[int, int]:
        """The two sites."""
        one, other = self.between or (0, 1)
        return one, other


class BorderSection(Section):
    """The border switches of each site, between its uppermost switches and the long-haul links."""

    switches: Count = like(
        "2",
        1,
        means="border switches of each site (of each plane, if hosts have a port into each of several)",
        source="ours: one",
    )
    links: Count = like(
        "1", 1, means="cables from each uppermost switch of a site to each of its borders", source="ours: the plain one"
    )
    rate: Rate | None = like(
        "800 Gbps",
        None,
        means="line rate of each of these cables",
        absent="that of the fastest port of a host of the site",
        smooth=ALMOST,
    )
    latency: Latency | None = like(
        "2 us",
        None,
        means="propagation along each of these cables",
        absent="that of the longest cable of a host of the site",
        smooth=ALMOST,
    )
    switch_latency: Latency = like(
        "500 ns",
        0.0,
        means="time that a border switch takes to forward a packet",
        source="ours: an ideal switch",
        smooth=ALMOST,
    )
    buffer: Length | None = like(
        "64 MB",
        None,
        means="size of each output queue of a border switch; its thresholds follow, unless they are given",
        absent="1 BDP of the longest route between sites: a deep buffer",
        smooth=ALMOST,
    )


class Sites(FabricSection):
    """Several fabrics, each with border switches above its uppermost ones, which long-haul links join. Traffic inside a
    site stays there. Hosts are numbered through, site by site; switches are called "site0.leaf1", borders "border0"."""

    kind: Literal["sites"]
    fabrics: Annotated[Many[OneSite], Field(min_length=2)] = like(
        "[{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 4, rate: 400 Gbps, latency: 1 us}, "
        "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 4, rate: 400 Gbps, latency: 1 us}]",
        means="the fabric of each site, as if it stood alone",
    )
    routes: Annotated[Many[Haul], Field(min_length=1)] = like(
        "[{latency: 100 km, rate: 1.6 Tbps}]", means="the long-haul links, route by route"
    )
    border: BorderSection = like("{switches: 2, buffer: 64 MB}", BorderSection())
