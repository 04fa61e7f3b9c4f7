"""How a tuning went, and what it changed."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from fabsim.plots.figure import colour, label, new_figure
from fabsim.typing import Float


def descent(history: Float, smooth: Float, name: str) -> Figure:
    """The objective on the way, [steps, descents]: as reported (lines) and as descended (dots), 1 at the start."""
    figure = new_figure(6.4, 3.8)
    axes = figure.add_subplot()
    for number in range(history.shape[1]):
        style = {"color": colour(number), "linewidth": 1.4}
        axes.plot(history[:, number], label="as reported" if not number else None, **style)
        axes.plot(smooth[:, number], linestyle=":", label="as descended" if not number else None, **style)
    axes.plot(np.minimum.accumulate(history.min(1)), color="black", linewidth=0.8, label="best so far")
    label(axes, name, "step", "objective")
    axes.set_ylim(bottom=None)
    return figure


def before_after(values: Float, name: str, optimum: float) -> Figure:
    """[2, L] values of all links before and after, those that are not zero, each from large to small; and what no split
    goes below."""
    figure = new_figure(6.4, 3.8)
    axes = figure.add_subplot()
    for number, (row, word) in enumerate(zip(values, ("before", "after"), strict=True)):
        axes.plot(np.sort(row[row > 0])[::-1], drawstyle="steps-mid", color=colour(number), label=word)
    axes.axhline(optimum, color="black", linewidth=0.8, linestyle="--", label="no split is below")
    label(axes, "busy links, before and after", "links, the busiest first", name)
    return figure
