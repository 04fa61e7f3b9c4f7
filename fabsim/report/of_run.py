"""The page of a run, or of the cases of one scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabsim.plots.figure import colour
from fabsim.report import over_time
from fabsim.report.page import origin, picture, plotly, text
from fabsim.results import Result
from fabsim.tables import busiest_links, summary, totals

if TYPE_CHECKING:
    import plotly.graph_objects as go


def parts(results: Sequence[Result]) -> tuple[str, str, list[tuple[str, str]]]:
    """Title, lead and sections."""
    first = results[0]
    cases = f"{len(results)} cases: {', '.join(one.name for one in results)}" if len(results) > 1 else "A run"
    lead = f"{cases}. {len(first.size):,} flows, {len(first.link):,} links, seed {first.seed}."
    sections = [
        ("Completions and totals", text(f"{summary(results)}\n\n{totals(results)}")),
        ("How many flows have completed", picture(completions(results))),
    ]
    for one in results:
        named = f": {one.name}" if len(results) > 1 else ""
        sections += [
            (f"Busiest links{named}", text(busiest_links(one))),
            (f"Over time{named}", picture(over_time.of_run(one)) if len(one.watched) else ""),
        ]
    for one in results:
        named = f" of {one.name}" if len(results) > 1 else ""
        again, scenario, versions = origin(one.scenario, one.versions, "fabsim run again.yaml --out again.h5")
        sections += [again] * (one is first) + [(f"Scenario{named}", scenario[1])] + [versions] * (one is results[-1])
    return first.name if len(results) == 1 else "Cases of a scenario", lead, sections


def completions(results: Sequence[Result]) -> go.Figure:
    """The share of flows within a time, a line for each case."""
    canvas = _canvas("completion time (µs)", "share of flows (%)")
    for number, result in enumerate(results):
        order = np.argsort(result.duration)[: int(np.isfinite(result.duration).sum())]
        share = 100 * np.arange(1, len(order) + 1) / max(len(result.duration), 1)
        told = [f"flow {flow}: host {result.src[flow]} to {result.dst[flow]}" for flow in order]
        style = {"color": colour(number), "shape": "hv"}
        canvas.add_scatter(x=result.duration[order] * 1e6, y=share, text=told, name=result.name, line=style)
    return canvas.update_yaxes(range=[0, 102])


def _canvas(x: str, y: str) -> go.Figure:
    canvas = plotly().graph_objects.Figure()
    canvas.update_layout(template="simple_white", height=420, margin={"t": 30, "b": 55}, xaxis_title=x, yaxis_title=y)
    return canvas.update_xaxes(showgrid=True, gridcolor="#eee").update_yaxes(showgrid=True, gridcolor="#eee")
