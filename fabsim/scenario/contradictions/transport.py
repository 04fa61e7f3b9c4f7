"""Senders that never send, and laws for traffic that is not there."""

from __future__ import annotations

from collections.abc import Iterator

from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.keys.transport import Mixed, Window
from fabsim.scenario.text.source import Fault


def transport(scenario: Sections) -> Iterator[Fault]:
    """A window, and a law for each entry of the traffic."""
    law = scenario.transport
    if isinstance(law, Window) and law.window.value == 0:
        yield ("transport", "window"), "a window of 0 never sends, given 0; write it like 1.5 BDP"
    if isinstance(law, Mixed) and len(law.laws) != len(scenario.traffic):
        text = f"`traffic` has {len(scenario.traffic)} entries, given {len(law.laws)} laws; give one for each"
        yield ("transport", "laws"), text
