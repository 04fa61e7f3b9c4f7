"""Flows put together: from columns with sensible defaults, from several parts, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fabsim.errors import InputError
from fabsim.typing import Int
from fabsim.workload.flows import Flows

DEFAULTS = {
    "start": 0.0, "trigger": -1, "need": 0, "fires": -1, "fires_at_sender": 0, "leader": -1, "head": 0.0, "grain": 0.0,
}  # fmt: skip
REAL = ("size", "start", "head", "grain")


def assemble(src: ArrayLike, dst: ArrayLike, size: ArrayLike, **columns: ArrayLike) -> Flows:
    """Flows from columns; scalars stand for every flow, and columns not given have the value for "none".

    `fires` is one trigger a flow, [F], or several, [F, E].
    """
    count = len(np.atleast_1d(np.asarray(src)))
    given = {**DEFAULTS, **columns, "src": src, "dst": dst, "size": size}
    arrays: dict[str, Any] = {}
    fires = np.asarray(given.pop("fires"), dtype=np.int64)
    arrays["fires"] = fires if fires.ndim == 2 else np.broadcast_to(fires, (count,)).reshape(count, 1).copy()
    for field in fields(Flows):
        if field.name == "fires":
            continue
        kind = np.float64 if field.name in REAL else bool if field.name == "fires_at_sender" else np.int64
        arrays[field.name] = np.broadcast_to(np.asarray(given[field.name], dtype=kind), (count,)).copy()
    return Flows(**arrays)


def merge(parts: Sequence[Flows]) -> Flows:
    """All flows of several parts, one after the other; triggers and leaders are renumbered."""
    columns: dict[str, list[Any]] = {field.name: [] for field in fields(Flows)}
    triggers = flows = 0
    for part in parts:
        shift = {"trigger": triggers, "fires": triggers, "leader": flows}
        for name, column in columns.items():
            values = getattr(part, name)
            column.append(np.where(values >= 0, values + shift[name], -1) if name in shift else values)
        triggers += int(max(part.trigger.max(initial=-1), part.fires.max(initial=-1))) + 1
        flows += part.count
    if not parts:
        return assemble([], [], [])
    widest = max(part.fires.shape[1] for part in parts)
    columns["fires"] = [
        np.pad(fires, ((0, 0), (0, widest - fires.shape[1])), constant_values=-1) for fires in columns["fires"]
    ]
    joined: dict[str, Any] = {name: np.concatenate(column) for name, column in columns.items()}
    return Flows(**joined)


def check(flows: Flows, hosts: int) -> Flows:
    """The same flows, when all hosts are there and all values in range; InputError names each fault otherwise."""
    wrong = []
    for end, verb in ((flows.src, "starts at"), (flows.dst, "goes to")):
        out = np.flatnonzero((end < 0) | (end >= hosts))
        if len(out):
            wrong.append(f"flow {out[0]} {verb} host {end[out[0]]}, which is not there: hosts are 0 to {hosts - 1}")
    own = np.flatnonzero(flows.src == flows.dst)
    if len(own):
        wrong.append(f"flow {own[0]} goes from host {flows.src[own[0]]} to itself: give two different hosts")
    for name, values in (("size", flows.size), ("start", flows.start), ("head", flows.head), ("grain", flows.grain)):
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(bad):
            wrong.append(f"flow {bad[0]}: {name} {values[bad[0]]:g} given, must be a number, 0 or more")
    if wrong:
        raise InputError(wrong)
    return flows


def check_ranks(ranks: Sequence[int], hosts: int, what: str) -> Int:
    """Host numbers of a group: at least two, each once, each there; InputError names `what` otherwise."""
    group = np.asarray(ranks, dtype=np.int64)
    out = group[(group < 0) | (group >= hosts)]
    if len(out):
        raise InputError(f"{what} names host {out[0]}, which is not there: hosts are 0 to {hosts - 1}")
    if len(group) < 2:
        raise InputError(f"{what} has {len(group)} member(s), at least 2 are needed")
    values, count = np.unique(group, return_counts=True)
    if (count > 1).any():
        raise InputError(f"{what} names host {values[count > 1][0]} more than once")
    return group
