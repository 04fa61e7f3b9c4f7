"""Many problems at once: one program for each shape, in parts that fit into memory, with figures and reasons."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from fabsim.engine import flags
from fabsim.engine.batch import Widths, batch, shape_of_model, shape_of_problem
from fabsim.engine.problem import Problem
from fabsim.models.model import Model
from fabsim.study.advance import Outcome, run_batch
from fabsim.study.catalogue import series_of
from fabsim.study.metrics import Facts, reduce, stacked
from fabsim.study.series import Watched, laid
from fabsim.typing import Float, Int
from fabsim.units import show_time


@dataclass(frozen=True)
class Outcomes:
    """What is kept of some runs.

    Attributes:
        figures: [members] each, by name; NaN where the run failed.
        reasons: why it failed; "" where it did not.
        traces: [members, F], or of series [members, T, W], each, by name.
        frame: s, the length of a frame of the series.
    """

    figures: dict[str, Float]
    reasons: list[str]
    traces: dict[str, Float]
    frame: float


@dataclass(frozen=True)
class How:
    """How far and how finely runs go; as in fabsim.engine.run.run.

    Attributes:
        until: s to simulate; None: until all flows are complete.
        every: steps of a frame.
        horizon: s after which a run until done is given up.
        widths: of padded tables; None: as the members need.
        differs: leaves that members have of their own in any case; see fabsim.engine.batch.batch.
        size: members of a batch; None: as many as there are.
        parts: whether a batch for which there is too little memory runs in parts of half the size, and so on.
        devices: to spread over; None: what suits the machine.
    """

    until: float | None = None
    every: int = 10
    horizon: float = 1.0
    widths: Widths | None = None
    differs: Collection[int] = ()
    size: int | None = None
    parts: bool = True
    devices: int | None = None


def outcomes(
    problems: Sequence[Problem],
    models: Sequence[Model[Any]],
    told: Sequence[Facts],
    names: Sequence[str],
    how: How,
    *,
    traces: Sequence[str] = (),
    watched: Int | None = None,
    bar: tqdm[Any] | None = None,
) -> Outcomes:
    """Run all. A run that goes wrong (not a number, unfinished at the horizon) is told apart and touches no other.

    watched: [members, W] links whose series are among the traces, -1 for one that a member has not.
    """
    figures = {name: np.full(len(problems), np.nan) for name in names}
    reasons = [""] * len(problems)
    kept: dict[str, Float] = {}
    over_time = None if watched is None else Watched(series_of(traces), watched)
    for members in by_shape(problems, models):
        for part, outcome in in_parts(problems, models, members, how, over_time, bar):
            found, failed = reduce(
                outcome.completion, outcome.start, outcome.flags, outcome.totals, stacked([told[i] for i in part]),
                tuple(names), how.until is None,
            )  # fmt: skip
            for name, values in jax.device_get(found).items():
                figures[name][part] = values
            for name in traces:
                values = outcome.series[name] if name in outcome.series else getattr(outcome, name)
                kept[name] = laid(kept.get(name), part, values, len(problems))
            for row in np.flatnonzero(np.asarray(failed)):
                reasons[part[row]] = reason(int(outcome.flags[row]), np.asarray(outcome.completion[row]), how)
    return Outcomes(figures, reasons, kept, how.every * float(problems[0].dt))


def by_shape(problems: Sequence[Problem], models: Sequence[Model[Any]]) -> list[list[int]]:
    """The members that may share a program."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    known = {id(problem): shape_of_problem(problem) for problem in {id(p): p for p in problems}.values()}
    for number, (problem, model) in enumerate(zip(problems, models, strict=True)):
        groups.setdefault((known[id(problem)], shape_of_model(model)), []).append(number)
    return list(groups.values())


def in_parts(
    problems: Sequence[Problem],
    models: Sequence[Model[Any]],
    members: list[int],
    how: How,
    watched: Watched | None,
    bar: tqdm[Any] | None,
) -> Iterator[tuple[list[int], Outcome]]:
    """Batches of a fixed size; in parts (see How) each half as large as the one before where memory is out."""
    size = how.size or len(members)
    begin = 0
    while begin < len(members):
        part = members[begin : begin + size]
        try:
            one = batch([problems[i] for i in part], [models[i] for i in part], how.widths, how.differs)
            outcome = run_batch(
                one, until=how.until, every=how.every, horizon=how.horizon, devices=how.devices, like=size,
                watched=None if watched is None else watched.of(np.array(part)), bar=bar,
            )  # fmt: skip
        except (MemoryError, RuntimeError) as error:
            if size == 1 or not how.parts or not out_of_memory(error):
                raise
            size = -(-size // 2)
            continue
        yield part, outcome
        begin += len(part)


def out_of_memory(error: BaseException) -> bool:
    """Whether host or device had no more."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def reason(bits: int, completion: Float, how: How) -> str:
    """Why a run failed, in words."""
    if bits:
        return "; ".join(flags.sentences(bits))
    left = int((~np.isfinite(completion)).sum())
    end = how.horizon if how.until is None else how.until
    return f"{left} of {len(completion)} flows have not ended after {show_time(end)}"
