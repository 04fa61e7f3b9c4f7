"""What may stand under `transport`: the laws, with the parameters of each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.keys.fields import ALMOST, AutoSpan, Data, Many, Section, Size, like
from fabsim.scenario.keys.rate import Dcqcn, PatchedTimely, Timely
from fabsim.scenario.keys.window import Dctcp, Gain, Hpcc, PowerTcp, Rccc, RcccOversubscribed, Share, Swift
from fabsim.units import Amount


class Window(Section):
    """A fixed window of bytes in flight."""

    origin = "the constant law of uet-htsim, the reference packet simulator of the UEC"
    law = "fabsim.models.window:Window"

    kind: Literal["window"]
    window: Data = like(
        "1.5 BDP",
        Amount(1.5, relative=True),
        means="bytes on the wire that a flow may have in flight",
        source="uet-htsim's constant law; the UEC specification's first window",
        smooth=ALMOST,
    )


class Ideal(Section):
    """Every flow sends at its max-min fair rate, known at once; `share` of it."""

    origin = "Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2 (max-min fair flow control)"
    law = "fabsim.models.ideal:Ideal"

    kind: Literal["ideal"]
    share: Annotated[float, Field(gt=0.0, le=1.0)] = like(
        "1", 1.0, means="the part of its fair rate that a flow uses", source="ours: all of it", smooth=ALMOST
    )


class Nscc(Section):
    """The sender-side congestion control of Ultra Ethernet. Gains are those of its specification; `target` is the
    queueing delay that is aimed at, `auto` 0.75 of the base round trip of the longest route."""

    origin = "UEC specification 1.0, network-signal-based congestion control; uet-htsim where the two differ"
    law = "fabsim.models.nscc:Nscc"

    kind: Literal["nscc"]
    target: AutoSpan = like(
        "6 us",
        "auto",
        means="queueing delay that is aimed at",
        source="UEC specification 1.0, NSCC; uet-htsim has the same",
        absent="0.75 of the base round trip of the longest route",
        smooth=ALMOST,
    )
    largest: Annotated[float, Field(gt=0.0)] = like(
        "1.5",
        1.5,
        means="largest window, and the first one, in bandwidth-delay products",
        source="UEC specification 1.0, NSCC; uet-htsim has the same",
        smooth=ALMOST,
    )
    proportional: Gain = like(
        "4",
        4.0,
        means="gain of the proportional increase, below the target",
        source="UEC specification 1.0, NSCC; uet-htsim has the same",
        smooth=ALMOST,
    )
    fair: Gain = like(
        "5",
        5.0,
        means="gain of the fair increase, from the target on while nothing is marked, in packets",
        source="UEC specification 1.0, NSCC; uet-htsim has the same",
        smooth=ALMOST,
    )
    steady: Gain = like(
        "0.15",
        0.15,
        means="increase once a round trip, whatever the signals, in packets",
        source="UEC specification 1.0, NSCC; uet-htsim has the same",
        smooth=ALMOST,
    )
    fast: Gain = like(
        "0.25",
        0.25,
        means="fast increase, bytes a byte acknowledged after a window of bytes without queueing",
        source="UEC specification 1.0, NSCC; uet-htsim has the same",
        smooth=ALMOST,
    )
    gamma: Gain = like(
        "0.8",
        0.8,
        means="strength of the decrease, by how far the smoothed delay is above the target",
        source="UEC specification 1.0, NSCC; uet-htsim has the same",
        smooth=ALMOST,
    )
    deepest: Share = like(
        "0.5",
        0.5,
        means="smallest factor of one decrease",
        source="UEC specification 1.0, NSCC; uet-htsim has the same",
        smooth=ALMOST,
    )
    smoothing: Share = like(
        "0.0125", 0.0125, means="weight of a sample in the smoothed delay", source="uet-htsim", smooth=ALMOST
    )
    gate: Gain = like(
        "0.125",
        0.125,
        means="part of the largest window that must have arrived in a period, else quick adapt acts",
        source="uet-htsim",
        smooth="jumps",
    )
    chance: Annotated[float, Field(ge=0.0, le=1.0)] = like(
        "0",
        1.0,
        means="how much of the chance of whole packets, by the scenario's seed, is added to the mean that a fluid has",
        source="ours: all of it, a binomial's variance; with 0 equal flows stay equal",
        smooth="jumps",
    )
    knows_rtt: bool | Literal["auto"] = like(
        "true",
        "auto",
        means="whether a flow knows its own base round trip before its first packet is back, or takes the network's",
        source="uet-htsim (-enable_accurate_base_rtt)",
        absent="true where there are several sites, else false",
    )
    coalesced: Size = like(
        "16 KiB",
        16384.0,
        means="clean packets that one acknowledgement stands for; marked ones have their own",
        source="uet-htsim's receivers",
        smooth="jumps",
    )


Single = (
    Window | Ideal | Nscc | Dctcp | Swift | Dcqcn | Timely | PatchedTimely | Hpcc | PowerTcp | Rccc | RcccOversubscribed
)
Law = Annotated[Single, Field(discriminator="kind")]


class Mixed(Section):
    """Several laws in one run, one for each entry of `traffic`."""

    origin = "ours: each law sees its own flows, and they meet in the queues"
    law = "fabsim.models.mixed:Mixed"

    kind: Literal["mixed"]
    laws: Annotated[Many[Law], Field(min_length=1)] = like(
        "[{kind: dcqcn}, {kind: swift}]", means="the law of each entry of `traffic`, in their order"
    )


Transport = Annotated[Single | Mixed, Field(discriminator="kind")]
