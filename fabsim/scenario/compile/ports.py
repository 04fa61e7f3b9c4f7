"""Ports whose queue is not like the rest: what `queue.links` says of single links, laid over what holds for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import InputError
from fabsim.topology import Fabric, find_links
from fabsim.typing import Float
from fabsim.units import Amount

if TYPE_CHECKING:
    from fabsim.scenario.text.document import Document

INGRESS = ("headroom",)
"""What the head of a link has for what comes over it; all else that `queue.links` says is of the port at its tail."""


def at_links(scenario: Document, fabric: Fabric, bdp: float | Float, key: str, values: Float) -> Float:
    """[L] values of a key of the queue, with those of single links in their places: of several entries for a link the
    last holds, at whatever speed the link has. Raises InputError for a link that is not there."""
    for number, entry in enumerate(scenario.queue.links):
        given: Any = getattr(entry, key)
        if given is None:
            continue
        try:
            links = find_links(fabric, entry.link)
        except InputError as error:
            place = ("queue", "links", number, "link")
            raise InputError([scenario.source.sentence(place, text) for text in error.sentences]) from None
        values = values.copy()
        own = np.broadcast_to(bdp, values.shape)[links]
        values[links] = given.bytes(own) if isinstance(given, Amount) else given
    return values


def moved_along(scenario: Document) -> list[str]:
    """What becomes of ports with levels of their own where a tuning moves those of their group: a sentence a key."""
    entries, found = scenario.queue.links, []
    for entry in scenario.tune.changes if scenario.tune else ():
        section, _, key = entry.key.partition(".")
        own = [port.link for port in entries if section == "queue" and getattr(port, key, None) is not None]
        if own and entry.per != "link":
            text = f"{entry.key}: {', '.join(own)} (queue.links) keep their part of what the others of their"
            found.append(f"{text} {'tier' if entry.per == 'tier' else 'group'} have, and move along with them")
    return found
