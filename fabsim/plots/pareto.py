"""A Pareto front of a sweep: what is paid against what is got, and the points that no other point beats in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import StrMethodFormatter

from fabsim.plots.figure import new_figure
from fabsim.plots.marks import DECADE, FRONT, logarithm, shown, titled
from fabsim.plots.view import View, spans
from fabsim.spread import group, spread
from fabsim.swept import SEED, Axis, Figure, axis, described, dims, figure, keys, telling
from fabsim.typing import Float, Int

if TYPE_CHECKING:
    import xarray

NAMED = 12
"""Most points of the front that are named; of a longer one some, evenly."""


@dataclass(frozen=True)
class Front:
    """Points of a sweep by two figures, medians over the seeds.

    Attributes:
        x, y: the figures of each point.
        best: points on the front, from left to right.
        names: what each of them is, by the keys that differ on the front.
        same: the keys that do not.
    """

    x: Float
    y: Float
    best: Int
    names: list[str]
    same: str


def front(data: xarray.Dataset, across: Figure, up: Figure) -> Front:
    """The front: a point is on it if none is at least as good in both figures and better in one."""
    along = [_places(data, dim) for dim in dims(data) if dim != SEED]
    shape = [one.size for one in along]
    cell, count = group(data, along), int(np.prod(shape, dtype=np.int64))
    x, y = (spread(of.values, cell, count)[1] for of in (across, up))
    best = unbeaten(across.sign * x, up.sign * y)
    best = best[np.argsort(x[best], kind="stable")]
    places = [
        dict(zip([one.dim for one in along], place, strict=True))
        for place in zip(*np.unravel_index(best, shape), strict=True)
    ]
    varied = telling([axis(data, key) for dim in dims(data) if dim != SEED for key in keys(data, dim)])
    differ = [one for one in varied if len({one.labels[one.place[place[one.dim]]] for place in places}) > 1]
    same = [one for one in varied if one not in differ] if places else []
    names = [described(differ or varied, place) for place in places]
    return Front(x, y, best, names, described(same, places[0]) if differ and same else "")


def unbeaten(x: Float, y: Float) -> Int:
    """The points that none beats, less being better: sorted by x, each y that is below all before it."""
    order = np.lexsort((y, x))
    order = order[np.isfinite(x[order]) & np.isfinite(y[order])]
    before = np.minimum.accumulate(np.append(np.inf, y[order]))[:-1]
    return order[y[order] < before]


def pareto(data: xarray.Dataset, view: View) -> Canvas:
    """Dominated points grey; the front coloured and numbered, with its numbers explained beside."""
    assert view.x is not None
    across, up = figure(data, view.x), figure(data, view.figure)
    found = front(data, across, up)
    canvas = new_figure(8.6, 4.8)
    axes = canvas.add_subplot()
    axes.scatter(found.x, found.y, s=20, color="#b5b5b5", linewidths=0, zorder=2)
    x, y = found.x[found.best], found.y[found.best]
    axes.step(x, y, where="post" if across.sign > 0 else "pre", color=FRONT, linewidth=1.4, alpha=0.7)
    some = np.unique(np.linspace(0, len(x) - 1, min(len(x), NAMED)).round().astype(int)) if len(x) else []
    axes.scatter(x, y, s=22, color=FRONT, linewidths=0, zorder=3)
    for number, place in enumerate(some, 1):
        axes.scatter(x[place], y[place], s=150, color=FRONT, zorder=4, label=f"{number}   {shown(found.names[place])}")
        axes.text(
            float(x[place]), float(y[place]), str(number), color="white", ha="center", va="center", fontsize=8,
            fontweight="bold", zorder=5,
        )  # fmt: skip
    if spans(found.x, DECADE):
        logarithm(axes, "x")
    if spans(found.y, DECADE):
        logarithm(axes, "y")
    if not across.unit:
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))  # cost has no unit of its own
    axes.set_xlabel(shown(across.heading))
    axes.set_ylabel(shown(up.heading))
    axes.grid(alpha=0.25)
    seeds = data.sizes.get(SEED, 1)
    titled(axes, data, f"{len(found.best)} of {len(found.x)} points are beaten by none"
                       f"{f'; medians of {seeds} seeds' if seeds > 1 else ''}")  # fmt: skip
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        title = f"the front{chr(10)}all with {shown(found.same)}" if found.same else "the front"
        canvas.legend(
            handles, labels, loc="outside right center", frameon=False, fontsize="small", handlelength=0,
            handletextpad=0, title=title, title_fontsize="small", alignment="left", markerscale=0,
        )  # fmt: skip
    return canvas


def _places(data: xarray.Dataset, dim: str) -> Axis:
    """Every place along a dimension as a value of its own."""
    size = data.sizes[dim]
    return Axis(dim, dim, ("",) * size, None, "", np.arange(size))
