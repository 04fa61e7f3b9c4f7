"""What may stand under `balancer`: how a sender moves its bytes between paths by what comes back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.keys.fields import ALMOST, Section, like

Some = Annotated[float, Field(gt=0.0)]

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
    entropies: Some | None = like(
        "128",
        None,
        means="entropy values that a flow goes through in turn",
        absent="those of routing: {kind: drawn}; 128 for other routings",
        smooth=ALMOST,
    )


class Reps(Recycling):
    """An entropy value that comes back unmarked is used again; for others, one is drawn anew."""

    origin = REPS
    law = "fabsim.models.reps:Reps"

    kind: Literal["reps"]


class Bitmap(InTurns):
    """Entropy values in turn; one with a mark or a trim is passed over for some turns."""

    origin = "uet-htsim's bitmap"
    law = "fabsim.models.bitmap:Bitmap"

    kind: Literal["bitmap"]


class RepsBitmap(Recycling, InTurns):
    """Both: an entropy value that comes back unmarked is used again; else it is the next that has no penalty."""

    origin = "uet-htsim's mixed, its default"
    law = "fabsim.models.reps_bitmap:RepsBitmap"

    kind: Literal["mixed"]


Balancer = Annotated[Oblivious | Reps | Bitmap | RepsBitmap, Field(discriminator="kind")]
