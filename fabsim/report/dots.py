"""Pictures of a sweep's samples for the page: a dot for each, to point at, with a menu of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabsim.plots.marks import colours, shown
from fabsim.plots.view import View, logarithmic
from fabsim.report.frame import canvas_of, each, menu
from fabsim.spread import others, table
from fabsim.swept import SAMPLE, Axis, axis, figure

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import xarray


def figure_over_key(data: xarray.Dataset, view: View, x: Axis, by: Axis | None) -> go.Figure:
    """The figure over one key; coloured by another key of the sample, or by the values of a grid's."""
    assert x.numbers is not None
    points = axis(data, SAMPLE)
    apart = by if by is not None and by.dim != SAMPLE else None
    canvas = canvas_of("a dot for each sample", others(data, (points,) if apart is None else (points, apart)), x)
    chosen = (points,) if apart is None else (points, apart)
    found = each(data, view, lambda of: list(table(data, of, *chosen)[1].reshape(points.size, -1).T))
    tints: list[Any] = list(colours(apart))
    if by is not None and apart is None and by.numbers is not None:
        tints = [by.numbers[by.place]]
    for number, (values, tint) in enumerate(zip(found[view.figure], tints, strict=True)):
        name = shown(apart.value(number)) if apart else view.figure
        bar = {} if isinstance(tint, str) or by is None else _bar(by.heading)
        marker = {"color": tint, "size": 8, **bar}
        canvas.add_scatter(x=x.numbers[x.place], y=values, mode="markers", name=name, marker=marker)
    menu(canvas, data, view, found, "y", "yaxis.title.text")
    return canvas


def figure_as_colour(data: xarray.Dataset, view: View, x: Axis, by: Axis) -> go.Figure:
    """Two keys of the sample, the figure as the colour."""
    assert x.numbers is not None
    assert by.numbers is not None
    points = axis(data, SAMPLE)
    canvas = canvas_of("a dot for each sample", others(data, (points,)), x)
    found = each(data, view, lambda of: [table(data, of, points)[1]])
    marker = {"color": found[view.figure][0], "size": 11, **_bar(figure(data, view.figure).heading)}
    canvas.add_scatter(x=x.numbers[x.place], y=by.numbers[by.place], mode="markers", marker=marker)
    canvas.update_yaxes(title_text=shown(by.heading), type="log" if logarithmic(by.numbers) else "linear")
    menu(canvas, data, view, found, "marker.color", "title.text")
    return canvas


def _bar(heading: str) -> dict[str, Any]:
    """The scale of colours."""
    bar = {"title": {"text": shown(heading)}}
    return {"colorscale": "YlGnBu", "colorbar": bar, "line": {"width": 0.5, "color": "#888"}}
