"""What may stand under `balancer`: how a sender moves its bytes between paths by what comes back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.keys.fields import ALMOST, Section, Span, Time, like

Some = Annotated[float, Field(gt=0.0)]

MRC = "Araujo et al., arXiv:2605.04333; Sohan et al., arXiv:2606.18170"
REPS = "Bonato et al., REPS, arXiv:2407.21625; uet-htsim"


class Oblivious(Section):
    """No feedback: the split of the routing, from the first byte to the last."""

    origin = "ours: what sprays do that do not listen"
    law = "fabsim.models.model:Split"

    kind: Literal["oblivious"]


class Recycling(Section):
    """What balancers have that use clean entropy values again."""

    memory: Some = like(
        "8", 8.0, means="good entropy values that a flow keeps, one a packet", source=REPS, smooth=ALMOST
    )
    echo: Annotated[float, Field(ge=0.0, le=1.0)] = like(
        "1",
        0.25,
        means="part of the clean packets whose entropy value comes back with an acknowledgement",
        source="uet-htsim: an acknowledgement each 16 KiB, and so for one packet in four",
        smooth=ALMOST,
    )


class InTurns(Section):
    """What balancers have that pass over bad entropy values."""

    mark: Some = like(
        "1", 1.0, means="turns that an entropy value loses for a marked packet", source="uet-htsim", smooth=ALMOST
    )
    trim: Some = like(
        "4", 4.0, means="turns that an entropy value loses for a trimmed packet", source="uet-htsim", smooth=ALMOST
    )
    loss: Some = like(
        "15",
        15.0,
        means="turns that an entropy value loses for a packet that is missed after a timeout",
        source="uet-htsim",
        smooth=ALMOST,
    )
    entropies: Some | None = like(
        "128",
        None,
        means="entropy values that a flow goes through in turn",
        absent="those of routing: {kind: drawn}; 128 for other routings",
        smooth=ALMOST,
    )


class Reps(Recycling):
    """An entropy value that comes back unmarked is used again; for others, one is drawn anew, but for some time after a
    timeout."""

    origin = REPS
    law = "fabsim.models.reps:Reps"

    kind: Literal["reps"]
    freeze: Time = like(
        "1 ms",
        10e-3,
        means="time after a timeout for which a flow uses only values that it keeps; 0 s: it never freezes",
        source=REPS,
        smooth=ALMOST,
    )
    explore: Annotated[float, Field(ge=0.0)] = like(
        "16", 16.0, means="packets that draw their paths after that time", source=REPS, smooth=ALMOST
    )


class Bitmap(InTurns):
    """Entropy values in turn; one with a mark, a trim or a timeout is passed over for some turns."""

    origin = "uet-htsim's bitmap"
    law = "fabsim.models.bitmap:Bitmap"

    kind: Literal["bitmap"]


class RepsBitmap(Recycling, InTurns):
    """Both: an entropy value that comes back unmarked is used again; else it is the next that has no penalty."""

    origin = "uet-htsim's mixed, its default"
    law = "fabsim.models.reps_bitmap:RepsBitmap"

    kind: Literal["mixed"]


class Mrc(Section):
    """Entropy values in turn over all planes; a mark or a trim passes one over, a loss retires it, and probes bring it
    back. Dead links are found by the losses on them, and `react` is nothing to it. Marks of the last hop say nothing of
    a path: give queue.ecn_last_hop: false."""

    origin = MRC
    law = "fabsim.models.mrc:Mrc"

    kind: Literal["mrc"]
    entropies: Some | None = like(
        "256",
        None,
        means="active entropy values of a flow, as many in each plane",
        absent="those of routing: {kind: drawn}; 128 for other routings",
        smooth=ALMOST,
    )
    backup: Annotated[float, Field(ge=0.0)] | None = like(
        "128",
        None,
        means="values of a flow that wait to take the places of retired ones",
        absent="as many as are active; how many MRC has is not published",
        smooth=ALMOST,
    )
    skip: Some = like(
        "1",
        1.0,
        means="turns for which a value is passed over after a mark, or a trim before the last hop",
        source=MRC,
        smooth=ALMOST,
    )
    detect: Span = like(
        "30 us",
        30e-6,
        means="time from a silent loss until the sender misses it: its value is retired, and it is sent again; while "
        "nothing comes back it grows by recovery.backoff",
        source=f"{MRC}: a few tens of us; ours is in the middle",
        smooth=ALMOST,
    )
    probe: Span = like(
        "1 ms",
        100e-6,
        means="time from one probe of a retired value to the next",
        source="ours; MRC's is not published",
        smooth=ALMOST,
    )
    successes: Some = like(
        "3",
        10.0,
        means="probes in a row that must come back before a retired value is used again",
        source="ours; MRC's is not published",
        smooth=ALMOST,
    )
    min_active: Some = like(
        "16",
        8.0,
        means="values of a flow that are never retired, in equal parts of its planes",
        source="ours, one for each of 8 planes; MRC's (ev_min_active) is not published",
        smooth=ALMOST,
    )
    remap: Time = like(
        "100 us",
        1.0,
        means="time from a port's going down or up, at either end, until its values have moved to other planes or back",
        source=f"{MRC}: less than 1 s on a bench, a few seconds in production",
        smooth=ALMOST,
    )


class Flowlet(Section):
    """A flow takes one path, and another one, drawn anew, after a gap in its sending."""

    origin = "Vanini et al., LetFlow, NSDI 2017; Alizadeh et al., CONGA, SIGCOMM 2014"
    law = "fabsim.models.flowlet:Flowlet"

    kind: Literal["flowlet"]
    timeout: Span = like(
        "50 us",
        500e-6,
        means="gap after which a flow may take another path: more than paths differ in their delays",
        source="Alizadeh et al., CONGA, SIGCOMM 2014, at 10 Gbps",
        smooth="jumps",
    )


class IdealSplit(Section):
    """All flows at once are split so that the busiest links are as idle as they can be: what no balancer can beat by
    much."""

    origin = "ours: each path's share over how busy its busiest link is, until all are equal"
    law = "fabsim.models.ideal_split:IdealSplit"

    kind: Literal["ideal"]


Balancer = Annotated[Oblivious | Reps | Bitmap | RepsBitmap | Mrc | Flowlet | IdealSplit, Field(discriminator="kind")]
