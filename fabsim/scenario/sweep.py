"""A sweep from a scenario: every combination of its grid, with each seed, as one labelled dataset."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import InputError
from fabsim.scenario.batch import figures, networks
from fabsim.store import Sheet, Variable, encode, publish
from fabsim.typing import Float
from fabsim.units import Amount

if TYPE_CHECKING:
    import xarray

    from fabsim.scenario.scenario import Scenario


@dataclass(frozen=True)
class Swept:
    """Metrics over a grid.

    Attributes:
        axes: the swept keys with their values, "seed" last where there are several.
        metrics: arrays over the axes, in their order; see fabsim.study.sweep.METRICS.
        units: unit of each metric and of each axis that has one.
        meanings: of each metric.
        attributes: how it came about: the resolved scenario, its name and seed.
    """

    axes: dict[str, np.ndarray]
    metrics: dict[str, Float]
    units: dict[str, str]
    meanings: dict[str, str]
    attributes: dict[str, Any]

    def sheet(self) -> Sheet:
        """As a table of variables."""
        axes = {key: Variable((key,), values, self.units.get(key, "")) for key, values in self.axes.items()}
        dims = tuple(self.axes)
        metrics = {
            name: Variable(dims, values, self.units[name], self.meanings[name]) for name, values in self.metrics.items()
        }
        return Sheet(axes | metrics, self.attributes)

    def dataset(self) -> xarray.Dataset:
        """As an xarray Dataset, the same that `fabsim.open` gives for its file."""
        import xarray

        sheet = self.sheet()
        data = {n: (v.dims, v.values, {"units": v.units, "long_name": v.long_name}) for n, v in sheet.variables.items()}
        return xarray.Dataset(data, attrs=dict(self.attributes)).set_coords(list(self.axes))

    def write(self, path: str | Path, force: bool = False) -> None:
        """One file, whole or not at all."""
        publish(path, encode({"": self.sheet()}), force)


def sweep(scenario: Scenario, *, progress: bool = True) -> Swept:
    """Run the `sweep:` of a scenario.

    Raises:
        InputError: the scenario has no sweep, or one of its points contradicts itself.
        Stopped: every point failed.
    """
    from fabsim.study.sweep import METRICS

    plan = scenario.sweep
    if plan is None:
        raise InputError(
            scenario.source.sentence((), "sweep: this scenario has none; say what to vary under sweep: grid:")
        )
    axes: dict[str, list[Any]] = {key: list(values) for key, values in plan.grid.items()}
    seeds = scenario.seeds if plan.seeds is None else plan.seeds
    if seeds > 1:
        axes["seed"] = [scenario.seed + i for i in range(seeds)]
    base = scenario.single()
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    members = [base.change(point) for point in points]
    found = figures(members, networks(members, progress=progress), progress=progress)
    shape = [len(values) for values in axes.values()]
    labels = {key: coordinate(members, points, key, values) for key, values in axes.items()}
    return Swept(
        axes={key: values for key, (values, _) in labels.items()},
        metrics={name: values.reshape(shape) for name, values in found.items()},
        units={key: unit for key, (_, unit) in labels.items()} | {name: unit for name, (unit, _) in METRICS.items()},
        meanings={name: meaning for name, (_, meaning) in METRICS.items()},
        attributes={"name": scenario.name, "seed": scenario.seed, "scenario": scenario.resolved()},
    )


def coordinate(
    members: list[Scenario], points: list[dict[str, Any]], key: str, values: list[Any]
) -> tuple[np.ndarray, str]:
    """The values of an axis as numbers with their unit, where the scenario reads them so; else as they were written."""
    read = [at(members[next(i for i, point in enumerate(points) if point[key] == value)], key) for value in values]
    if all(isinstance(x, Amount) for x in read) and len({x.relative for x in read}) == 1:
        return np.array([x.value for x in read]), "BDP" if read[0].relative else "B"
    if all(isinstance(x, int | float) and not isinstance(x, bool) for x in read):
        return np.array(read), ""
    return np.array([str(value) for value in values]), ""


def at(scenario: Scenario, key: str) -> Any:
    """The value of a dotted key of a validated scenario, None where it is not one plain value."""
    value: Any = scenario
    for step in key.split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step, None)
    return value


def as_text(swept: Swept) -> str:
    """A table: a row for each point of the grid, over the seeds the median with its range."""
    keys = [key for key in swept.axes if key != "seed"]
    seeds = swept.axes.get("seed")
    columns = {
        "last_completion": ("last us", 1e6),
        "completion_mean": ("mean us", 1e6),
        "queue_peak": ("peak kB", 1e-3),
        "dropped": ("dropped kB", 1e-3),
    }
    head = [f"{key} ({swept.units[key]})" if swept.units.get(key) else key for key in keys]
    rows = [head + [name for name, _ in columns.values()]]
    for place in np.ndindex(*(len(swept.axes[key]) for key in keys)):
        row = [_shown(swept.axes[key][i]) for key, i in zip(keys, place, strict=True)]
        for name, (_, factor) in columns.items():
            values = np.atleast_1d(swept.metrics[name][place]) * factor
            middle = f"{np.median(values):.2f}"
            row.append(middle if seeds is None else f"{middle} ({values.min():.2f} to {values.max():.2f})")
        rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    if seeds is not None:
        lines.append(f"median (smallest to largest) of {len(seeds)} seeds")
    failed = int(np.nansum(swept.metrics["failed"]))
    return "\n".join(lines + ([f"{failed} scenarios failed"] if failed else []))


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)
