"""Links that differ from the others: slow, dead, longer, with other buffers, lossy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from fabsim.errors import InputError
from fabsim.topology.graph import Fabric
from fabsim.topology.names import find_links, lane_numbers
from fabsim.typing import Int


@dataclass(frozen=True)
class Change:
    """One change to some links; what is None stays as it is.

    Attributes:
        link: which links, as `find_links` reads it: "leaf0->spine3", "spine0" (all its links), "leaf*->spine0".
        speed: fraction of the line rate, 0 (dead) to 1.
        rate: line rate in bytes per second.
        latency: seconds of the link, switching latency of its tail included.
        buffer: bytes of the output queue.
        loss: share of all bytes that is lost, 0 to 1.
        count: only so many of the cables that fit, drawn at random; a cable is changed both ways.
    """

    link: str
    speed: float | None = None
    rate: float | None = None
    latency: float | None = None
    buffer: float | None = None
    loss: float | None = None
    count: int | None = None


def degrade(fabric: Fabric, changes: Sequence[Change], seed: int = 0) -> Fabric:
    """The fabric with the changes applied in order; of two changes of one link the later wins. `seed` feeds the draws.

    Speed scales the rate. It leaves `buffer` alone: a buffer given in bytes is that many bytes at any speed; one that
    is derived (NaN) follows the speed where it is derived.
    Raises InputError for a name that matches nothing, and for a value out of range.
    """
    speed, latency, buffer = fabric.speed.copy(), fabric.latency.copy(), fabric.buffer.copy()
    loss = np.zeros(fabric.links) if fabric.loss is None else fabric.loss.copy()
    alive = fabric.speed > 0
    line_rate = np.where(alive, fabric.capacity / np.where(alive, fabric.speed, 1.0), np.nan)
    wrong: list[str] = []
    for number, change in enumerate(changes):
        wrong += _out_of_range(change)
        try:
            links = find_links(fabric, change.link)
            if change.count is not None:
                links = draw_cables(fabric, change.link, links, change.count, np.random.default_rng([seed, number]))
        except InputError as error:
            wrong += error.sentences
            continue
        for column, value in (
            (speed, change.speed),
            (line_rate, change.rate),
            (latency, change.latency),
            (buffer, change.buffer),
            (loss, change.loss),
        ):
            if value is not None:
                column[links] = value
        if np.isnan(line_rate[links][speed[links] > 0]).any():
            wrong.append(f'"{change.link}" was dead, its rate is not known: give a rate too')
    if wrong:
        raise InputError(wrong)
    capacity = np.where(speed > 0, line_rate * speed, 0.0)
    lossy = loss if loss.any() else None
    return replace(fabric, capacity=capacity, speed=speed, latency=latency, buffer=buffer, loss=lossy)


def draw_cables(fabric: Fabric, pattern: str, links: Int, count: int, random: np.random.Generator) -> Int:
    """Both ways of `count` of the cables that these links, which fit the pattern, belong to. Raises InputError for more
    than there are."""
    lane, _ = lane_numbers(fabric)
    ends = np.sort(np.stack([fabric.src, fabric.dst]), axis=0)
    _, cable = np.unique(np.stack([*ends, lane]), axis=1, return_inverse=True)
    fitting = np.unique(cable.reshape(-1)[links])
    if count > len(fitting):
        raise InputError(f'"{pattern}" fits {len(fitting)} cables, given a count of {count}; give fewer')
    chosen = random.choice(fitting, count, replace=False)
    return np.flatnonzero(np.isin(cable.reshape(-1), chosen))


def _out_of_range(change: Change) -> list[str]:
    """Sentences for the values of a change that cannot be."""
    wrong = []
    if change.speed is not None and not 0 <= change.speed <= 1:
        wrong.append(f'"{change.link}": speed {change.speed:g} given, must be from 0 (dead) to 1')
    if change.loss is not None and not 0 <= change.loss <= 1:
        wrong.append(f'"{change.link}": loss {change.loss:g} given, must be from 0 to 1')
    if change.rate is not None and not (isfinite(change.rate) and change.rate > 0):
        wrong.append(f'"{change.link}": rate {change.rate:g} given, must be above 0 (speed: 0 makes a link dead)')
    for name, value in (("latency", change.latency), ("buffer", change.buffer)):
        if value is not None and not (isfinite(value) and value >= 0):
            wrong.append(f'"{change.link}": {name} {value:g} given, must be 0 or more')
    return wrong
