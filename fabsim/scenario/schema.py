"""What a person may write in a scenario: every key, its type, its default, and an example for the refusals.

One class a section; where several kinds exist, `kind` chooses. Nothing here computes: see compile.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from fabsim.scenario.fabric_keys import Fabric
from fabsim.scenario.fields import (
    AutoData,
    AutoSpan,
    Count,
    Data,
    DoneOrSpan,
    Length,
    Many,
    Section,
    Seed,
    Size,
    Span,
    Text,
    like,
)
from fabsim.scenario.traffic_keys import Traffic
from fabsim.units import Amount


class PacketSection(Section):
    """Bytes on the wire of a full packet, of its header, and of a trimmed packet or acknowledgement."""

    mtu: Length = like("4150 B", 4150.0)
    header: Size = like("64 B", 64.0)
    trim: Size = like("64 B", 64.0)


class Ecmp(Section):
    """One path a flow, by a seeded hash at every switch; `polarised`: all switches use the same hash."""

    kind: Literal["ecmp"]
    polarised: bool = like("false", False)
    seed: Seed | None = like("1", None)


class AllPaths(Section):
    """An even split over all shortest paths: the ideal spray."""

    kind: Literal["all"]


class Drawn(Section):
    """Spray over a finite set of entropy values, each hashed to a path."""

    kind: Literal["drawn"]
    entropies: Count = like("128", 128)
    seed: Seed | None = like("1", None)


class Explicit(Section):
    """Given paths: a CSV with the columns flow_id,src,dst,links (flows count from 1; links as "leaf0->spine3|...")."""

    kind: Literal["explicit"]
    file: Text = like("paths.csv")


class GivenSplit(Section):
    """Shares of each flow on each path: `proportional` to the capacity of the paths, or a CSV file with the columns
    flow_id,link,pkts (how much of the flow goes over that link; every switch splits in that proportion)."""

    kind: Literal["split"]
    weights: Text = like("proportional")


Routing = Annotated[Ecmp | AllPaths | Drawn | Explicit | GivenSplit, Field(discriminator="kind")]


class Trim(Section):
    """A finite buffer that trims; `auto` is 1, 0.2 and 0.8 bandwidth-delay products."""

    kind: Literal["trim"]
    buffer: AutoData = like("1 BDP", "auto")
    ecn_low: AutoData = like("0.2 BDP", "auto")
    ecn_high: AutoData = like("0.8 BDP", "auto")


class Window(Section):
    """A fixed window of bytes in flight."""

    kind: Literal["window"]
    window: Data = like("1.5 BDP", Amount(1.5, relative=True))


class Ideal(Section):
    """Every flow sends at its max-min fair rate, known at once; `share` of it."""

    kind: Literal["ideal"]
    share: Annotated[float, Field(gt=0.0, le=1.0)] = like("1", 1.0)


Transport = Annotated[Window | Ideal, Field(discriminator="kind")]


class Sweep(Section):
    """Values to try: every combination of `grid`, each with `seeds` seeds."""

    grid: dict[str, Annotated[Many[Any], Field(min_length=1)]] = Field(
        min_length=1, examples=["{transport.window: [1 BDP, 2 BDP]}"]
    )
    seeds: Count = like("4", 1)


class Tune(Section):
    """What to better by gradient descent."""

    parameter: Literal["split.weight"] = like("split.weight", "split.weight")
    objective: Literal["last_completion", "mean_completion"] = like("last_completion", "last_completion")
    steps: Count = like("60", 60)
    optimiser: Literal["adam", "sgd"] = like("adam", "adam")
    learning_rate: Annotated[float, Field(gt=0.0)] = like("0.1", 0.1)


class Sections(Section):
    """The whole file."""

    name: Text = like("first flight", "scenario")
    seed: Seed = like("1", 1)
    precision: Literal["float32", "float64"] = like("float32", "float32")
    until: DoneOrSpan = like("done", "done")
    dt: AutoSpan = like("auto", "auto")
    every: Span = like("10 us", 10e-6)
    packet: PacketSection = like("{mtu: 4150 B}", PacketSection())
    fabric: Fabric = like("{kind: leaf_spine, leaves: 8, ...}")
    routing: Routing = like("{kind: ecmp}", Ecmp(kind="ecmp"))
    traffic: Annotated[Many[Traffic], Field(min_length=1)] = like("[{kind: permutation, size: 2 MB}]")
    queue: Trim = like("{kind: trim}", Trim(kind="trim"))
    transport: Transport = like("{kind: window, window: 1.5 BDP}", Window(kind="window"))
    cases: dict[str, dict[str, Any]] = Field(default_factory=dict, examples=["{ECMP: {routing.kind: ecmp}}"])
    packets: dict[str, Text] = Field(default_factory=dict, examples=["{ECMP: completions.csv}"])
    sweep: Sweep | None = like("{grid: {transport.window: [1 BDP, 2 BDP]}}", None)
    tune: Tune | None = like("{parameter: split.weight}", None)


def kinds(key: str) -> tuple[str, ...]:
    """The kinds of a top-level section."""
    sections = {"fabric": Fabric, "routing": Routing, "traffic": Traffic, "transport": Transport}
    classes = get_args(get_args(sections[key])[0])
    return tuple(get_args(section.model_fields["kind"].annotation)[0] for section in classes)


def default_section(key: str) -> dict[str, Any]:
    """A section that is not in the file, as far as an override needs it: its kind, where it has one."""
    field = Sections.model_fields.get(key)
    kind = getattr(field.default, "kind", None) if field else None
    return {"kind": kind} if kind else {}
