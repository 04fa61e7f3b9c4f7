"""A sweep: scenarios that differ only in values run as one vmapped program."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from fabsim.engine.problem import Problem
from fabsim.engine.setup import LATER, prepare
from fabsim.engine.simulate import begin, chunk, empty_frame, finish
from fabsim.engine.state import State
from fabsim.errors import Stopped
from fabsim.models.model import Model
from fabsim.study.batch import shape_of, stack, widen
from fabsim.typing import Array, Float, Int

CHUNK = 200
"""Steps between two looks of the host."""

METRICS = {
    "completion_min": ("s", "earliest completion, from its flow's start"),
    "completion_mean": ("s", "mean completion time"),
    "completion_p50": ("s", "median completion time"),
    "completion_p99": ("s", "99th percentile of the completion time"),
    "completion_max": ("s", "longest completion time"),
    "last_completion": ("s", "when the last flow was complete, from time zero"),
    "queue_peak": ("B", "largest queue of any link at the end of a step"),
    "dropped": ("B", "data trimmed, on all links"),
    "sent": ("B", "data sent, summed over all links"),
    "failed": ("", "1 where the scenario stopped (figures are NaN), else 0"),
}
"""What a sweep keeps of each scenario: unit and meaning."""


def sweep(
    problems: Sequence[Problem],
    models: Sequence[Model[Any]],
    *,
    until: float | None = None,
    every: int = 10,
    horizon: float = 1.0,
    progress: bool = True,
) -> dict[str, Float]:
    """Run all, in as few programs as their shapes allow. Metrics by name, [number of scenarios] each.

    A scenario that goes wrong (not a number, unfinished at the horizon) has NaN figures and failed = 1; the others are
    not touched. `until`, `every`, `horizon`, `progress` as in fabsim.engine.run.run.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, (problem, model) in enumerate(zip(problems, models, strict=True)):
        groups.setdefault(shape_of(problem, model), []).append(number)
    found = {name: np.full(len(problems), np.nan) for name in METRICS}
    with tqdm(total=len(problems), unit="scenario", disable=None if progress else True, leave=False) as bar:
        for members in groups.values():
            batch = stack(widen([problems[i] for i in members])), stack([models[i] for i in members])
            part = run_batch(*batch, until=until, every=every, horizon=horizon, bar=bar)
            for name, values in part.items():
                found[name][members] = values
    if found["failed"].all():
        raise Stopped("every scenario of the sweep failed; run one of them alone to see why")
    return found


def run_batch(
    problem: Problem, model: Model[Any], *, until: float | None, every: int, horizon: float, bar: tqdm[Any]
) -> dict[str, Float]:
    """All members (leading axis) until the last one is done, and their metrics."""
    dt = float(np.max(np.asarray(problem.dt)))
    count = max(CHUNK // every, 1)
    last = int(np.ceil((horizon if until is None else until) / dt / every / count))
    state = begin_all(problem, model)
    members = len(np.asarray(state.step))
    tally = Tally(*(np.zeros(members) for _ in range(3)))
    ended = np.zeros(members, bool)
    for _ in range(last):
        state, more = advance_all(problem, model, state, count, every)
        tally = tally.add(more)
        now = until is None and (np.asarray(state.flow.completion) < LATER).all(-1)
        now = now | (np.asarray(state.flags) != 0)
        bar.update(int((now & ~ended).sum()))
        ended |= now
        if ended.all():
            break
    bar.update(int((~ended).sum()))
    trace = finish_all(problem, model, state)
    return metrics(np.asarray(trace[0]), np.asarray(trace[1]), np.asarray(trace[2]), tally, until is None)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Tally:
    """Bytes sent and cut on all links, and the largest queue. [batch]; reduced on the device."""

    sent: Any
    dropped: Any
    peak: Any

    def add(self, more: Tally) -> Tally:
        """Sums on the host in float64."""
        sent, dropped, peak = (np.asarray(x, np.float64) for x in (more.sent, more.dropped, more.peak))
        return Tally(self.sent + sent, self.dropped + dropped, np.maximum(self.peak, peak))


begin_all = jax.jit(jax.vmap(begin))


@partial(jax.jit, static_argnums=(3, 4), donate_argnums=(2,))
def advance_all(problem: Problem, model: Model[Any], state: State, count: int, every: int) -> tuple[State, Tally]:
    """`count` frames of every member."""

    def one(problem: Problem, model: Model[Any], state: State) -> tuple[State, Tally]:
        state, seen = chunk(problem, model, state, count=count, every=every)
        unit = problem.unit
        return state, Tally(seen.sent.sum() * unit, seen.dropped.sum() * unit, seen.peak.max() * unit)

    return jax.vmap(one)(problem, model, state)


@jax.jit
def finish_all(problem: Problem, model: Model[Any], state: State) -> tuple[Array, Array, Array]:
    """Completions and starts [batch, F] in seconds, and flags [batch]."""

    def one(problem: Problem, model: Model[Any], state: State) -> tuple[Array, Array, Array]:
        trace = finish(problem, model, state, empty_frame(prepare(problem, model)))
        return trace.completion, trace.start, trace.flags

    return jax.vmap(one)(problem, model, state)


def metrics(completion: Float, start: Float, bits: Int, tally: Tally, to_the_end: bool) -> dict[str, Float]:
    """The figures of each member; NaN where it failed. Flows that are not complete do not count in a run to a time."""
    open_ = ~np.isfinite(completion)
    failed = (bits != 0) | (open_.any(-1) & to_the_end) | open_.all(-1)
    took = np.where(open_ | failed[:, None], np.nan, completion - np.where(open_, 0.0, start))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all-NaN rows are the failed ones
        found = {
            "completion_min": np.nanmin(took, -1),
            "completion_mean": np.nanmean(took, -1),
            "completion_p50": np.nanquantile(took, 0.5, -1),
            "completion_p99": np.nanquantile(took, 0.99, -1),
            "completion_max": np.nanmax(took, -1),
            "last_completion": np.nanmax(np.where(open_ | failed[:, None], np.nan, completion), -1),
            "queue_peak": tally.peak,
            "dropped": tally.dropped,
            "sent": tally.sent,
        }
    return {name: np.where(failed, np.nan, values) for name, values in found.items()} | {"failed": failed * 1.0}
