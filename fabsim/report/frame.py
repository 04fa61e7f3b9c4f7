"""What the pictures of a sweep have in common on the page: an empty figure, and a menu of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.plots.marks import shown
from fabsim.plots.view import View, logarithmic
from fabsim.report.page import plotly
from fabsim.swept import Axis, figure, figures

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import xarray


def canvas_of(what: str, over: str, x: Axis | None) -> go.Figure:
    """An empty figure with its title and horizontal axis."""
    canvas = plotly().graph_objects.Figure()
    dressed(canvas, f"{what}{f' over {over}' if over else ''}", 460)
    if x is not None:
        canvas.update_xaxes(title_text=shown(x.heading), type=_type(x))
        if x.numbers is not None and x.size <= 12:
            canvas.update_xaxes(tickvals=x.numbers, ticktext=x.labels, minor_ticks="")
    return canvas


def dressed(canvas: go.Figure, title: str, height: int) -> go.Figure:
    """With the look of all pictures of the page."""
    canvas.update_layout(
        template="simple_white", height=height, title={"text": title, "font_size": 14}, margin={"t": 70, "b": 55},
        hovermode="closest",
    )  # fmt: skip
    return canvas.update_xaxes(showgrid=True, gridcolor="#eee").update_yaxes(showgrid=True, gridcolor="#eee")


def each(data: xarray.Dataset, view: View, make: Any) -> dict[str, list[Any]]:
    """The arrays of the picture for each figure, that of the view first."""
    names = [view.figure, *(name for name in figures(data) if name != view.figure)]
    return {name: make(figure(data, name)) for name in names}


def menu(
    canvas: go.Figure, data: xarray.Dataset, view: View, found: dict[str, list[Any]], arrays: str, title: str
) -> None:
    """A menu that changes the figure."""
    buttons = []
    for name, values in found.items():
        head = shown(figure(data, name).heading)
        changed = [{arrays: [_plain(value) for value in values]}, {title: head}]
        buttons.append({"label": name, "method": "update", "args": changed})
    canvas.update_layout({title.replace(".", "_"): buttons[0]["args"][1][title]})
    place = {"x": 1, "xanchor": "right", "y": 1.16, "yanchor": "top"}
    canvas.update_layout(updatemenus=[{"buttons": buttons, "direction": "down", "showactive": True, **place}])


def band(tint: str, middle: str) -> list[dict[str, Any]]:
    """How the low end, the high end and the middle of a band look. middle: its mode in plotly."""
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    red, green, blue = (int(tint[i : i + 2], 16) for i in (1, 3, 5))
    return [
        edge,
        {**edge, "fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.15)"},
        {"mode": middle, "line": {"color": tint, "width": 2}},
    ]


def _type(x: Axis) -> str:
    return "category" if x.numbers is None else "log" if logarithmic(x.numbers) else "linear"


def _plain(values: Any) -> Any:
    """Lists, with nothing where there is no number."""
    found = np.round(values, 6).astype(object)
    found[~np.isfinite(values)] = None
    return found.tolist()
