"""What a person may write in a scenario: every key, its type, its default, and an example for the refusals.

One class a section; where several kinds exist, `kind` chooses. Nothing here computes: see compile.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from fabsim.scenario.balancer_keys import Balancer, Oblivious
from fabsim.scenario.direct_keys import Dragonfly, GraphMl, Torus
from fabsim.scenario.fabric_keys import FatTree, HtsimTopology, LeafSpine, SingleSwitch
from fabsim.scenario.fault_keys import LinkFault
from fabsim.scenario.fields import (
    ALMOST,
    AutoSpan,
    Count,
    DoneOrSpan,
    Fraction,
    Length,
    Many,
    Section,
    Seed,
    Size,
    Span,
    Text,
    Time,
    like,
)
from fabsim.scenario.plane_keys import MultiPlane, RailOnly, RailOptimised
from fabsim.scenario.queue_keys import Queue, Recovery, SelectiveRepeat, Trim
from fabsim.scenario.sweep_keys import Sweep
from fabsim.scenario.traffic_keys import Traffic
from fabsim.scenario.transport_keys import Transport, Window
from fabsim.scenario.tune_keys import Tune
from fabsim.workload.packet import Packet


class PacketSection(Section):
    """Bytes on the wire of a full packet, of its header, and of a trimmed packet or acknowledgement."""

    mtu: Length = like(
        "4150 B", 4150.0, means="bytes on the wire of a full packet, header included", source="uet-htsim", smooth=ALMOST
    )
    header: Size = like("64 B", 64.0, means="bytes of the header of each packet", source="uet-htsim", smooth=ALMOST)
    trim: Size = like(
        "64 B", 64.0, means="bytes of a trimmed packet and of an acknowledgement", source="uet-htsim", smooth=ALMOST
    )

    acks: bool = like(
        "false",
        True,
        means="acknowledgements, one for each packet, take their part of the links on the way back",
        source="uet-htsim: under congestion each packet has its own",
    )

    @property
    def sizes(self) -> Packet:
        """The same, as the rooms below take it."""
        return Packet(self.mtu, self.header, self.trim, self.acks)


class Ecmp(Section):
    """One path a flow, by a seeded hash at every switch; `polarised`: all switches use the same hash."""

    kind: Literal["ecmp"]
    polarised: bool = like(
        "false",
        False,
        means="all switches use the same hash, so that choices of one tier repeat in the next",
        source="ours: switches are salted",
    )
    seed: Seed | None = like("1", None, means="seed of the hash", absent="the scenario's seed")


class AllPaths(Section):
    """An even split over all shortest paths: the ideal spray."""

    kind: Literal["all"]


class Drawn(Section):
    """Spray over a finite set of entropy values, each hashed to a path."""

    kind: Literal["drawn"]
    entropies: Count = like(
        "128",
        128,
        means="entropy values that a flow draws; each is hashed to a path",
        source="UEC specification 1.0 names 64 to 256; ours is in the middle",
    )
    seed: Seed | None = like("1", None, means="seed of the draw", absent="the scenario's seed")


class SwitchSpray(Section):
    """Every switch spreads packets over its next hops by itself, in turn or by the shortest queue. Its packets come
    to the next switch at random (see `queue.granular`)."""

    kind: Literal["switch_spray"]
    adaptive: bool = like(
        "false",
        True,
        means="by the shortest queue: paths are filled as fast as they empty; false: in turn, evenly",
        source="ours: what switches with adaptive routing do; held against uet-htsim's",
    )


class Explicit(Section):
    """Given paths: a CSV with the columns flow_id,src,dst,links (flows count from 1; links as "leaf0->spine3|...")."""

    kind: Literal["explicit"]
    file: Text = like(
        "paths.csv",
        means='CSV with the columns flow_id,src,dst,links; flows count from 1, links as "leaf0->spine3|..."',
    )


class GivenSplit(Section):
    """Shares of each flow on each path: `proportional` to the capacity of the paths, or a CSV file with the columns
    flow_id,link,pkts (how much of the flow goes over that link; every switch splits in that proportion)."""

    kind: Literal["split"]
    weights: Text = like(
        "proportional",
        means="proportional (to the capacity of the paths), or a CSV: flow_id,link,pkts",
    )


class Valiant(Section):
    """Paths of a dragonfly: minimal ones, and those through another group (Valiant)."""

    origin = "Valiant, SIAM J. Comput. 11, 1982; Kim, Dally, Scott, Abts, ISCA 2008"
    kind: Literal["valiant"]
    groups: Count | None = like(
        "4", None, means="intermediate groups of each flow, drawn by the seed", absent="each other group"
    )
    minimal: Fraction = like(
        "0.5", 0.5, means="share of the bytes on minimal paths", source="ours: half and half", smooth=ALMOST
    )
    seed: Seed | None = like("1", None, means="seed of the draw", absent="the scenario's seed")


Fabric = Annotated[
    LeafSpine
    | FatTree
    | SingleSwitch
    | MultiPlane
    | RailOptimised
    | RailOnly
    | Torus
    | Dragonfly
    | GraphMl
    | HtsimTopology,
    Field(discriminator="kind"),
]
Routing = Annotated[
    Ecmp | AllPaths | Drawn | SwitchSpray | Valiant | Explicit | GivenSplit, Field(discriminator="kind")
]


class Sections(Section):
    """The whole file."""

    name: Text = like(
        "first flight", "scenario", means="what the run is called in tables, pictures and files", source="ours"
    )
    seed: Seed = like("1", 1, means="feeds everything random, unless a section gives a seed of its own", source="ours")
    seeds: Count = like(
        "20",
        1,
        means="runs with so many seeds (seed, seed + 1, ...), as one batch: an ensemble",
        source="ours: one run",
    )
    precision: Literal["float32", "float64"] = like(
        "float32",
        "float32",
        means="numbers in which the engine computes",
        source="ours: what accelerators are fast in",
    )
    until: DoneOrSpan = like(
        "done",
        "done",
        means="time to simulate, or done: until the last flow is complete",
        source="ours",
        smooth="choice",
    )
    dt: AutoSpan = like(
        "auto",
        "auto",
        means="step of time; results converge as it shrinks",
        source="ours",
        absent="1 us, or less where a path is short",
        smooth=ALMOST,
    )
    every: Span = like(
        "10 us",
        10e-6,
        means="time between two frames of the series in the result; the run does not depend on it",
        source="ours",
        smooth="choice",
    )
    packet: PacketSection = like("{mtu: 4150 B}", PacketSection())
    fabric: Fabric = like("{kind: leaf_spine, leaves: 8, ...}", means="hosts, switches and the links between them")
    routing: Routing = like(
        "{kind: ecmp}", Ecmp(kind="ecmp"), means="which paths a flow takes", source="ours: what most fabrics run"
    )
    balancer: Balancer = like(
        "{kind: reps}",
        Oblivious(kind="oblivious"),
        means="how a sender moves bytes between the paths of the routing by what comes back from each",
        source="ours: it does not",
    )
    traffic: Annotated[Many[Traffic], Field(min_length=1)] = like(
        "[{kind: permutation, size: 2 MB}]", means="who sends how much to whom; the entries run together"
    )
    queue: Queue = like(
        "{kind: trim}", Trim(kind="trim"), means="the output queues of the switches", source="UEC specification 1.0"
    )
    recovery: Recovery = like(
        "{kind: go_back_n}",
        SelectiveRepeat(kind="selective_repeat"),
        means="what senders do about what is lost in silence, by ports that drop and by links with loss",
        source="ours: what newer transports do",
    )
    transport: Transport = like(
        "{kind: window, window: 1.5 BDP}",
        Window(kind="window"),
        means="how fast a sender may send",
        source="ours: the simplest law",
    )
    faults: Many[LinkFault] = like(
        "[{link: leaf0<->spine3, at: 100 us, until: 300 us, speed: 0}]",
        (),
        means="what happens to links on the way: they die, slow down, flap or lose bytes",
        source="ours: nothing happens",
    )
    react: Time = like(
        "1 s",
        30e-6,
        means="time after which senders know that a link is down, or up again, and use the paths that are alive",
        source="tens of us with multipath transports such as MRC, seconds with conventional rerouting "
        "(Araujo et al., arXiv:2605.04333)",
        smooth=ALMOST,
    )
    cases: dict[str, dict[str, Any]] = like(
        "{ECMP: {routing.kind: ecmp}}", {}, means="variants by name, each a set of overrides", source="ours: one run"
    )
    packets: dict[str, Text] = like(
        "{ECMP: completions.csv}",
        {},
        means="completion times that a packet simulator gave, to print beside; CSV with start_us,rx_finish_us, by case",
        source="ours: none",
    )
    prices: Text | None = like(
        "prices.yaml",
        None,
        means="price list for what `fabsim check` says of parts and cost",
        absent="the built-in list",
    )
    sweep: Sweep | None = like("{grid: {transport.window: [1 BDP, 2 BDP]}}", None)
    tune: Tune | None = like("{objective: last_completion}", None)


def kinds(key: str) -> tuple[str, ...]:
    """The kinds of a top-level section."""
    sections = {
        "fabric": Fabric,
        "routing": Routing,
        "balancer": Balancer,
        "traffic": Traffic,
        "queue": Queue,
        "recovery": Recovery,
        "transport": Transport,
    }
    classes = get_args(get_args(sections[key])[0])
    return tuple(get_args(section.model_fields["kind"].annotation)[0] for section in classes)


def default_section(key: str) -> dict[str, Any]:
    """A section that is not in the file, as far as an override needs it: its kind, where it has one."""
    field = Sections.model_fields.get(key)
    kind = getattr(field.default, "kind", None) if field else None
    return {"kind": kind} if kind else {}
