"""What the pictures of a sweep have in common: titles, axes of keys, and colours by value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from fabsim.plots.figure import colour
from fabsim.plots.view import logarithmic, spans
from fabsim.swept import Axis
from fabsim.typing import Float

if TYPE_CHECKING:
    import xarray

TICKS = 12
"""Most values of an axis that each have a tick."""

DECADE = 10
"""Largest over smallest value of a figure, from which on its scale is logarithmic."""

PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
"""Ticks of a logarithmic axis as people write numbers."""

FRONT = "#d55e00"
"""What is best."""


def shown(text: str) -> str:
    """Text with the sign for micro."""
    return text.replace("(us)", "(µs)").replace(" us", " µs")


def titled(axes: Axes, data: xarray.Dataset, said: str) -> None:
    """The name of the sweep, and below it, small, what is shown."""
    axes.set_title(str(data.attrs.get("name", "sweep")), loc="left", pad=22, fontsize="medium", fontweight="bold")
    axes.text(0, 1.02, shown(said), transform=axes.transAxes, va="bottom", fontsize="small", color="#555555")
    axes.spines[["top", "right"]].set_visible(False)


def figure_axis(axes: Axes, values: Float, label: str) -> None:
    """The vertical axis of a figure, logarithmic over a decade and more."""
    if spans(values, DECADE):
        logarithm(axes, "y")
    axes.set_ylabel(shown(label))
    axes.grid(alpha=0.25)


def key_axis(axes: Axes, along: Axis) -> None:
    """The horizontal axis of a key with numbers: a tick for each, where they are few."""
    assert along.numbers is not None
    scale = np.asarray(along.numbers)
    if logarithmic(along.numbers):
        logarithm(axes, "x")
        scale = np.log(scale)
    apart = np.diff(scale).min(initial=np.inf) / max(float(np.ptp(scale)), 1e-300)
    if along.size <= TICKS and apart > 0.04:
        axes.set_xticks(along.numbers, along.labels)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(shown(along.heading))


def logarithm(axes: Axes, which: Literal["x", "y"]) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5."""
    axes.set(**{f"{which}scale": "log"})
    along = axes.xaxis if which == "x" else axes.yaxis
    along.set_minor_locator(LogLocator(subs=(2, 5)))
    for place in (along.set_major_formatter, along.set_minor_formatter):
        place(PLAIN)


def named_ticks(axes: Axes, along: Axis) -> None:
    """The horizontal axis of a key with names."""
    long = sum(map(len, along.labels)) > 70
    axes.set_xticks(range(along.size), list(map(shown, along.labels)))
    if long:
        for text in axes.get_xticklabels():
            text.set(rotation=25, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, along.size - 0.4)
    axes.set_xlabel("" if along.name == along.dim == "zip" else shown(along.heading))


def colours(by: Axis | None) -> list[str]:
    """A colour for each line: in order of their numbers from dark to light, else told apart as well as can be."""
    if by is None:
        return [colour(0)]
    if by.numbers is None or by.size < 3:
        return [colour(number) for number in range(by.size)]
    return [to_hex(c) for c in mpl.colormaps["viridis"](np.linspace(0, 0.88, by.size))]


def legend(figure: Figure, axes: Axes, title: str) -> None:
    """The legend beside the picture, where there is room."""
    handles, labels = axes.get_legend_handles_labels()
    if len(handles) > 1:
        figure.legend(
            handles, labels, loc="outside right center", frameon=False, title=shown(title), fontsize="small",
            title_fontsize="small", alignment="left",
        )  # fmt: skip


def norm(values: Float) -> Normalize:
    """The scale of colours, logarithmic over decades."""
    ended = values[np.isfinite(values)]
    low, high = (float(ended.min()), float(ended.max())) if len(ended) else (0.0, 1.0)
    return LogNorm(low, high) if spans(ended, DECADE) else Normalize(low, high)


def colour_bar(figure: Figure, axes: Axes, image: ScalarMappable, label: str) -> None:
    """The scale of colours, beside."""
    bar = figure.colorbar(image, ax=axes, label=shown(label), pad=0.02)
    if isinstance(image.norm, LogNorm):
        bar.ax.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        for place in (bar.ax.yaxis.set_major_formatter, bar.ax.yaxis.set_minor_formatter):
            place(PLAIN)
    bar.outline.set_visible(False)  # type: ignore[operator]
