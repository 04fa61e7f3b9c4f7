"""When links were at fault: shaded spans behind a series."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from ruamel.yaml import YAML

from fabsim import units
from fabsim.results import Result


def shade_faults(axes: Axes, result: Result) -> None:
    """Shade, in µs, each span for which an event holds."""
    scenario: Any = YAML(typ="safe", pure=True).load(result.scenario)
    events = scenario.get("faults") or () if isinstance(scenario, dict) else ()
    for event in events:
        for begin, end in spans(event, float(np.max(result.time, initial=0.0))):
            axes.axvspan(begin * 1e6, end * 1e6, color="0.5", alpha=0.15, linewidth=0)


def spans(event: dict[str, Any], last: float) -> list[tuple[float, float]]:
    """Beginnings and ends (s) of an entry of `faults`, until the last frame."""
    begin = units.time(event.get("at", "0 s"))
    end = min(units.time(event["until"]), last) if "until" in event else last
    if "flap" not in event:
        return [(begin, end)] if begin < end else []
    every, down = (units.time(event["flap"][key]) for key in ("every", "down"))
    return [(one, min(one + down, end)) for one in np.arange(begin, end, every).tolist()]
