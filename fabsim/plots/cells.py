"""A heat map of a sweep: a figure over two axes as coloured cells, the best one framed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fabsim.plots.figure import new_figure
from fabsim.plots.marks import FRONT, TICKS, colour_bar, key_axis, logarithm, norm, shown, titled
from fabsim.plots.view import View, logarithmic
from fabsim.spread import others, table
from fabsim.swept import SAMPLE, Axis, axis, figure
from fabsim.typing import Float

if TYPE_CHECKING:
    import xarray

TOLD = 150
"""Most cells that have their figure written in them."""


def cells(data: xarray.Dataset, view: View) -> Figure:
    """Medians over all that is not shown; light is good. Two keys of a sample are dots."""
    assert view.x is not None
    assert view.by is not None
    x, by, of = axis(data, view.x), axis(data, view.by), figure(data, view.figure)
    tints = mpl.colormaps["YlGnBu" if of.sign > 0 else "YlGnBu_r"].with_extremes(bad="#e0e0e0")
    if x.dim == by.dim == SAMPLE and x.numbers is not None and by.numbers is not None:
        return _dots(data, x, by, view, tints)
    middle = table(data, of, by, x)[1]
    wide = max(0.62, 0.09 * max(map(len, x.labels), default=0))
    canvas = new_figure(min(3.2 + wide * x.size, 11.0), min(2.2 + 0.42 * by.size, 9.0))
    axes = canvas.add_subplot()
    scale = norm(middle)
    image = axes.imshow(middle, aspect="auto", cmap=tints, norm=scale, origin="lower", interpolation="nearest")
    if middle.size <= TOLD:
        _write(axes, middle, tints, scale)
    if np.isfinite(middle).any():
        row, column = np.unravel_index(np.nanargmin(of.sign * middle), middle.shape)
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=FRONT, linewidth=2.5))
    _ticks(axes, x, by)
    over = others(data, (x, by))
    titled(axes, data, f"{f'median over {over}; ' if over else ''}best cell framed")
    axes.spines[:].set_visible(False)
    colour_bar(canvas, axes, image, of.heading)
    return canvas


def _write(axes: Axes, middle: Float, tints: Colormap, scale: Normalize) -> None:
    """The figures themselves, dark on light and light on dark."""
    for (row, column), value in np.ndenumerate(middle):
        if np.isfinite(value):
            red, green, blue, _ = tints(scale(value))
            ink = "#222222" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.55 else "white"
            text = f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
            axes.text(float(column), float(row), text, ha="center", va="center", color=ink, fontsize="small")


def _ticks(axes: Axes, x: Axis, by: Axis) -> None:
    """Each value, or every so many where there are many."""
    for along, part in ((axes.xaxis, x), (axes.yaxis, by)):
        some = range(0, part.size, -(-part.size // (2 * TICKS)))
        along.set_ticks(list(some), [shown(part.labels[number]) for number in some])
    axes.tick_params(length=0)
    if sum(map(len, x.labels)) > 70:
        for text in axes.get_xticklabels():
            text.set(rotation=25, ha="right", rotation_mode="anchor")
    axes.set_xlabel(shown(x.heading))
    axes.set_ylabel(shown(by.heading))


def _dots(data: xarray.Dataset, x: Axis, by: Axis, view: View, tints: Colormap) -> Figure:
    assert x.numbers is not None
    assert by.numbers is not None
    of, points = figure(data, view.figure), axis(data, SAMPLE)
    middle = table(data, of, points)[1]
    across, up = x.numbers[x.place], by.numbers[by.place]
    canvas = new_figure(7.2, 5.0)
    axes = canvas.add_subplot()
    dots = axes.scatter(across, up, c=middle, cmap=tints, norm=norm(middle), s=46, edgecolors="#888888", linewidths=0.4)
    if np.isfinite(middle).any():
        best = int(np.nanargmin(of.sign * middle))
        axes.scatter(across[best], up[best], s=130, facecolors="none", edgecolors=FRONT, linewidths=2.2)
    key_axis(axes, x)
    if logarithmic(by.numbers):
        logarithm(axes, "y")
    axes.set_ylabel(shown(by.heading))
    axes.grid(alpha=0.25)
    over = others(data, (points,))
    titled(axes, data, f"{points.size} samples{f', median over {over}' if over else ''}; best one ringed")
    colour_bar(canvas, axes, dots, of.heading)
    return canvas
