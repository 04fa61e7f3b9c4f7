"""Pictures of a sweep for the page: the same as fabsim.plots draws, to point at, with a menu of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.plots.marks import DECADE, FRONT, colours, shown
from fabsim.plots.pareto import front
from fabsim.plots.view import View, spans
from fabsim.report import dots
from fabsim.report.frame import band, canvas_of, each, menu
from fabsim.spread import group, others, table
from fabsim.swept import SAMPLE, Axis, axis, figure

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import xarray

MOST = 4000
"""Most points of a picture that are not on its front: of more, evenly chosen ones."""


NAMED = 8
"""Most points of a front whose names stand beside them; of a longer one they show where one points."""


def curves(data: xarray.Dataset, view: View) -> go.Figure:
    """Medians over an axis with bands of 5 to 95 %."""
    assert view.x is not None
    x, by = axis(data, view.x), axis(data, view.by) if view.by else None
    if x.dim == SAMPLE and x.numbers is not None:
        return dots.figure_over_key(data, view, x, by)
    chosen = (x,) if by is None else (x, by)
    canvas = canvas_of("median and 5 to 95 %", others(data, chosen), x)
    found = each(data, view, lambda of: _lines(table(data, of, *chosen).reshape(3, x.size, -1)))
    for number, tint in enumerate(colours(by)):
        name = shown(by.value(number)) if by else view.figure
        for values, style in zip(found[view.figure][3 * number :], _styles(x, tint), strict=False):
            at = x.labels if x.numbers is None else x.numbers
            canvas.add_scatter(x=at, y=values, name=name, legendgroup=name, offsetgroup=name, **style)
    canvas.update_layout(scattermode="group" if x.numbers is None else "overlay", scattergap=0.4)
    menu(canvas, data, view, found, "y", "yaxis.title.text")
    return canvas.update_layout(legend_title_text=shown(by.name) if by else "")


def heat(data: xarray.Dataset, view: View) -> go.Figure:
    """Medians over two axes as cells."""
    assert view.x is not None
    assert view.by is not None
    x, by = axis(data, view.x), axis(data, view.by)
    if x.dim == by.dim == SAMPLE and x.numbers is not None and by.numbers is not None:
        return dots.figure_as_colour(data, view, x, by)
    canvas = canvas_of("median", others(data, (x, by)), x)
    canvas.update_xaxes(type="category").update_yaxes(type="category", title_text=shown(by.heading))
    found = each(data, view, lambda of: [table(data, of, by, x)[1]])
    canvas.add_heatmap(
        x=x.labels, y=by.labels, z=found[view.figure][0], colorscale="YlGnBu", texttemplate="%{z:.4g}" * (x.size < 13),
        colorbar_title_text=shown(figure(data, view.figure).heading),
    )  # fmt: skip
    menu(canvas, data, view, found, "z", "title.text")
    return canvas


def pareto(data: xarray.Dataset, view: View) -> go.Figure:
    """What is paid against what is got; the front is named."""
    assert view.x is not None
    across, up = figure(data, view.x), figure(data, view.figure)
    found = front(data, across, up)
    canvas = canvas_of(f"{len(found.best)} of {len(found.x)} points are beaten by none{_with(found.same)}", "", None)
    some = np.unique(np.linspace(0, len(found.x) - 1, min(len(found.x), MOST)).astype(int))
    canvas.add_scatter(x=found.x[some], y=found.y[some], mode="markers", marker_color="#b5b5b5", name="beaten")
    canvas.add_scatter(
        x=found.x[found.best], y=found.y[found.best], text=list(map(shown, found.names)), textposition="top right",
        mode="markers+lines" + "+text" * (len(found.best) <= NAMED),
        line={"color": FRONT, "shape": "hv" if across.sign > 0 else "vh"}, marker_size=10, name="front",
    )  # fmt: skip
    for name, values in (("xaxis", found.x), ("yaxis", found.y)):
        if spans(values, DECADE):
            canvas.update_layout({f"{name}_type": "log"})
    return canvas.update_xaxes(title_text=shown(across.heading)).update_yaxes(title_text=shown(up.heading))


def share(data: xarray.Dataset, view: View) -> go.Figure:
    """The share of points within a value."""
    by, of = axis(data, view.by) if view.by else None, figure(data, view.figure)
    chosen = () if by is None else (by,)
    line = group(data, chosen)
    canvas = canvas_of("share of points within a value", others(data, chosen), None)
    for number, tint in enumerate(colours(by)):
        values = of.values[line == number]
        ended = np.sort(values[np.isfinite(values)])
        part = 100 * np.arange(1, len(ended) + 1) / max(len(values), 1)
        some = np.unique(np.linspace(0, len(ended) - 1, min(len(ended), MOST)).astype(int)) if len(ended) else []
        name = shown(by.value(number)) if by else of.name
        canvas.add_scatter(x=ended[some], y=part[some], name=name, mode="lines", line={"color": tint, "shape": "hv"})
    canvas.update_yaxes(title_text="share of points (%)", range=[0, 102])
    return canvas.update_xaxes(title_text=shown(of.heading))


def _with(same: str) -> str:
    return f", all with {shown(same)}" if same else ""


def _lines(found: Any) -> list[Any]:
    """Low, high and middle of each line, in the order of the traces."""
    return [found[part, :, number] for number in range(found.shape[2]) for part in (0, 2, 1)]


def _styles(x: Axis, tint: str) -> list[dict[str, Any]]:
    """How the low end, the high end and the middle of a line look: a band, or bars where the axis has names."""
    quiet = {"hoverinfo": "skip", "showlegend": False}
    if x.numbers is None:
        end = {"symbol": "line-ew", "size": 10, "line": {"width": 2, "color": tint}}
        return [{"mode": "markers", "marker": end, **quiet}] * 2 + [
            {"mode": "markers", "marker": {"color": tint, "size": 9}}
        ]
    return band(tint, "lines+markers")
