"""Curves of a sweep: a figure over one axis, a line for each value of another, and the range of its draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fabsim.plots.figure import new_figure
from fabsim.plots.marks import colour_bar, colours, figure_axis, key_axis, legend, named_ticks, norm, titled
from fabsim.plots.view import View
from fabsim.spread import others, table
from fabsim.swept import SAMPLE, Axis, axis, figure
from fabsim.typing import Float

if TYPE_CHECKING:
    import xarray

WIDTH = 0.6
"""Room that the marks of one name take, of the distance to the next."""


def curves(data: xarray.Dataset, view: View) -> Figure:
    """Medians, with the 5 to 95 % range over all that is not shown: as bands where the axis has numbers, as bars where
    it has names; drawn samples as dots."""
    assert view.x is not None
    x, by, of = axis(data, view.x), axis(data, view.by) if view.by else None, figure(data, view.figure)
    canvas = new_figure(7.8, 4.6)
    axes = canvas.add_subplot()
    if x.dim == SAMPLE and x.numbers is not None:
        _dots(canvas, axes, data, x, by, view)
        return canvas
    chosen = (x,) if by is None else (x, by)
    found = table(data, of, *chosen).reshape(3, x.size, -1)
    for number, tint in enumerate(colours(by)):
        name = by.labels[number] if by else of.name
        (_line if x.numbers is not None else _bars)(axes, x, found[:, :, number], name, tint, number, found.shape[2])
    figure_axis(axes, found, of.heading)
    (key_axis if x.numbers is not None else named_ticks)(axes, x)
    over = others(data, chosen)
    titled(axes, data, f"median and 5 to 95 % over {over}" if over else f"{of.meaning}")
    legend(canvas, axes, by.heading if by else "")
    return canvas


def _line(axes: Axes, x: Axis, found: Float, name: str, tint: str, number: int, lines: int) -> None:
    assert x.numbers is not None
    low, middle, high = found
    axes.plot(x.numbers, middle, color=tint, marker="o", markersize=4, linewidth=1.6, label=name, zorder=3)
    if (high > low).any():
        axes.fill_between(x.numbers, low, high, color=tint, alpha=0.15, linewidth=0)


def _bars(axes: Axes, x: Axis, found: Float, name: str, tint: str, number: int, lines: int) -> None:
    low, middle, high = found
    at = np.arange(x.size) + WIDTH * ((number + 0.5) / lines - 0.5)
    reach = np.stack([middle - low, high - middle])
    axes.errorbar(
        at, middle, yerr=reach, fmt="o", color=tint, markersize=6, capsize=0, elinewidth=2.2, ecolor=(tint, 0.45),
        label=name,
    )  # fmt: skip


def _dots(canvas: Figure, axes: Axes, data: xarray.Dataset, x: Axis, by: Axis | None, view: View) -> None:
    """A dot for each drawn point; coloured by another key."""
    assert x.numbers is not None
    of, points = figure(data, view.figure), axis(data, SAMPLE)
    style: dict[str, Any] = {"s": 26, "alpha": 0.85, "linewidths": 0}
    along = x.numbers[x.place]
    if by is not None and by.dim != SAMPLE:
        found = table(data, of, points, by)[1]
        for number, tint in enumerate(colours(by)):
            axes.scatter(along, found[:, number], color=tint, label=by.labels[number], **style)
        legend(canvas, axes, by.heading)
    else:
        found = table(data, of, points)[1]
        tints = None if by is None or by.numbers is None else by.numbers[by.place]
        dots = axes.scatter(along, found, c=tints, cmap="viridis", norm=None if tints is None else norm(tints), **style)
        if by is not None and tints is not None:
            colour_bar(canvas, axes, dots, by.heading)
    figure_axis(axes, found, of.heading)
    key_axis(axes, x)
    over = others(data, (points,) if by is None or by.dim == SAMPLE else (points, by))
    titled(axes, data, f"{x.dim} of {len(along)}{f', median over {over}' if over else ''}")
