"""What may stand under `fabric` for routers with hosts of their own, and for any graph."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.keys.fabric import LATENCY, RATE, FabricSection
from fabsim.scenario.keys.fields import ALMOST, Count, Latency, Many, Rate, Text, like
from fabsim.scenario.keys.plane import UpperLinks

DRAGONFLY = "Kim, Dally, Scott, Abts, ISCA 2008"


class Torus(UpperLinks):
    """A torus of any dimensions, with one host at each router."""

    kind: Literal["torus"]
    dims: Annotated[Many[Count], Field(min_length=1)] = like(
        "[4, 4, 4]", means="routers along each dimension; a dimension of 2 is one cable, not two"
    )
    rate: Rate = like("400 Gbps", means="line rate of each host's link, in each direction", smooth=ALMOST)
    latency: Latency = LATENCY


class Dragonfly(UpperLinks):
    """Groups of routers: all of a group joined to each other, all groups joined to each other. `fabric_rate` and
    `fabric_latency` are those inside a group."""

    origin = DRAGONFLY
    kind: Literal["dragonfly"]
    groups: Count = like("9", means="groups; at most routers_per_group x global_links + 1")
    routers_per_group: Count = like("4", means="routers of each group")
    hosts_per_router: Count = like("2", means="hosts at each router, with one link each")
    global_links: Count = like("2", means="ports of each router to other groups")
    rate: Rate = RATE
    latency: Latency = LATENCY
    global_rate: Rate | None = like(
        "400 Gbps", None, means="line rate of the links between groups", absent="that inside a group", smooth=ALMOST
    )
    global_latency: Latency | None = like(
        "20 us",
        None,
        means="propagation along the cables between groups",
        absent="that inside a group",
        smooth=ALMOST,
    )


class GraphMl(FabricSection):
    """Any graph, from a GraphML file: nodes with `kind` host or switch, edges with `rate`, `latency` or `length`,
    `buffer` and `speed`, as text with a unit or as a number with the unit in the name (rate_gbps, length_km)."""

    kind: Literal["graphml"]
    file: Text = like("fabric.graphml", means="the graph; its path starts at the folder of the scenario")
    rate: Rate | None = like(
        "400 Gbps", None, means="line rate of edges that do not give theirs", absent="each gives its own", smooth=ALMOST
    )
    latency: Latency | None = like(
        "1 us",
        None,
        means="propagation along edges that give neither latency nor length",
        absent="each gives its own",
        smooth=ALMOST,
    )
    switch_latency: Latency = like(
        "500 ns",
        0.0,
        means="time that a switch takes to forward a packet, where the file does not say",
        source="ours: an ideal switch",
        smooth=ALMOST,
    )
