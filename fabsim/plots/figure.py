"""What all pictures have in common: canvas, colours, look and the way to the disk."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fabsim.errors import InputError
from fabsim.store import publish

DPI = 120
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def new_figure(width: float, height: float) -> Figure:
    """A figure with a canvas of its own, in inches."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[union-attr]
    FigureCanvasAgg(figure)
    return figure


def colour(number: int) -> str:
    """Colours of Okabe and Ito, told apart by colour-blind readers too; they begin again after seven."""
    return _COLOURS[number % len(_COLOURS)]


def label(axes: Axes, title: str, x: str, y: str) -> None:
    """Title, axes and grid of a line plot, and a legend where lines have names."""
    axes.set_title(title, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize="small")


def save(figure: Figure, path: str | Path, force: bool = True) -> None:
    """Writes a figure as PNG, SVG or PDF by the ending of `path`, whole or not at all.

    Raises:
        InputError: another ending, a folder that is missing, or a file that exists while `force` is off.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"{path}: a picture ends in .png, .svg or .pdf")
    image = io.BytesIO()
    figure.savefig(image, format=kind, dpi=DPI)
    publish(path, image.getvalue(), force)
