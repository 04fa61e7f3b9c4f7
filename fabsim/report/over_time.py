"""Series over time for the page: what was kept of watched links, in panels above each other, to zoom into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabsim.plots.figure import colour
from fabsim.plots.marks import colours, shown
from fabsim.plots.series import panels
from fabsim.plots.view import View
from fabsim.report.frame import band, dressed
from fabsim.report.page import plotly

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import xarray

    from fabsim.results import Result

PANEL = 200
"""Pixels of a panel."""
LINKS = 6
"""Links of a run that are drawn."""


def of_sweep(data: xarray.Dataset, view: View) -> go.Figure:
    """A panel for each of the links with the most of a series, a line with its band for each value of a key."""
    drawn = panels(data, view)
    canvas = _stacked([f"{link}<br>{drawn.heading}" for link in drawn.found])
    for row, found in enumerate(drawn.found.values(), start=1):
        for number, tint in enumerate(colours(drawn.by)):
            name = shown(drawn.by.value(number)) if drawn.by else view.figure
            low, middle, high = found[:, number]
            for values, style in zip((low, high, middle), band(tint, "lines"), strict=True):
                told = {"name": name, "legendgroup": name, "showlegend": row == 1 and drawn.by is not None} | style
                canvas.add_scatter(x=drawn.time, y=values, row=row, col=1, **told)
    title = f"median and 5 to 95 % over {drawn.over}" if drawn.over else ""
    return dressed(canvas, title, _height(len(drawn.found))).update_layout(
        legend_title_text=shown(drawn.by.name) if drawn.by else ""
    )


def of_run(result: Result) -> go.Figure:
    """Queues and utilisation of the busiest of the watched links."""
    canvas = _stacked(["mean queue of a frame<br>(kB)", "utilisation (%)"])
    for tint, place in enumerate(result.busiest_watched[:LINKS]):
        name = str(result.watched[place])
        parts = result.series_queue[:, place] * 1e-3, result.series_utilisation[:, place] * 100
        for row, values in enumerate(parts, start=1):
            told = {"name": name, "legendgroup": name, "showlegend": row == 1, "line": {"color": colour(tint)}}
            canvas.add_scatter(x=result.time * 1e6, y=values, mode="lines", row=row, col=1, **told)
    return dressed(canvas, "", _height(2))


def _stacked(labels: Sequence[str]) -> go.Figure:
    """Empty panels over one axis of time."""
    plotly()
    from plotly.subplots import make_subplots

    canvas = make_subplots(rows=len(labels), cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for row, label in enumerate(labels, start=1):
        canvas.update_yaxes(title_text=label, rangemode="tozero", row=row, col=1)
    return canvas.update_xaxes(title_text="time (µs)", row=len(labels), col=1)


def _height(rows: int) -> int:
    """Pixels of a picture of so many panels."""
    return 120 + PANEL * rows
