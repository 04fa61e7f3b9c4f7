"""A sweep as a table of two dimensions: one figure over two axes, median over all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.spread import others, table
from fabsim.sweeps.table import aligned
from fabsim.swept import axis, figure, headlines

if TYPE_CHECKING:
    import xarray


def pivot(data: xarray.Dataset, rows: str, columns: str, name: str | None = None) -> str:
    """The table as text; the best cell has an asterisk. Raises InputError for an axis or a figure that is not there."""
    down, across = axis(data, rows), axis(data, columns)
    if down.name == across.name:
        raise InputError(f"{rows},{columns}: one axis twice; name two different ones")
    of = figure(data, name or headlines(data)[0])
    middle = table(data, of, down, across)[1]
    best = np.nanargmin(of.sign * middle) if np.isfinite(middle).any() else -1
    cells = [_cell(value, number == best) for number, value in enumerate(middle.reshape(-1))]
    over = others(data, (down, across))
    title = f"{of.heading}{f', median over {over}' if over else ''}; * is the best"
    head = [f"{down.heading} \\ {across.heading}", *(f"{label} " for label in across.labels)]
    body = [[label, *cells[i * across.size : (i + 1) * across.size]] for i, label in enumerate(down.labels)]
    return "\n".join([title, *(line.rstrip() for line in aligned([head, *body]))])


def _cell(value: float, best: bool) -> str:
    return "- " if not np.isfinite(value) else f"{value:.2f}{'*' if best else ' '}"
