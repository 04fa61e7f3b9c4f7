"""From the trace of a run to its tables."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from fabsim.busiest import busiest
from fabsim.engine.run import Run
from fabsim.engine.simulate import ByClass, Frame
from fabsim.errors import InputError
from fabsim.results import Result, duration
from fabsim.topology import Fabric, find_links, link_names
from fabsim.typing import Bool, Float, Int
from fabsim.workload.flows import Flows

SHARING = (
    "where flows have one path each, or links are paused: first in, first out, in layers by age; "
    "else proportional: bytes leave a port in proportion to what each flow has waiting there (well-mixed queue)"
)
"""How the engine shares a port; kept in every file, because results of other rules are not comparable."""

Watch = int | str | Sequence[int] | Sequence[str]
"""Links whose series are kept: how many of the busiest, "all", a name, or these numbers or names."""


class Group(Protocol):
    """A collective: its name, which flows [F] belong to it, and the bytes by which bus bandwidth is reckoned."""

    @property
    def name(self) -> str: ...
    @property
    def flows(self) -> Bool: ...
    @property
    def volume(self) -> float: ...


def collect(
    run: Run,
    fabric: Fabric,
    flows: Flows,
    *,
    name: str,
    scenario: str = "",
    seed: int = 0,
    zero_load: Float | None = None,
    buffer: Float | None = None,
    watch: int | Int = 32,
    classes: Sequence[str] = ("all",),
    traffic_class: Int | None = None,
    collectives: Sequence[Group] = (),
    entries: Sequence[str] = ("traffic.0",),
    entry: Int | None = None,
) -> Result:
    """Makes the tables of a run.

    Args:
        name: of the scenario, or of the case.
        scenario: resolved scenario, YAML text.
        zero_load: [F] s, completion time of each flow alone in the empty fabric, for slowdowns.
        buffer: [L] bytes, output queues as derived; the fabric's own if None.
        watch: links whose series are kept, see `watched_links`; for which are the busiest see fabsim.busiest.
        classes: names of the classes of traffic.
        traffic_class: [F] class of each flow; the first if None.
        collectives: groups of flows that work together.
        entries: names of the entries of the traffic.
        entry: [F] entry that each flow comes from; the first if None.
    """
    trace, frames = run.trace, run.trace.frames
    names = np.array(link_names(fabric), dtype=object)
    frame = np.diff(run.time, prepend=0.0)[:, None]
    peak = np.max(frames.peak, axis=0, initial=0.0)
    completion = np.asarray(trace.completion, dtype=np.float64)
    start = np.asarray(trace.start, dtype=np.float64)
    by, mean = by_class(frames), np.full(fabric.links, frame.sum())
    able = fabric.capacity * _until(completion, run.time)
    sent, utilisation = _total(frames.sent), _ratio(_total(frames.busy), able)
    order = busiest(fabric.tier[fabric.src], fabric.capacity, utilisation, peak, sent)
    watched = np.sort(order[:watch]) if isinstance(watch, int) else watch
    return Result(
        name=name,
        scenario=scenario,
        seed=seed,
        versions=versions(),
        sharing=SHARING,
        steps=run.steps,
        dt=run.dt,
        wall_s=run.wall,
        src=flows.src,
        dst=flows.dst,
        size=flows.size,
        start=start,
        completion=completion,
        sender_completion=np.asarray(trace.sender_completion, dtype=np.float64),
        mean_rate=_ratio(flows.size, duration(start, completion)),
        retransmitted=_total(frames.again),
        zero_load=np.full(flows.count, np.nan) if zero_load is None else zero_load,
        traffic_class=np.zeros(flows.count, np.int64) if traffic_class is None else traffic_class,
        entry=np.zeros(flows.count, np.int64) if entry is None else entry,
        entries=np.array(entries, dtype=object),
        link=names,
        tail_tier=fabric.tier[fabric.src],
        head_tier=fabric.tier[fabric.dst],
        tail=fabric.src,
        head=fabric.dst,
        capacity=fabric.capacity,
        buffer=fabric.buffer if buffer is None else buffer,
        sent=sent,
        headers=np.zeros(fabric.links) if frames.headers is None else _total(frames.headers),
        utilisation=utilisation,
        queue_mean=_ratio(_total(frames.queue * frame), mean),
        queue_peak=peak,
        marked=_total(frames.marked),
        dropped=_total(frames.dropped),
        paused=np.zeros(fabric.links) if frames.paused is None else _total(frames.paused),
        **_collectives(collectives, start, completion),
        classes=np.array(classes, dtype=object),
        class_sent=_total(by.sent),
        class_utilisation=_ratio(_total(by.sent), able),
        class_queue_mean=_ratio(_total(by.queue * frame[:, None]), mean),
        class_queue_peak=np.max(by.peak, axis=0, initial=0.0),
        class_marked=_total(by.marked),
        class_dropped=_total(by.dropped),
        time=run.time,
        total_sent=np.asarray(frames.sent)[:, fabric.dst < fabric.hosts].sum(1),
        total_queue=np.asarray(frames.queue)[:, fabric.src >= fabric.hosts].sum(1),
        total_marked=np.asarray(frames.marked).sum(1),
        total_dropped=np.asarray(frames.dropped).sum(1),
        watched=names[watched],
        series_sent=np.asarray(frames.sent)[:, watched],
        series_utilisation=_ratio(frames.busy[:, watched], frame * fabric.capacity[watched]),
        series_queue=np.asarray(frames.queue)[:, watched],
        series_peak=np.asarray(frames.peak)[:, watched],
        series_marked=np.asarray(frames.marked)[:, watched],
        series_dropped=np.asarray(frames.dropped)[:, watched],
    )


def _collectives(groups: Sequence[Group], start: Float, completion: Float) -> dict[str, Any]:
    """Columns of the collectives: names, starts, times and bus bandwidths."""
    begin = np.array([start[group.flows].min() for group in groups])
    time = duration(begin, np.array([completion[group.flows].max() for group in groups]))
    return {
        "collectives": np.array([group.name for group in groups], dtype=object),
        "collective_start": begin,
        "collective_time": time,
        "busbw": _ratio([group.volume for group in groups], time),
    }


def by_class(frames: Frame) -> ByClass:
    """[T, C, L] the frames by class of traffic; of a run without classes, those of a single one."""
    if frames.by_class is not None:
        return frames.by_class
    single: list[Any] = [np.asarray(getattr(frames, item.name))[:, None] for item in fields(ByClass)]
    return ByClass(*single)


def versions() -> dict[str, str]:
    """Versions of what decides the numbers."""
    found = {"python": platform.python_version()}
    for package in ("fabsim", "jax", "jaxlib", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a folder on the path
            found[package] = "not installed"
    return found


def watched_links(watch: Watch, fabric: Fabric) -> int | Int:
    """How many of the busiest links have their series kept, or the numbers of these, ascending.

    Raises:
        InputError: fewer than none, or a name or number of no link.
    """
    if isinstance(watch, int | np.integer):
        if watch < 0:
            raise InputError(f"watch: {watch} given; 0 or more of the busiest links would do")
        return int(watch)
    if isinstance(watch, str):
        return np.arange(fabric.links) if watch == "all" else find_links(fabric, watch)
    if not isinstance(watch, Iterable):
        raise InputError(f'watch: {watch!r} given; how many of the busiest links, "all", or names of links would do')
    wanted = [find_links(fabric, item) if isinstance(item, str) else _link(fabric, item) for item in watch]
    return np.unique(np.concatenate(wanted)) if wanted else np.empty(0, dtype=np.int64)


def _link(fabric: Fabric, number: int) -> Int:
    if not isinstance(number, int | np.integer) or not 0 <= number < fabric.links:
        raise InputError(f"watch: {number!r} is no link; names, or numbers from 0 to {fabric.links - 1}, would do")
    return np.array([number])


def _until(completion: Float, time: Float) -> float:
    """s, the last completion; the end of the last frame where a flow has not ended."""
    if len(completion) and np.isfinite(completion).all():
        return float(completion.max())
    return float(time[-1]) if len(time) else 0.0


def _total(frames: ArrayLike) -> Float:
    """Sum over frames, in float64: many small numbers."""
    return np.asarray(frames).sum(0, dtype=np.float64)


def _ratio(part: ArrayLike, whole: Float) -> Float:
    """part / whole; 0 where the whole is 0 (a dead link carries nothing)."""
    part, whole = np.broadcast_arrays(np.asarray(part, dtype=np.float64), whole)
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
