"""Flows one by one: rows of a list, at given times or after others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from fabsim.errors import InputError
from fabsim.workload.assemble import assemble, check
from fabsim.workload.flows import Flows


@dataclass(frozen=True)
class Row:
    """One flow.

    Attributes:
        src, dst: host numbers.
        size: payload bytes; 0 completes at once.
        start: seconds; for a flow after others give `delay` and not this.
        after: names or numbers (from 0, in order of the list) of flows that must be at their receivers first.
        delay: seconds from the last of these to the start.
        name: for `after` of other rows.
    """

    src: int
    dst: int
    size: float
    start: float = 0.0
    after: tuple[str | int, ...] = ()
    delay: float = 0.0
    name: str | None = None


def listed(hosts: int, rows: Sequence[Row]) -> Flows:
    """Flows of a list; flow i is row i. One trigger stands for each company of flows that somebody waits for.

    Raises InputError for hosts that are not there, a flow to itself, an unknown or circular `after`, bad values.
    """
    before = _predecessors(rows)
    _check_rows(rows)
    _check_circles(rows, before)
    companies = {company: trigger for trigger, company in enumerate(c for c in dict.fromkeys(before) if c)}
    fires: list[list[int]] = [[] for _ in rows]
    for company, trigger in companies.items():
        for flow in company:
            fires[flow].append(trigger)
    widest = max([1, *map(len, fires)])
    flows = assemble(
        [row.src for row in rows],
        [row.dst for row in rows],
        [row.size for row in rows],
        start=[row.delay if row.after else row.start for row in rows],
        trigger=[companies.get(company, -1) for company in before],
        need=[len(company) for company in before],
        fires=np.array([own + [-1] * (widest - len(own)) for own in fires]).reshape(len(rows), widest),
    )
    return check(flows, hosts)


def _predecessors(rows: Sequence[Row]) -> list[frozenset[int]]:
    """Numbers of the flows that each row waits for."""
    number: dict[str, int] = {}
    for index, row in enumerate(rows):
        if row.name is not None and number.setdefault(row.name, index) != index:
            raise InputError(f'flow {index}: the name "{row.name}" is taken by flow {number[row.name]}')
    found = []
    for index, row in enumerate(rows):
        flows = [number.get(key, -1) if isinstance(key, str) else key for key in row.after]
        for key, flow in zip(row.after, flows, strict=True):
            if not 0 <= flow < len(rows):
                raise InputError(
                    f"flow {index}: after: there is no flow {key!r}, give a name or a number from 0 to {len(rows) - 1}"
                )
        found.append(frozenset(flows))
    return found


def _check_rows(rows: Sequence[Row]) -> None:
    """Times must be in range, and a flow starts at a time or after others, not both."""
    for index, row in enumerate(rows):
        if not (isfinite(row.delay) and row.delay >= 0):
            raise InputError(f"flow {index}: delay {row.delay:g} given, must be 0 s or more")
        if row.after and row.start:
            raise InputError(f"flow {index} has both start and after: give a delay after the others instead of a start")
        if row.delay and not row.after:
            raise InputError(f"flow {index} has a delay but nothing to come after: give after, or a start")


def _check_circles(rows: Sequence[Row], before: Sequence[frozenset[int]]) -> None:
    """Flows that wait for each other would never start."""
    waiting = {flow: set(company) for flow, company in enumerate(before)}
    free = [flow for flow, company in waiting.items() if not company]
    after: dict[int, list[int]] = {}
    for flow, company in enumerate(before):
        for other in company:
            after.setdefault(other, []).append(flow)
    while free:
        done = free.pop()
        del waiting[done]
        for flow in after.get(done, []):
            waiting[flow].discard(done)
            if not waiting[flow]:
                free.append(flow)
    if waiting:
        flow = min(waiting)
        name = rows[flow].name or str(flow)
        raise InputError(f"flow {name} waits, through others, for itself: {len(waiting)} flows would never start")
