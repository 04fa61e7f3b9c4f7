"""One shard: its points compiled, run as a batch, and laid down as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fabsim.errors import InputError
from fabsim.scenario.batch import Compiler, Member, run_all
from fabsim.store import Sheet, Variable
from fabsim.study.catalogue import TRACE_AXES, metric
from fabsim.study.series import laid
from fabsim.sweeps.design import Design
from fabsim.sweeps.plan import Plan, Shard
from fabsim.sweeps.watch import numbers
from fabsim.typing import Int

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

POINT = "point"
"""Axis of a shard, and the variable that says which points it holds."""


@dataclass(frozen=True)
class Gathered:
    """A shard ready to run: the members that can be built, the rows of the shard that they are, and for every row why
    it cannot be, or nothing."""

    shard: Shard
    members: list[Member]
    rows: list[int]
    reasons: list[str]


def gathered(single: Scenario, design: Design, plan: Plan, compiler: Compiler, shard: Shard) -> Gathered:
    """Compile the points of a shard. One that contradicts itself is told apart with its reason."""
    if shard.program < 0:
        return Gathered(shard, [], [], [plan.refused[int(point)] for point in shard.points])
    members: list[Member] = []
    rows: list[int] = []
    reasons = [""] * len(shard.points)
    for row, point in enumerate(shard.points):
        try:
            members.append(compiler.compile(design.scenario(single, int(point))))
            rows.append(row)
        except InputError as error:
            reasons[row] = str(error)
    return Gathered(shard, members, rows, reasons)


def work(
    plan: Plan,
    ready: Gathered,
    *,
    metrics: Sequence[str],
    traces: Sequence[str] = (),
    parts: bool = True,
    devices: int | None = None,
    bar: tqdm[Any] | None = None,
) -> Sheet:
    """Run a shard. A point whose run fails is told apart with its reason. `parts`: as in fabsim.study.outcomes.How."""
    members, rows, reasons = ready.members, ready.rows, list(ready.reasons)
    figures = {name: np.full(len(reasons), np.nan) for name in metrics}
    kept: dict[str, Any] = {}
    frame = 0.0
    if bar is not None:
        bar.update(len(reasons) - len(rows))
    if members:
        program = plan.programs[ready.shard.program]
        found = run_all(
            members,
            metrics,
            traces=traces,
            watched=numbers(members, plan.watched),
            bar=bar,
            widths=program.widths,
            differs=program.differs,
            size=program.size,
            parts=parts,
            devices=devices,
        )
        for name, values in found.figures.items():
            figures[name][rows] = values
        for row, text in zip(rows, found.reasons, strict=True):
            reasons[row] = text
        kept, frame = {name: laid(None, rows, x, len(reasons)) for name, x in found.traces.items()}, found.frame
    return as_sheet(ready.shard.points, figures, reasons, kept, plan.watched, frame)


def as_sheet(
    points: Int, figures: dict[str, Any], reasons: Sequence[str], traces: dict[str, Any], watched: Sequence[str] = (),
    frame: float = 0.0,
) -> Sheet:  # fmt: skip
    """The table of a shard. frame: s, of the series of the watched links."""
    variables = {POINT: Variable((POINT,), np.asarray(points, np.int64), "", "number of the point in the design")}
    for name, values in figures.items():
        about = metric(name)
        assert about is not None
        variables[name] = Variable((POINT,), np.asarray(values, np.float64), about.unit, about.meaning)
    variables["reason"] = Variable(
        (POINT,), np.array(reasons, dtype=object), "", "why a run failed; empty if it did not"
    )
    for name, values in traces.items():
        axes, about = TRACE_AXES[name]
        variables[name] = Variable((POINT, *axes), values, about.unit, about.meaning)
        if "time" in axes:
            variables["time"] = Variable(("time",), frame * np.arange(1, values.shape[1] + 1), "s", "end of each frame")
            variables["watched"] = Variable(("watched",), np.array(watched, dtype=object), "", "links")
    return Sheet(variables)
