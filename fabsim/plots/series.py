"""A series of a sweep over time: a panel for each link, a line for each value of a key, and the range of its draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fabsim.errors import InputError
from fabsim.plots.figure import new_figure
from fabsim.plots.marks import colours, legend, shown, titled
from fabsim.plots.view import View
from fabsim.spread import group, others, spread
from fabsim.swept import Axis, axis, headed, scaled
from fabsim.typing import Float

if TYPE_CHECKING:
    import xarray

PANELS = 3
"""Links that are drawn where nobody names any: those with the most of the figure."""


@dataclass(frozen=True)
class Panels:
    """What is drawn over time.

    Attributes:
        heading: the series with its unit.
        over: what the medians are over, in words.
        by: a line for each of its values; None: a single line.
        time: [T] us.
        found: by link [3, lines, T], the 5th percentile, the median and the 95th percentile of the runs that go on at
            that time.
    """

    heading: str
    over: str
    by: Axis | None
    time: Float
    found: dict[str, Float]


def panels(data: xarray.Dataset, view: View, links: Sequence[str] = ()) -> Panels:
    """The series of a sweep, link by link. Raises InputError for a link that was not watched."""
    by = axis(data, view.by) if view.by else None
    chosen = () if by is None else (by,)
    of, frames = data[view.figure], data.sizes["time"]
    values = np.asarray(of.values, np.float64).reshape(-1, frames, data.sizes["watched"])
    places = _places([str(name) for name in data["watched"].values], values, links)
    unit, factor = scaled(str(of.attrs.get("units", "")), np.nan_to_num(values))
    cell = group(data, chosen)[:, None] * frames + np.arange(frames)
    lines = by.size if by else 1
    found = {
        name: spread(values[:, :, place].reshape(-1) * factor, cell.reshape(-1), lines * frames)
        for name, place in places.items()
    }
    return Panels(
        heading=shown(headed(view.figure.removeprefix("series_"), unit)),
        over=others(data, chosen),
        by=by,
        time=data["time"].values * 1e6,
        found={name: values.reshape(3, lines, frames) for name, values in found.items()},
    )


def series(data: xarray.Dataset, view: View, links: Sequence[str] = ()) -> Figure:
    """Medians with the 5 to 95 % range over all that is not shown, of the runs that go on at that time.

    Raises:
        InputError: a link that was not watched.
    """
    drawn = panels(data, view, links)
    canvas = new_figure(7.8, 1.4 + 2.2 * len(drawn.found))
    rows = canvas.subplots(len(drawn.found), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, found) in zip(rows, drawn.found.items(), strict=True):
        _lines(axes, drawn.time, found, drawn.by)
        axes.set_ylabel(f"{name}\n{drawn.heading}")
    rows[-1].set_xlabel("time (µs)")
    meaning = str(data[view.figure].attrs.get("long_name", ""))
    titled(rows[0], data, f"median and 5 to 95 % over {drawn.over}" if drawn.over else meaning)
    legend(canvas, rows[0], drawn.by.heading if drawn.by else "")
    return canvas


def _places(names: list[str], values: Float, links: Sequence[str]) -> dict[str, int]:
    """The links that are drawn, with their places among the watched."""
    missing = [link for link in links if link not in names]
    if missing:
        raise InputError(f"--link {missing[0]}: was not watched in this sweep; there are {', '.join(names)}")
    most = np.sort(np.argsort(-np.nansum(values, (0, 1)), kind="stable")[:PANELS])
    return {name: names.index(name) for name in links or [names[place] for place in most]}


def _lines(axes: Axes, time: Float, found: Float, by: Axis | None) -> None:
    for number, tint in enumerate(colours(by)):
        low, middle, high = found[:, number]
        axes.plot(time, middle, color=tint, linewidth=1.5, label=by.labels[number] if by else None)
        axes.fill_between(time, low, high, color=tint, alpha=0.15, linewidth=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
