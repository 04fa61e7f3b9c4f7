"""What a person may write in a scenario: every key, its type, its default, and an example for the refusals.

One class a section; where several kinds exist, `kind` chooses. Nothing here computes: see compile.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from fabsim.scenario.keys.balancer import Balancer, Oblivious
from fabsim.scenario.keys.direct import Dragonfly, GraphMl, Torus
from fabsim.scenario.keys.fabric import FatTree, HtsimTopology, LeafSpine, SingleSwitch
from fabsim.scenario.keys.fault import LinkFault
from fabsim.scenario.keys.fields import (
    ALMOST,
    AutoSpan,
    DoneOrSpan,
    Many,
    Section,
    Seed,
    Span,
    Text,
    Time,
    like,
)
from fabsim.scenario.keys.packet import PacketSection
from fabsim.scenario.keys.plane import MultiPlane, RailOnly, RailOptimised
from fabsim.scenario.keys.queue import Queue, Recovery, SelectiveRepeat, Trim
from fabsim.scenario.keys.routing import Ecmp, Routing
from fabsim.scenario.keys.sites import Sites
from fabsim.scenario.keys.sweep import Sweep
from fabsim.scenario.keys.traffic import Traffic
from fabsim.scenario.keys.transport import Transport, Window
from fabsim.scenario.keys.tune import Tune

Fabric = Annotated[
    LeafSpine
    | FatTree
    | SingleSwitch
    | MultiPlane
    | RailOptimised
    | RailOnly
    | Torus
    | Dragonfly
    | Sites
    | GraphMl
    | HtsimTopology,
    Field(discriminator="kind"),
]


class Sections(Section):
    """The whole file."""

    name: Text = like(
        "first flight", "scenario", means="what the run is called in tables, pictures and files", source="ours"
    )
    seed: Seed = like("1", 1, means="feeds everything random, unless a section gives a seed of its own", source="ours")
    seeds: Annotated[int, Field(ge=1, le=1_000_000)] = like(
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
