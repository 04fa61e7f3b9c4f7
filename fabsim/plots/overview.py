"""The whole story of a scenario on one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure, SubFigure

from fabsim.plots.figure import new_figure
from fabsim.plots.heat import add_scale, draw_stage, stages
from fabsim.plots.lines import draw_cdf, draw_longest_queue
from fabsim.results import Result
from fabsim.tables import Packets


def overview(results: Sequence[Result], packets: Packets | None = None) -> Figure:
    """Completions, queues over time, and where the bytes went, case by case."""
    heights = [3.6, 2.6 * -(-len(results) // 2)]
    figure = new_figure(11.0, sum(heights))
    halves: Any = figure.subfigures(2, 1, height_ratios=heights)
    upper, lower = halves
    left, right = upper.subplots(1, 2)
    draw_cdf(left, results, packets)
    draw_longest_queue(right, results)
    _draw_first_stages(lower, results)
    return figure


def _draw_first_stages(figure: SubFigure, results: Sequence[Result]) -> None:
    """Utilisation of the links up from the lowest switches (of the hosts' links where there are no others)."""
    panels = figure.subplots(-(-len(results) // 2), min(len(results), 2), squeeze=False).ravel().tolist()
    for panel, result in zip(panels, results, strict=False):
        found = stages(result)
        stage = next((stage for stage in found if 0 < stage.tail <= stage.head), found[0])
        draw_stage(panel, result, stage, "utilisation", 100.0)
        panel.set_title(f"{result.name}: {panel.get_title(loc='left')}", loc="left")
    for panel in panels[len(results) :]:
        panel.set_axis_off()
    add_scale(figure, panels, "utilisation")
