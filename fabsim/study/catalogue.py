"""The figures that can be kept of a run: names, units, meanings. Plain Python, so that a scenario can be checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

SLOWDOWN = "completion time over the shortest of the flow alone on its paths, with no wait for others as in a ring"
"""What a slowdown is."""

_QUANTILE = re.compile(r"(completion|slowdown)_p(\d{1,2}(?:\.\d+)?|100)")


@dataclass(frozen=True)
class Metric:
    """One figure of a run: its unit and what it is."""

    unit: str
    meaning: str


FIXED = {
    "last_completion": Metric("s", "when the last flow was complete, from time zero"),
    "completion_min": Metric("s", "earliest completion, from its flow's start"),
    "completion_mean": Metric("s", "mean completion time"),
    "completion_max": Metric("s", "longest completion time"),
    "slowdown_mean": Metric("1", f"mean {SLOWDOWN}"),
    "slowdown_max": Metric("1", f"largest {SLOWDOWN}"),
    "queue_peak": Metric("B", "largest queue of any switch port at the end of a step"),
    "dropped": Metric("B", "data trimmed, dropped or lost, on all links"),
    "marked": Metric("B", "data marked, on all links"),
    "again": Metric("B", "data that had to be sent again"),
    "sent": Metric("B", "data sent, summed over all links"),
    "collective_time": Metric(
        "s", "longest time of a collective, from its start to its last byte; without one, of all"
    ),
    "busbw": Metric("B/s", "smallest bus bandwidth of a collective (nccl-tests); NaN without one"),
    "goodput": Metric("B/s", "payload of all flows over the time of the last completion"),
    "cost": Metric("", "of switches, optics and fibre, by the price list, in its currency"),
    "watts": Metric("W", "of switches and optics, by the price list"),
}
"""Figures without a number in their name."""

METRICS = (
    "last_completion", "completion_min", "completion_mean", "completion_p50", "completion_p99", "completion_max",
    "slowdown_mean", "slowdown_p99", "queue_peak", "dropped", "marked", "again", "sent",
)  # fmt: skip
"""What is kept where a scenario does not say."""

OF_COLLECTIVES = ("collective_time", "busbw")
"""And of one with collectives."""

TraceName = Literal[
    "completion", "start", "series_queue", "series_peak", "series_utilisation", "series_marked", "series_dropped"
]
"""Arrays that can be kept of a run, named as in the result of a single one."""

TRACE_AXES = {
    "completion": (("flow",), Metric("s", "time the last byte is at the receiver; inf where it is not")),
    "start": (("flow",), Metric("s", "time the flow started")),
    "series_queue": (("time", "watched"), Metric("B", "mean queue, by frame")),
    "series_peak": (("time", "watched"), Metric("B", "largest queue, by frame")),
    "series_utilisation": (
        ("time", "watched"),
        Metric("1", "data and headers over line rate, by frame"),
    ),
    "series_marked": (("time", "watched"), Metric("B", "bytes marked, by frame")),
    "series_dropped": (("time", "watched"), Metric("B", "bytes dropped or trimmed, by frame")),
}
"""Axes, unit and meaning of each. `time`: frames, to that of the last completion; `watched`: links."""


def series_of(names: Iterable[str]) -> tuple[str, ...]:
    """Those that are series of links."""
    return tuple(name for name in names if name.startswith("series_"))


def metric(name: str) -> Metric | None:
    """The figure of that name, None where there is none."""
    found = _QUANTILE.fullmatch(name)
    if found is None:
        return FIXED.get(name)
    of, percent = found.groups()
    what = "completion time" if of == "completion" else SLOWDOWN
    return Metric("s" if of == "completion" else "1", f"{percent}th percentile of the {what}")


def quantile(name: str) -> tuple[str, float] | None:
    """("completion" or "slowdown", fraction) of a percentile, None for other figures."""
    found = _QUANTILE.fullmatch(name)
    return None if found is None else (found[1], float(found[2]) / 100.0)


def unknown_metric(name: str) -> str:
    """The sentence of a name that is none."""
    near = get_close_matches(name, FIXED, 1)
    hint = f"did you mean {near[0]!r}" if near else f"there are {', '.join(FIXED)}, completion_pX and slowdown_pX"
    return f"not a figure, given {name!r}; {hint}"
