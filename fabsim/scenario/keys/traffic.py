"""What may stand in the list `traffic`: who sends how much to whom."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.keys.classes import Classed
from fabsim.scenario.keys.fields import (
    ALMOST,
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


class TrafficSection(Classed):
    """What all generated traffic has."""

    start: Time = like("0 us", 0.0, means="when its flows may first send", source="ours: at once", smooth=ALMOST)


class Permutation(TrafficSection):
    """Every host sends to another, and receives from one."""

    kind: Literal["permutation"]
    size: Size = like("2 MB", means="payload of each flow", smooth=ALMOST)
    across: bool = like(
        "true", False, means="whether every host sends to one of another site", source="ours: to any other host"
    )
    seed: Seed | None = like(
        "1", None, means="seed of the permutation", absent="the scenario's seed plus the number of the entry"
    )


class Shift(TrafficSection):
    """Host i sends to host i + by."""

    kind: Literal["shift"]
    size: Size = like("2 MB", means="payload of each flow", smooth=ALMOST)
    by: Count = like("16", means="how many hosts further the receiver is")


class Incast(TrafficSection):
    """Many send to one; `senders` is how many (drawn from the others), or a list of hosts."""

    kind: Literal["incast"]
    size: Size = like("1 MB", means="payload of each flow", smooth=ALMOST)
    senders: HostsOrCount = like("32", means="how many send (drawn from the other hosts), or which", smooth="jumps")
    receiver: Host = like("0", 0, means="host that receives all flows", source="ours: the first host", smooth="choice")
    far: Annotated[int, Field(ge=0)] | None = like(
        "4",
        None,
        means="how many of them are drawn from other sites than the receiver's; the rest from its own",
        absent="drawn from all hosts",
    )
    seed: Seed | None = like(
        "1", None, means="seed of the draw of senders", absent="the scenario's seed plus the number of the entry"
    )


class AllToAll(TrafficSection):
    """Everyone sends `size` to everyone else, at most `window` at once. `hosts` is how many take part (the first ones),
    or a list of hosts; all, if not given."""

    kind: Literal["all_to_all"]
    size: Size = like("256 KiB", means="payload of each flow", smooth=ALMOST)
    window: Count | None = like("8", None, means="flows that each host has under way at once", absent="all at once")
    hosts: HostsOrCount | None = like(
        "64", None, means="how many hosts take part (the first ones), or which", absent="all hosts", smooth="jumps"
    )


class OneFlow(Section):
    """One flow of a list. It may start `after` other flows have completed (their numbers in the list, from 0, or their
    names), and a `delay` later."""

    name: Text | None = like(
        "first", None, means="a name, by which others may wait for it", absent="its number in the list, from 0"
    )
    src: Host = like("0", means="host that sends", smooth="choice")
    dst: Host = like("17", means="host that receives", smooth="choice")
    size: Size = like("2 MB", means="payload", smooth=ALMOST)
    start: Time = like(
        "0 us", 0.0, means="when it may first send, if it waits for nobody", source="ours: at once", smooth=ALMOST
    )
    after: FlowNames = like(
        "0", (), means="flows that must be complete before it starts", source="ours: it waits for nobody"
    )
    delay: Time = like(
        "0 us", 0.0, means="time from their completion to its start", source="ours: at once", smooth=ALMOST
    )


class ListedFlows(Classed):
    """Flows one by one: in the scenario (`list`), or in a CSV `file` with the columns src,dst,bytes[,start_us]."""

    kind: Literal["flows"]
    file: Text | None = like(
        "flows.csv",
        None,
        means="CSV with the columns src,dst,bytes[,start_us], in place of a list",
        absent="give a list",
    )
    list: Many[OneFlow] | None = like(
        "[{src: 0, dst: 17, size: 2 MB}]", None, means="the flows, one by one", absent="give a file"
    )


class Ring(TrafficSection):
    """A ring all-reduce of `size` bytes over `ranks` hosts, over several groups of hosts, or over all.

    `grain`: bytes that pass from one rank to the next at a time; `chunk` is size / ranks (the step-by-step ring), `0 B`
    a perfect stream; `steps` writes out every step as a flow of its own.
    """

    kind: Literal["ring"]
    size: Length = like("64 MiB", means="bytes that every rank has to reduce", smooth=ALMOST)
    ranks: Count | None = like(
        "16", None, means="how many hosts are in the ring (the first ones)", absent="all, or `groups`"
    )
    groups: Annotated[Many[Many[Host]], Field(min_length=1)] | None = like(
        "[[0, 1, 2, 3]]", None, means="rings by their hosts, in the order of the ring", absent="one ring"
    )
    grain: Grain = like(
        "chunk",
        "chunk",
        means="bytes that pass on at a time; chunk: size / ranks, 0 B: a stream, steps: a flow for each step",
        source="the step-by-step ring (Patarasuk and Yuan, JPDC 69(2), 2009)",
        smooth=ALMOST,
    )


class HtsimMatrix(Classed):
    """A connection matrix of the htsim packet simulators (.cm); its start times have no unit of their own."""

    kind: Literal["htsim"]
    file: Text = like("matrix.cm", means="the connection matrix (.cm); its path starts at the folder of the scenario")
    start_unit: Literal["us", "ps"] = like("us", means="unit of the start times in the file, which has none of its own")


Traffic = Annotated[
    Permutation | Shift | Incast | AllToAll | ListedFlows | Ring | HtsimMatrix, Field(discriminator="kind")
]
