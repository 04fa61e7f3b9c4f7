"""A sweep as text: a row for each point, over the seeds the median with its range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.study.catalogue import metric

if TYPE_CHECKING:
    import xarray

ROWS = 60
"""Most rows of a table; of a longer one, the first and the last."""

SCALES = {"s": ("us", 1e6), "B": ("kB", 1e-3), "B/s": ("Gbps", 8e-9)}
"""How units are shown."""

FEW = 4
"""Figures of a table."""

HEADLINES = ("last_completion", "completion_mean", "completion_p99", "slowdown_mean", "busbw", "queue_peak", "dropped")
"""Figures of the table, where the sweep has kept them; else the first that it has."""


def as_text(data: xarray.Dataset) -> str:
    """The table of a sweep, with what failed and why."""
    over = "seed" if data.sizes.get("seed", 1) > 1 else None
    dims = [dim for dim in axes(data) if dim != over]
    names = headlines(data)
    keys = [str(key) for key, c in data.coords.items() if c.dims and c.dims[0] in dims]
    heads = [_headed(key, str(data[key].attrs.get("units", ""))) for key in keys]
    heads += [_headed(name, unit(data, name)) for name in names]
    places = list(np.ndindex(*(data.sizes[dim] for dim in dims)))
    shown = places if len(places) <= ROWS else [*places[: ROWS // 2], None, *places[-ROWS // 2 :]]
    rows = [heads]
    for place in shown:
        if place is None:
            rows.append(["..."] * len(heads))
            continue
        at = dict(zip(dims, place, strict=True))
        row = [_value(data[key].values[at[str(data[key].dims[0])]]) for key in keys]
        rows.append(row + [spread(data[name].isel(at).values, scale(data, name)) for name in names])
    lines = aligned(rows)
    if over is not None:
        lines.append(f"median (5 to 95 %) of {data.sizes[over]} seeds")
    return "\n".join(lines + failures(data))


def headlines(data: xarray.Dataset) -> list[str]:
    """The figures that a table begins with."""
    found = figures(data)
    return ([name for name in HEADLINES if name in found] or found)[:FEW]


def figures(data: xarray.Dataset) -> list[str]:
    """All figures that a sweep has kept."""
    return [str(name) for name in data.data_vars if metric(str(name)) is not None]


def axes(data: xarray.Dataset) -> list[str]:
    """The dimensions of its design."""
    return [str(dim) for dim in data["reason"].dims]


def spread(values: Any, factor: float) -> str:
    """The median; of several values with the 5th and 95th percentile."""
    ended = np.atleast_1d(values)[np.isfinite(np.atleast_1d(values))] * factor
    if not len(ended):
        return "-"
    middle = f"{np.median(ended):.2f}"
    low, high = np.quantile(ended, [0.05, 0.95])
    return middle if np.size(values) == 1 else f"{middle} ({low:.2f} to {high:.2f})"


def unit(data: xarray.Dataset, name: str) -> str:
    """As it is shown."""
    written = str(data[name].attrs.get("units", ""))
    return SCALES.get(written, ("" if written == "1" else written, 1.0))[0]


def scale(data: xarray.Dataset, name: str) -> float:
    """Factor to the unit in which it is shown."""
    return SCALES.get(str(data[name].attrs.get("units", "")), ("", 1.0))[1]


def failures(data: xarray.Dataset, most: int = 3) -> list[str]:
    """How many failed, and the commonest reasons."""
    reasons = data["reason"].values.reshape(-1)
    told = reasons[reasons != ""]
    if not len(told):
        return []
    text, count = np.unique(told.astype(str), return_counts=True)
    order = np.argsort(-count)[:most]
    return [f"{len(told)} of {len(reasons)} have no figures:", *(f"  {count[i]} x {text[i]}" for i in order)]


def aligned(rows: list[list[str]]) -> list[str]:
    """Lines with their columns to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]


def _headed(name: str, units: str) -> str:
    return f"{name} ({units})" if units else name


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)
