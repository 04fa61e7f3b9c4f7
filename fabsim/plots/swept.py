"""The picture of a sweep, by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from fabsim.plots.cells import cells
from fabsim.plots.curves import curves
from fabsim.plots.pareto import pareto
from fabsim.plots.share import share
from fabsim.plots.view import Kind, view

if TYPE_CHECKING:
    import xarray

_DRAW = {"curves": curves, "heat": cells, "pareto": pareto, "share": share}


def plot(
    data: xarray.Dataset,
    kind: Kind | None = None,
    *,
    metric: str | None = None,
    x: str | None = None,
    by: str | None = None,
) -> Figure:
    """Draw a sweep (what `fabsim.open` gives). What is left out is chosen by size and type of its axes.

    Args:
        kind: curves (over `x`, a line for each value of `by`), heat (`x` by `by`), pareto (`x`: a figure, cost where it
            was kept), share (of points within a value).
        metric: the figure that is shown; the first headline, or the tail for a Pareto front.

    Raises:
        InputError: an axis or a figure that the sweep does not have.
    """
    chosen = view(data, kind, metric=metric, x=x, by=by)
    return _DRAW[chosen.kind](data, chosen)
