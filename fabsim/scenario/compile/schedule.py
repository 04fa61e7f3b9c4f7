"""From `faults` to the schedule that the engine reads, and to the lines of `fabsim check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.scenario.keys.balancer import Mrc
from fabsim.scenario.keys.fault import LinkFault
from fabsim.topology import Fabric, draw_cables, find_links, long_haul
from fabsim.typing import Int
from fabsim.units import show_time

if TYPE_CHECKING:
    from fabsim.engine.faults import Faults
    from fabsim.scenario.text.document import Document

PROTECTION = 50e-3
"""Seconds in which a transport network switches a failed route over to another one (ITU-T G.841)."""


def schedule(scenario: Document, fabric: Fabric) -> Faults | None:
    """The schedule; None where nothing happens. Raises InputError for a link that is not there."""
    if not scenario.faults:
        return None
    from fabsim.engine.faults import FOR_EVER, faults

    events, links = scenario.faults, befallen(scenario, fabric)
    return faults(
        links,
        fabric.links,
        begin=[event.at for event in events],
        end=[FOR_EVER if event.until is None else event.until for event in events],
        speed=[event.left for event in events],
        loss=[event.loss or 0.0 for event in events],
        period=[event.flap.every if event.flap else FOR_EVER for event in events],
        down=[event.flap.down if event.flap else FOR_EVER for event in events],
        react=reactions(scenario, fabric, links),
        dtype=scenario.precision,
    )


def reactions(scenario: Document, fabric: Fabric, befallen: list[Int]) -> list[float]:
    """Seconds after which senders know of each event: its own, else that of long-haul routes or of the scenario."""
    far = long_haul(fabric)
    return [
        (PROTECTION if np.isin(links, far).all() else scenario.react) if event.react is None else event.react
        for event, links in zip(scenario.faults, befallen, strict=True)
    ]


def befallen(scenario: Document, fabric: Fabric) -> list[Int]:
    """The links of each event. Raises InputError, a sentence for each event whose links are not there."""
    found, wrong = [], []
    for number, event in enumerate(scenario.faults):
        try:
            links = find_links(fabric, event.link)
            if event.count is not None:
                random = np.random.default_rng([scenario.seed, number])
                links = draw_cables(fabric, event.link, links, event.count, random)
            found.append(links)
        except InputError as error:
            wrong += [scenario.source.sentence(("faults", number, "link"), text) for text in error.sentences]
    if wrong:
        raise InputError(wrong)
    return found


def event_lines(scenario: Document, fabric: Fabric) -> list[tuple[str, str]]:
    """What happens, an event a line, and when senders know."""
    hit = befallen(scenario, fabric)
    lines = [
        ("fault", f"{event.link} ({len(links)} link{'s' * (len(links) > 1)}): {_what(event)} {_when(event)}")
        for event, links in zip(scenario.faults, hit, strict=True)
    ]
    if not lines or isinstance(scenario.balancer, Mrc):
        return lines
    later = ", ".join(map(show_time, dict.fromkeys(reactions(scenario, fabric, hit))))
    return [*lines, ("react", f"senders know {later} later")]


def _what(event: LinkFault) -> str:
    parts = []
    if event.left < 1:
        parts.append(f"at {event.left:g} of its rate" if event.left else "down")
    if event.loss:
        parts.append(f"loses {event.loss:g}")
    if event.flap:
        parts.append(f"for {show_time(event.flap.down)} of each {show_time(event.flap.every)},")
    return " ".join(parts) or "as it was"


def _when(event: LinkFault) -> str:
    return f"from {show_time(event.at)} " + ("on" if event.until is None else f"to {show_time(event.until)}")
