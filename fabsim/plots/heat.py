"""Every link of the fabric as a coloured cell, tier by tier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from fabsim.plots.figure import new_figure
from fabsim.results import Result
from fabsim.topology.wiring import BORDER, INSIDE
from fabsim.typing import Float, Int

Quantity = Literal["utilisation", "queue_peak", "queue_mean", "marked", "dropped", "paused"]

_LABELS = {
    "utilisation": ("utilisation (%)", 100.0),
    "queue_peak": ("largest queue (kB)", 1e-3),
    "queue_mean": ("mean queue (kB)", 1e-3),
    "marked": ("marked (kB)", 1e-3),
    "dropped": ("dropped (kB)", 1e-3),
    "paused": ("paused (us)", 1e6),
}
_COLOURS = mpl.colormaps["YlOrRd"].with_extremes(bad="#bdbdbd")


@dataclass(frozen=True)
class Shown:
    """A quantity of one's own: [L] values of all links, and what they are."""

    values: Float
    label: str


@dataclass(frozen=True)
class Stage:
    """The links from one tier to another, by number."""

    links: Int
    tail: int
    head: int

    @property
    def row_is_tail(self) -> bool:
        """Rows are the switches of the lower tier; for links of hosts, the switch that they hang on."""
        return self.tail > 0 and (self.head == 0 or self.tail <= self.head)


def heat_map(result: Result, quantity: Quantity | Shown = "utilisation") -> Figure:
    """Each link once: up in the left column, down in the right; a row is a switch, a cell one of its ports.

    For links of hosts the row is the leaf; between switches it is the one of the lower tier. Dead links are grey.
    """
    found = stages(result)
    up = [stage for stage in found if stage.tail <= stage.head]
    down = [stage for stage in reversed(found) if stage.tail > stage.head]
    ratios = [min(max(0.14 * len(_grid(result, stage, quantity)), 1.0), 3.0) for stage in up]
    figure = new_figure(9.6, 0.5 + sum(ratio + 0.7 for ratio in ratios))
    panels = figure.subplots(len(up), 2, squeeze=False, height_ratios=ratios)
    for column, part in enumerate((up, down)):
        for panel, stage in zip(panels[:, column], part, strict=False):
            draw_stage(panel, result, stage, quantity, _largest(result, quantity))
        for panel in panels[len(part) :, column]:
            panel.set_axis_off()
    figure.suptitle(f"{result.name}: {_label(quantity)} of every link")
    add_scale(figure, panels.ravel().tolist(), quantity)
    return figure


def stages(result: Result) -> list[Stage]:
    """The pairs of tiers that have links: up from the hosts, then down to them."""
    pairs = set(zip(result.tail_tier.tolist(), result.head_tier.tolist(), strict=True))
    order = sorted(pairs, key=lambda pair: (pair[0] > pair[1], pair[0] if pair[0] <= pair[1] else -pair[0]))
    return [
        Stage(np.flatnonzero((result.tail_tier == tail) & (result.head_tier == head)), tail, head)
        for tail, head in order
    ]


def draw_stage(axes: Axes, result: Result, stage: Stage, quantity: Quantity | Shown, largest: float) -> None:
    """One stage as a heat map, light to dark from 0 to `largest`."""
    grid = _grid(result, stage, quantity)
    axes.imshow(grid, aspect="auto", cmap=_COLOURS, vmin=0, vmax=largest, interpolation="nearest")
    top = int(result.tail_tier[result.tail_tier < INSIDE].max())
    tail, head = _tier_name(stage.tail, top), _tier_name(stage.head, top)
    axes.set_title(f"{tail} to {head}", loc="left", fontsize="medium")
    axes.set_xlabel("port")
    axes.set_ylabel(tail if stage.row_is_tail else head)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))


def add_scale(figure: FigureBase, panels: Sequence[Axes], quantity: Quantity | Shown) -> None:
    """One colour bar for all panels; they share their scale."""
    image = next(image for panel in panels for image in panel.images if isinstance(image, AxesImage))
    figure.colorbar(image, ax=panels, pad=0.01, aspect=30, label=_label(quantity))


def _largest(result: Result, quantity: Quantity | Shown) -> float:
    """Upper end of the scale: 100 % for utilisation, else the largest value."""
    if quantity == "utilisation":
        return 100.0
    return max(_values(result, quantity).max(initial=0.0), 1e-9)


def _label(quantity: Quantity | Shown) -> str:
    return quantity.label if isinstance(quantity, Shown) else _LABELS[quantity][0]


def _values(result: Result, quantity: Quantity | Shown) -> Float:
    """[L] as they are shown."""
    if isinstance(quantity, Shown):
        return quantity.values
    return getattr(result, quantity) * _LABELS[quantity][1]


def _grid(result: Result, stage: Stage, quantity: Quantity | Shown) -> Float:
    """Values as rows of switches and columns of their ports; NaN where there is no link or a dead one."""
    tails, heads = result.tail[stage.links], result.head[stage.links]
    rows, others = (tails, heads) if stage.row_is_tail else (heads, tails)
    order = np.lexsort((stage.links, others, rows))
    _, row, ports = np.unique(rows[order], return_inverse=True, return_counts=True)
    column = np.arange(len(order)) - (np.cumsum(ports) - ports)[row]
    links = stage.links[order]
    grid = np.full((len(ports), ports.max()), np.nan)
    grid[row, column] = np.where(result.capacity[links] > 0, _values(result, quantity)[links], np.nan)
    return grid


def _tier_name(tier: int, top: int) -> str:
    """Names as people say them: a lone tier of switches has no leaves, the middle of three is the aggregation."""
    apart = {0: "hosts", INSIDE: "switches in servers", BORDER: "borders"}
    if tier in apart:
        return apart[tier]
    return {1: ["switches"], 2: ["leaves", "spines"], 3: ["leaves", "aggregation", "cores"]}[min(top, 3)][tier - 1]
