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
from fabsim.engine.run import CHUNK
from fabsim.engine.setup import LATER, prepare
from fabsim.engine.simulate import begin, chunk, empty_frame, finish
from fabsim.engine.state import State
from fabsim.errors import Stopped
from fabsim.models.model import Model
from fabsim.study.batch import shape_of, stack, widen
from fabsim.typing import Array, Float, Int

METRICS = {
    "completion_min": ("s", "earliest completion, from its flow's start"),
    "completion_mean": ("s", "mean completion time"),
    "completion_p50": ("s", "median completion time"),
    "completion_p99": ("s", "99th percentile of the completion time"),
    "completion_max": ("s", "longest completion time"),
    "last_completion": ("s", "when the last flow was complete, from time zero"),
    "queue_peak": ("B", "largest queue of any link at the end of a step"),
    "slowdown_mean": ("1", "mean completion time over that in the empty fabric; NaN where that was not given"),
    "slowdown_p99": ("1", "99th percentile of it"),
    "dropped": ("B", "data trimmed, dropped or lost, on all links"),
    "marked": ("B", "data marked, on all links"),
    "again": ("B", "data that had to be sent again"),
    "sent": ("B", "data sent, summed over all links"),
    "failed": ("", "1 where the scenario stopped (figures are NaN), else 0"),
}
"""What a sweep keeps of each scenario: unit and meaning."""


def sweep(
    problems: Sequence[Problem],
    models: Sequence[Model[Any]],
    *,
    zero_load: Sequence[Float] | None = None,
    until: float | None = None,
    every: int = 10,
    horizon: float = 1.0,
    progress: bool = True,
) -> dict[str, Float]:
    """Run all, in as few programs as their shapes allow. Metrics by name, [number of scenarios] each.

    A scenario that goes wrong (not a number, unfinished at the horizon) has NaN figures and failed = 1; the others are
    not touched. `until`, `every`, `horizon`, `progress` as in fabsim.engine.run.run. `zero_load`: [F] s for each, the
    completion time of each flow alone in the empty fabric, for slowdowns.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, (problem, model) in enumerate(zip(problems, models, strict=True)):
        groups.setdefault(shape_of(problem, model), []).append(number)
    found = {name: np.full(len(problems), np.nan) for name in METRICS}
    with tqdm(total=len(problems), unit="scenario", disable=None if progress else True, leave=False) as bar:
        for members in groups.values():
            batch = stack(widen([problems[i] for i in members])), stack([models[i] for i in members])
            alone = np.stack([zero_load[i] for i in members]) if zero_load is not None else np.full((1, 1), np.nan)
            part = run_batch(*batch, zero_load=alone, until=until, every=every, horizon=horizon, bar=bar)
            for name, values in part.items():
                found[name][members] = values
    if found["failed"].all():
        raise Stopped("every scenario of the sweep failed; run one of them alone to see why")
    return found


def run_batch(
    problem: Problem,
    model: Model[Any],
    *,
    zero_load: Float,
    until: float | None,
    every: int,
    horizon: float,
    bar: tqdm[Any],
) -> dict[str, Float]:
    """All members (leading axis) until the last one is done, and their metrics."""
    dt = float(np.max(np.asarray(problem.dt)))
    count = max(CHUNK // every, 1)
    last = int(np.ceil((horizon if until is None else until) / dt / every / count))
    state = begin_all(problem, model)
    members = len(np.asarray(state.step))
    tally = Tally(*(np.zeros(members) for _ in range(5)))
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
    completion, start, bits = (np.asarray(x) for x in finish_all(problem, model, state))
    return metrics(completion, start, bits, tally, zero_load, until is None)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Tally:
    """Bytes sent, cut and marked on all links, bytes to send again, and the largest queue. [batch]; reduced on the
    device."""

    sent: Any
    dropped: Any
    marked: Any
    again: Any
    peak: Any

    def add(self, more: Tally) -> Tally:
        """Sums on the host in float64."""
        new = {name: np.asarray(value, np.float64) for name, value in vars(more).items()}
        sums = {name: getattr(self, name) + value for name, value in new.items() if name != "peak"}
        return Tally(**sums, peak=np.maximum(self.peak, new["peak"]))


begin_all = jax.jit(jax.vmap(begin))


@partial(jax.jit, static_argnums=(3, 4), donate_argnums=(2,))
def advance_all(problem: Problem, model: Model[Any], state: State, count: int, every: int) -> tuple[State, Tally]:
    """`count` frames of every member."""

    def one(problem: Problem, model: Model[Any], state: State) -> tuple[State, Tally]:
        state, seen = chunk(problem, model, state, count=count, every=every)
        sums = (x.sum() * problem.unit for x in (seen.sent, seen.dropped, seen.marked, seen.again))
        return state, Tally(*sums, peak=seen.peak.max() * problem.unit)

    return jax.vmap(one)(problem, model, state)


@jax.jit
def finish_all(problem: Problem, model: Model[Any], state: State) -> tuple[Array, Array, Array]:
    """Completions and starts [batch, F] in seconds, and flags [batch]."""

    def one(problem: Problem, model: Model[Any], state: State) -> tuple[Array, Array, Array]:
        trace = finish(problem, model, state, empty_frame(prepare(problem, model)))
        return trace.completion, trace.start, trace.flags

    return jax.vmap(one)(problem, model, state)


def metrics(
    completion: Float, start: Float, bits: Int, tally: Tally, zero_load: Float, to_the_end: bool
) -> dict[str, Float]:
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
            "slowdown_mean": np.nanmean(took / zero_load, -1),
            "slowdown_p99": np.nanquantile(took / zero_load, 0.99, -1),
            "queue_peak": tally.peak,
            "dropped": tally.dropped,
            "marked": tally.marked,
            "again": tally.again,
            "sent": tally.sent,
        }
    return {name: np.where(failed, np.nan, values) for name, values in found.items()} | {"failed": failed * 1.0}
