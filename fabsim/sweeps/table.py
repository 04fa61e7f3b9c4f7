"""A sweep as text: a row for each point, over the seeds the median with its range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.spread import QUANTILES
from fabsim.swept import NOT_RUN, SEED, axis, dims, figure, headlines, keys
from fabsim.typing import Float

if TYPE_CHECKING:
    import xarray

ROWS = 60
"""Most rows of a table; of a longer one, the first and the last."""


def as_text(data: xarray.Dataset) -> str:
    """The table of a sweep, with what failed and why."""
    lines = aligned(rows(data))
    return "\n".join([*lines, *filter(None, [footer(data)]), *failures(data)])


def footer(data: xarray.Dataset) -> str:
    """Of how many seeds the figures are the median; empty where there is one."""
    seeds = data.sizes.get(SEED, 1)
    if seeds < 2:
        return ""
    counts = (data["reason"] == "").sum(SEED).values
    some = counts[counts > 0]
    least, most = int(some.min(initial=seeds)), int(some.max(initial=0))
    if least == seeds:
        return f"median (5 to 95 %) of {seeds} seeds"
    told = f"{least}" if least == most else f"{least} to {most}"
    return f"median (5 to 95 %) of those of {seeds} seeds that have figures, {told} at each point"


def rows(data: xarray.Dataset) -> list[list[str]]:
    """The headline figures at each point, below their names."""
    along = [dim for dim in dims(data) if dim != SEED or data.sizes[SEED] == 1]
    axes = [axis(data, key) for dim in along for key in keys(data, dim)]
    shown = [figure(data, name) for name in headlines(data)]
    columns = [seeds_last(data, one.values) for one in shown]
    places = list(np.ndindex(*(data.sizes[dim] for dim in along)))
    found = [[one.heading for one in [*axes, *shown]]]
    for place in places if len(places) <= ROWS else [*places[: ROWS // 2], None, *places[-ROWS // 2 :]]:
        if place is None:
            found.append(["..."] * len(found[0]))
            continue
        row = [one.labels[one.place[place[along.index(one.dim)]]] for one in axes]
        found.append(row + [spread(column[place]) for column in columns])
    return found


def seeds_last(data: xarray.Dataset, values: Float) -> Float:
    """The values of all points by the axes of the design, where several seeds come last, wherever they stand there."""
    order = dims(data)
    found = values.reshape([data.sizes[dim] for dim in order])
    return np.moveaxis(found, order.index(SEED), -1) if data.sizes.get(SEED, 1) > 1 else found[..., None]


def spread(values: Any) -> str:
    """The median; of several values with the 5th and 95th percentile."""
    ended = values[np.isfinite(values)]
    if not len(ended):
        return "-"
    low, middle, high = np.round(np.quantile(ended, QUANTILES), 2) + 0.0  # no -0.00
    return f"{middle:.2f}" if np.size(values) == 1 else f"{middle:.2f} ({low:.2f} to {high:.2f})"


def failures(data: xarray.Dataset, most: int = 3) -> list[str]:
    """How many points have no figures, and the commonest reasons."""
    found = reasons(data)
    if not found:
        return []
    total = int(np.prod([data.sizes[dim] for dim in dims(data)], dtype=np.int64))
    return [
        f"{sum(found.values()):,} of {total:,} have no figures:",
        *(f"  {count:,} x {text}" for text, count in list(found.items())[:most]),
    ]


def reasons(data: xarray.Dataset) -> dict[str, int]:
    """How often each reason stands there, the commonest first; points that are not run yet are left out."""
    told = data["reason"].values.reshape(-1)
    told = told[(told != "") & (told != NOT_RUN)].astype(str)
    text, count = np.unique(told, return_counts=True)
    return {str(text[i]): int(count[i]) for i in np.argsort(-count, kind="stable")}


def aligned(rows: list[list[str]]) -> list[str]:
    """Lines with their columns to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
