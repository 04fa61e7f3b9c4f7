"""What may stand in the list `traffic`: who sends how much to whom."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.fields import (
    Count,
    FlowNames,
    Grain,
    Host,
    HostsOrCount,
    Length,
    Many,
    Section,
    Seed,
    Size,
    Text,
    Time,
    like,
)


class TrafficSection(Section):
    """What all generated traffic has."""

    start: Time = like("0 us", 0.0)


class Permutation(TrafficSection):
    """Every host sends to another, and receives from one."""

    kind: Literal["permutation"]
    size: Size = like("2 MB")
    seed: Seed | None = like("1", None)


class Shift(TrafficSection):
    """Host i sends to host i + by."""

    kind: Literal["shift"]
    size: Size = like("2 MB")
    by: Count = like("16")


class Incast(TrafficSection):
    """Many send to one; `senders` is how many (drawn from the others), or a list of hosts."""

    kind: Literal["incast"]
    size: Size = like("1 MB")
    senders: HostsOrCount = like("32")
    receiver: Host = like("0", 0)
    seed: Seed | None = like("1", None)


class AllToAll(TrafficSection):
    """Everyone sends `size` to everyone else, at most `window` at once. `hosts` is how many take part (the first ones),
    or a list of hosts; all, if not given."""

    kind: Literal["all_to_all"]
    size: Size = like("256 KiB")
    window: Count | None = like("8", None)
    hosts: HostsOrCount | None = like("64", None)


class OneFlow(Section):
    """One flow of a list. It may start `after` other flows have completed (their numbers in the list, from 0, or their
    names), and a `delay` later."""

    name: Text | None = like("first", None)
    src: Host = like("0")
    dst: Host = like("17")
    size: Size = like("2 MB")
    start: Time = like("0 us", 0.0)
    after: FlowNames = like("0", ())
    delay: Time = like("0 us", 0.0)


class ListedFlows(Section):
    """Flows one by one: in the scenario (`list`), or in a CSV `file` with the columns src,dst,bytes[,start_us]."""

    kind: Literal["flows"]
    file: Text | None = like("flows.csv", None)
    list: Many[OneFlow] | None = like("[{src: 0, dst: 17, size: 2 MB}]", None)


class Ring(TrafficSection):
    """A ring all-reduce of `size` bytes over `ranks` hosts, or over several groups of hosts.

    `grain`: bytes that pass from one rank to the next at a time; `chunk` is size / ranks (the step-by-step ring), `0 B`
    a perfect stream; `steps` writes out every step as a flow of its own.
    """

    kind: Literal["ring"]
    size: Length = like("64 MiB")
    ranks: Count | None = like("16", None)
    groups: Many[Many[Host]] | None = like("[[0, 1, 2, 3]]", None)
    grain: Grain = like("chunk", "chunk")


class HtsimMatrix(Section):
    """A connection matrix of the htsim packet simulators (.cm); its start times have no unit of their own."""

    kind: Literal["htsim"]
    file: Text = like("matrix.cm")
    start_unit: Literal["us", "ps"] = like("us")


Traffic = Annotated[
    Permutation | Shift | Incast | AllToAll | ListedFlows | Ring | HtsimMatrix, Field(discriminator="kind")
]
