"""The picture of a sweep, by its kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from fabsim.errors import InputError
from fabsim.plots.cells import cells
from fabsim.plots.curves import curves
from fabsim.plots.pareto import pareto
from fabsim.plots.series import series
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
    links: Sequence[str] = (),
) -> Figure:
    """Draw a sweep (what `fabsim.open` gives). What is left out is chosen by size and type of its axes.

    Args:
        kind: curves (over `x`, a line for each value of `by`), heat (`x` by `by`), pareto (`x`: a figure, cost where it
            was kept), share (of points within a value), time (series of watched links).
        metric: the figure that is shown; the first headline, the tail for a Pareto front, or the first series.
        links: watched links to draw over time; if not given, those with the most.

    Raises:
        InputError: an axis or a figure that the sweep does not have.
    """
    chosen = view(data, kind, metric=metric, x=x, by=by)
    if links and chosen.kind != "time":
        raise InputError(f"--link {links[0]}: {chosen.kind} shows no single link; draw --kind time")
    return series(data, chosen, links) if chosen.kind == "time" else _DRAW[chosen.kind](data, chosen)
