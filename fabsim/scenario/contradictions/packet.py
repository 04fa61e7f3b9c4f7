"""Sizes of a packet that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.text.source import Fault


def packet(scenario: Sections) -> Iterator[Fault]:
    """A header and a trimmed packet are less than a whole one."""
    packet = scenario.packet
    if packet.header >= packet.mtu:
        text = f"a packet of {packet.mtu:g} B has no room beside a header of {packet.header:g} B; give a larger mtu"
        yield ("packet", "header"), text
    if packet.trim > packet.mtu:
        text = f"more than the whole packet of {packet.mtu:g} B, given {packet.trim:g} B; give at most {packet.mtu:g} B"
        yield ("packet", "trim"), text
