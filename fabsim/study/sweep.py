"""A sweep: scenarios of one shape run as one program."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from fabsim.engine.problem import Problem
from fabsim.errors import Stopped
from fabsim.models.model import Model
from fabsim.study.advance import Outcome, run_batch
from fabsim.study.batch import batch, shape_of
from fabsim.typing import Float

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
    "dropped": ("B", "data trimmed, on all links"),
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
            group = batch([problems[i] for i in members], [models[i] for i in members])
            alone = np.stack([zero_load[i] for i in members]) if zero_load is not None else np.full((1, 1), np.nan)
            ends = run_batch(group, until=until, every=every, horizon=horizon, bar=bar)
            for name, values in metrics(ends, alone, until is None).items():
                found[name][members] = values
    if found["failed"].all():
        raise Stopped("every scenario of the sweep failed; run one of them alone to see why")
    return found


def metrics(ends: Outcome, zero_load: Float, to_the_end: bool) -> dict[str, Float]:
    """The figures of each member; NaN where it failed. Flows that are not complete do not count in a run to a time."""
    completion, start, bits, tally = ends.completion, ends.start, ends.flags, ends.tally
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
