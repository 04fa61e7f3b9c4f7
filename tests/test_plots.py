"""Pictures: they are made, say what they show, and show the right cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from fabsim.collect import collect
from fabsim.errors import InputError
from fabsim.plots import completion_cdf, heat_map, over_time, overview, save
from fabsim.results import Result

Recorded = Callable[..., dict[str, Any]]


def labels(figure: Figure) -> set[str]:
    """All axis labels of a figure, empty ones left out."""
    return {text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel()) if text}


def test_cdf_shows_fluid_and_packets(result: Result, other_case: Result) -> None:
    figure = completion_cdf([result, other_case], {"ECMP": np.array([31e-6, 41e-6, 61e-6])})
    assert labels(figure) == {"completion time (µs)", "share of flows (%)"}
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["ECMP", "ECMP, packets", "spray"]
    x, y = figure.axes[0].lines[0].get_data()
    np.testing.assert_allclose(x, [30, 30, 40, 60])
    np.testing.assert_allclose(y, [0, 100 / 3, 200 / 3, 100])


def test_flows_that_did_not_end_keep_the_line_below_the_top(recorded: Recorded) -> None:
    figure = completion_cdf([collect(**recorded(np.array([30e-6, np.inf, np.inf])), name="x")])
    assert max(figure.axes[0].lines[0].get_ydata()) == pytest.approx(100 / 3)


def test_no_flow_ended_is_still_a_picture(recorded: Recorded) -> None:
    never = collect(**recorded(np.full(3, np.inf)), name="x")
    for figure in (completion_cdf([never]), overview([never])):
        assert len(figure.axes[0].lines[0].get_xdata()) == 0


def test_series_of_chosen_links(result: Result) -> None:
    figure = over_time(result, ["leaf1->h2"])
    assert labels(figure) == {"mean queue (kB)", "utilisation (%)", "time (µs)"}
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [400, 266.67, 133.33, 0], rtol=1e-4)
    assert over_time(result).axes[0].lines[0].get_label() == "leaf1->h2"
    with pytest.raises(InputError, match="no series of leaf0->h9 in this result; it has those of"):
        over_time(result, ["leaf0->h9"])


def test_heat_map_has_each_link_once_and_dead_ones_grey(result: Result) -> None:
    figure = heat_map(result)
    grids = {
        axes.get_title(loc="left"): axes.images[0].get_array() for axes in figure.axes if axes.get_title(loc="left")
    }
    assert set(grids) == {"hosts to leaves", "leaves to spines", "spines to leaves", "leaves to hosts"}
    assert sum(grid.size for grid in grids.values()) == len(result.link)
    np.testing.assert_allclose(grids["leaves to hosts"].filled(-1), [[0, 0], [100, 0]])
    np.testing.assert_allclose(grids["leaves to spines"].filled(-1), [[200 / 3, -1], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize("quantity", ["queue_peak", "queue_mean", "marked", "dropped"])
def test_heat_map_of_other_quantities(result: Result, quantity: Any) -> None:
    figure = heat_map(result, quantity)
    assert any("(kB)" in text for text in labels(figure))


def test_saved_pictures_open(result: Result, other_case: Result, tmp_path: Path) -> None:
    figures = {"a.png": overview([result, other_case]), "b.svg": over_time(result), "c.pdf": heat_map(result)}
    for name, figure in figures.items():
        save(figure, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(InputError, match=r"ends in \.png, \.svg or \.pdf"):
        save(figures["a.png"], tmp_path / "a.jpg")
    with pytest.raises(InputError, match="exists already"):
        save(figures["a.png"], tmp_path / "a.png", force=False)


def test_faults_are_shaded(result: Result) -> None:
    """A flap of 2 of each 10 us from 5 us on, and a death until 12 us; the series end at 30 us."""
    flap, death = (
        "{link: a, at: 5 us, flap: {every: 10 us, down: 2 us}, until: 18 us}",
        "{link: b, until: 12 us, speed: 0}",
    )
    figure = over_time(replace(result, scenario=f"faults: [{flap}, {death}]"))
    found = [patch.get_path().get_extents(patch.get_patch_transform()) for patch in figure.axes[0].patches]
    assert [(box.x0, box.x1) for box in found] == [pytest.approx(x) for x in ((5, 7), (15, 17), (0, 12))]
    assert not over_time(result).axes[0].patches
