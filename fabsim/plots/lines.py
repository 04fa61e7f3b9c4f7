"""Lines: how many flows have completed, and queues and utilisation over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fabsim.errors import InputError
from fabsim.plots.events import shade_faults
from fabsim.plots.figure import colour, label, new_figure
from fabsim.results import Result
from fabsim.tables import Packets
from fabsim.typing import Float


def completion_cdf(results: Sequence[Result], packets: Packets | None = None) -> Figure:
    """Share of flows that completed within a time: a line for each case, dashes for packet-level figures.

    A line that ends below 100 % has flows that did not end.
    """
    figure = new_figure(6.4, 4.2)
    draw_cdf(figure.add_subplot(), results, packets)
    return figure


def over_time(result: Result, links: Sequence[int] | Sequence[str] | None = None, count: int = 6) -> Figure:
    """Queue and utilisation of some watched links over time; spans of `faults` are shaded.

    Args:
        links: watched links by name, or by number among the watched; None: the `count` busiest of them.

    Raises:
        InputError: a link has no series in this result.
    """
    figure = new_figure(7.2, 5.6)
    top, bottom = figure.subplots(2, 1, sharex=True)
    for number, place in enumerate(_places(result, links, count)):
        style: dict[str, Any] = {"color": colour(number), "linewidth": 1.4}
        top.plot(result.time * 1e6, result.series_queue[:, place] * 1e-3, label=result.watched[place], **style)
        bottom.plot(result.time * 1e6, result.series_utilisation[:, place] * 100, **style)
    for axes in (top, bottom):
        shade_faults(axes, result)
    label(top, f"{result.name}: queues and utilisation", "", "mean queue (kB)")
    label(bottom, "", "time (µs)", "utilisation (%)")
    return figure


def draw_cdf(axes: Axes, results: Sequence[Result], packets: Packets | None) -> None:
    """Completion times of all cases."""
    for number, result in enumerate(results):
        _draw_share(axes, result.duration, result.name, color=colour(number))
        if packets and result.name in packets:
            _draw_share(axes, packets[result.name], f"{result.name}, packets", color=colour(number), linestyle="--")
    label(axes, "flow completion", "completion time (µs)", "share of flows (%)")
    axes.set_ylim(0, 102)


def draw_longest_queue(axes: Axes, results: Sequence[Result]) -> None:
    """Over time, the queue of that watched switch port which has the longest at the moment, for each case."""
    for number, result in enumerate(results):
        longest = np.where(_in_switch(result), result.series_queue, 0.0).max(1, initial=0.0)
        axes.plot(result.time * 1e6, longest * 1e-3, color=colour(number), label=result.name)
    label(axes, "longest queue in a switch", "time (µs)", "mean queue of a frame (kB)")


def _draw_share(axes: Axes, times: Float, name: str, **style: Any) -> None:
    """A cumulative line in steps."""
    ended = np.sort(times[np.isfinite(times)]) * 1e6
    share = 100 * np.arange(len(ended) + 1) / max(len(times), 1)
    axes.step(
        np.concatenate([ended[:1], ended]), share[: len(ended[:1]) + len(ended)], where="post", label=name, **style
    )


def _places(result: Result, links: Sequence[int] | Sequence[str] | None, count: int) -> list[int]:
    """Places of the chosen links among the watched."""
    if links is None:
        return result.busiest_watched[:count].tolist()
    names = result.watched.tolist()
    wanted = [names[link] if isinstance(link, int) and link < len(names) else link for link in links]
    missing = [str(link) for link in wanted if link not in names]
    if missing:
        kept = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise InputError(f"no series of {', '.join(missing)} in this result; it has those of {kept or 'no link'}")
    return [names.index(name) for name in wanted]


def _in_switch(result: Result) -> np.ndarray:
    """Which watched links leave a switch: what waits at a NIC is the sender's own."""
    number = {name: place for place, name in enumerate(result.link.tolist())}
    watched = [number[name] for name in result.watched.tolist()]
    return result.tail_tier[watched] > 0
