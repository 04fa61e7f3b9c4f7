"""How a figure is spread over the draws of a sweep: the share of points within a value, a line for each of an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from fabsim.plots.figure import new_figure
from fabsim.plots.marks import colours, legend, logarithm, shown, titled
from fabsim.plots.view import View, logarithmic
from fabsim.spread import group, others
from fabsim.swept import axis, figure

if TYPE_CHECKING:
    import xarray

MARKED = (0.5, 0.95, 0.99)
"""Shares that have a dot."""


def share(data: xarray.Dataset, view: View) -> Figure:
    """Cumulative lines; dots at the median, 95 and 99 %. A line that ends below 100 % has points without a figure."""
    by, of = axis(data, view.by) if view.by else None, figure(data, view.figure)
    chosen = () if by is None else (by,)
    line = group(data, chosen)
    canvas = new_figure(7.6, 4.4)
    axes = canvas.add_subplot()
    for number, tint in enumerate(colours(by)):
        values = of.values[line == number]
        ended = np.sort(values[np.isfinite(values)])
        part = 100 * np.arange(1, len(ended) + 1) / max(len(values), 1)
        line_of = {"color": tint, "linewidth": 1.6, "label": by.labels[number] if by else of.name}
        from_0 = (np.append(ended[:1], ended), np.append(0.0, part)) if len(ended) else ([], [])
        axes.step(*from_0, where="post", **line_of)
        some = [int(np.ceil(share * len(values))) - 1 for share in MARKED]
        some = [place for place in some if 0 <= place < len(ended)]
        axes.plot(ended[some], part[some], "o", color=tint, markersize=5)
    if logarithmic(of.values):
        logarithm(axes, "x")
    axes.set_ylim(0, 102)
    axes.set_xlabel(shown(of.heading))
    axes.set_ylabel("share of points (%)")
    axes.grid(alpha=0.25)
    titled(axes, data, f"{others(data, chosen) or 'one point a line'}; dots at 50, 95 and 99 %")
    legend(canvas, axes, by.heading if by else "")
    return canvas
