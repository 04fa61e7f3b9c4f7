"""Events on the way that contradict themselves."""

from __future__ import annotations

from collections.abc import Iterator

from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.text.source import Fault
from fabsim.units import show_time, shown


def faults(scenario: Sections) -> Iterator[Fault]:
    """Events that do nothing, end before they begin, or never let go."""
    for number, event in enumerate(scenario.faults):
        if event.speed is None and event.loss is None and event.flap is None:
            yield (
                ("faults", number),
                f"{shown(event.link)} is listed, but nothing happens; give speed, loss or flap",
            )
        if event.until is not None and event.until <= event.at:
            text = f"not after it begins at {show_time(event.at)}, given {show_time(event.until)}; give a later time"
            yield ("faults", number, "until"), text
        if event.flap is not None and event.flap.down >= event.flap.every:
            every, down = show_time(event.flap.every), show_time(event.flap.down)
            yield (
                ("faults", number, "flap", "down"),
                f"it never is up, down for {down} of each {every}; give less than {every}",
            )
