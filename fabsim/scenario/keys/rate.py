"""What may stand under `transport`: laws that keep a rate."""

from __future__ import annotations

from typing import Any, Literal

from fabsim.scenario.keys.fields import ALMOST, AutoRate, Length, Rate, Section, Span, like
from fabsim.scenario.keys.window import Gain, Share

DCQCN = "Zhu et al., SIGCOMM 2015; Zhu, Ghobadi, Misra, Padhye, CoNEXT 2016"
TIMELY = "Mittal et al., TIMELY, SIGCOMM 2015; Zhu, Ghobadi, Misra, Padhye, CoNEXT 2016"


def first_rate() -> Any:
    """The key of a rate at the start."""
    return like(
        "40 Gbps",
        "auto",
        means="rate at the start",
        source="Zhu et al., SIGCOMM 2015: line rate",
        absent="that of the NIC",
        smooth=ALMOST,
    )


def smallest_rate() -> Any:
    """The key of a smallest rate."""
    return like("10 Mbps", 10e6 / 8, means="smallest rate", source="ours", smooth=ALMOST)


class Dcqcn(Section):
    """A rate cut by notifications of marked packets, and raised by a timer and a byte counter (RoCEv2). Its marks:
    `queue: {ecn_low: 5 kB, ecn_high: 200 kB, ecn_max: 0.01}` at 40 Gbps."""

    origin = DCQCN
    law = "fabsim.models.dcqcn:Dcqcn"

    kind: Literal["dcqcn"]
    first: AutoRate = first_rate()
    strength: Share = like("1", 1.0, means="strength of a cut at the start (alpha)", source=DCQCN, smooth=ALMOST)
    gain: Share = like(
        "0.00390625",
        0.00390625,
        means="weight of a period in the strength (g)",
        source=f"{DCQCN}: 1/256",
        smooth=ALMOST,
    )
    increase: Rate = like("40 Mbps", 5e6, means="additive increase (R_AI)", source=DCQCN, smooth=ALMOST)
    cut_period: Span = like(
        "50 us", 50e-6, means="least time between two notifications of a flow", source=DCQCN, smooth=ALMOST
    )
    gain_period: Span = like(
        "55 us", 55e-6, means="time between two updates of the strength", source=DCQCN, smooth=ALMOST
    )
    raise_period: Span = like("55 us", 55e-6, means="timer of the increase", source=DCQCN, smooth=ALMOST)
    raise_bytes: Length = like("10 MB", 10e6, means="byte counter of the increase", source=DCQCN, smooth=ALMOST)
    recovery: Gain = like(
        "5", 5.0, means="rounds of fast recovery before the rate is raised additively (F)", source=DCQCN, smooth=ALMOST
    )
    least: Rate = smallest_rate()


class Timely(Section):
    """A rate that follows the gradient of the round trip. It has no fixed point: any split of the capacity can last."""

    origin = TIMELY
    law = "fabsim.models.timely:Timely"

    kind: Literal["timely"]
    first: AutoRate = first_rate()
    increase: Rate = like("10 Mbps", 10e6 / 8, means="additive increase of an update", source=TIMELY, smooth=ALMOST)
    beta: Gain = like("0.8", 0.8, means="strength of the decrease", source=TIMELY, smooth=ALMOST)
    smoothing: Share = like("0.875", 0.875, means="weight of an update in the gradient", source=TIMELY, smooth=ALMOST)
    low: Span = like(
        "50 us", 50e-6, means="queueing delay below which the rate only rises", source=TIMELY, smooth=ALMOST
    )
    high: Span = like(
        "500 us", 500e-6, means="queueing delay above which the rate only falls", source=TIMELY, smooth=ALMOST
    )
    shortest: Span = like(
        "20 us", 20e-6, means="shortest round trip, the unit of the gradient", source=TIMELY, smooth=ALMOST
    )
    segment: Length = like("16 kB", 16e3, means="bytes for which one delay is measured", source=TIMELY, smooth=ALMOST)
    least: Rate = smallest_rate()


class PatchedTimely(Timely):
    """TIMELY with another rule between its thresholds, which gives it a fixed point at equal rates."""

    origin = "Zhu, Ghobadi, Misra, Padhye, CoNEXT 2016, section 4.3"
    law = "fabsim.models.timely:PatchedTimely"

    kind: Literal["patched_timely"]  # type: ignore[assignment]
    beta: Gain = like("0.008", 0.008, means="strength of the decrease", source=TIMELY, smooth=ALMOST)
