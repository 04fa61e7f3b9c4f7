"""The page of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.plots.view import Kind, View, view
from fabsim.report import charts, over_time
from fabsim.report.page import origin, picture, table
from fabsim.study.catalogue import series_of
from fabsim.sweeps.progress import progress
from fabsim.sweeps.table import footer, reasons, rows
from fabsim.swept import SEED, dims, keys

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import xarray

CHARTS: dict[Kind, tuple[str, Callable[[xarray.Dataset, View], go.Figure]]] = {
    "curves": ("Curves", charts.curves),
    "heat": ("Heat map", charts.heat),
    "pareto": ("Pareto front", charts.pareto),
    "share": ("Spread over the draws", charts.share),
}


def parts(data: xarray.Dataset, path: str | Path) -> tuple[str, str, list[tuple[str, str]]]:
    """Title, lead and sections."""
    points = int(np.prod([data.sizes[dim] for dim in dims(data)], dtype=np.int64))
    shape = " x ".join(f"{data.sizes[dim]} {dim}" for dim in dims(data))
    lead = f"A sweep of {points:,} points: {shape}. {progress(path) or ''}"
    over = f"<p>{footer(data)}</p>"
    again = origin(str(data["scenario"].item()), str(data.attrs["versions"]), "fabsim sweep again.yaml --out again")
    pictures = [(head, drawn) for kind, (head, _) in CHARTS.items() if (drawn := _picture(data, kind))]
    pictures += _over_time(data)
    return str(data.attrs["name"]), lead, [("Figures", over + table(rows(data))), *pictures, _failures(data), *again]


def _over_time(data: xarray.Dataset) -> list[tuple[str, str]]:
    """A picture of each series that was kept."""
    kept = series_of(str(name) for name in data.data_vars)
    return [(f"Over time: {name}", picture(over_time.of_sweep(data, view(data, "time", metric=name)))) for name in kept]


def _picture(data: xarray.Dataset, kind: Kind) -> str:
    """One kind; nothing where the sweep has not the axes for it."""
    if kind == "share" and data.sizes.get(SEED, 1) < 2:
        return ""
    try:
        return picture(CHARTS[kind][1](data, view(data, kind)))
    except InputError:
        return ""


def _failures(data: xarray.Dataset) -> tuple[str, str]:
    """Each reason, how often it stands there, and the first point that it befell."""
    found = reasons(data)
    told = data["reason"].values
    lines = [["reason", "points", "first of them"]]
    for text, count in found.items():
        place = dict(zip(dims(data), np.argwhere(told == text)[0], strict=True))
        first = ", ".join(f"{key}={data[key].values[place[str(data[key].dims[0])]]}" for key in keys(data))
        lines.append([text, f"{count:,}", first])
    return "Points without figures", table(lines) if found else "<p>None: every point that was run has its figures.</p>"
