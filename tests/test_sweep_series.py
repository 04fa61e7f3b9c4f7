"""Series of links in sweeps: those of a run of its own, told beforehand how large, and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabsim
from fabsim.cli import main
from fabsim.study.series import laid, until_the_end
from fabsim.sweeps.ranks import Rank

SMALL: dict[str, Any] = {
    "name": "small",
    "fabric": {
        "kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4, "rate": "400 Gbps", "latency": "1 us",
    },
    "routing": {"kind": "ecmp"},
    "traffic": [{"kind": "shift", "by": 4, "size": "256 KiB"}],
    "transport": {"kind": "dctcp"},
    "every": "3 us",
}  # fmt: skip
SERIES = ["series_queue", "series_peak", "series_utilisation", "series_marked", "series_dropped"]
SWEEP: dict[str, Any] = {
    "grid": {"fabric.spines": [2, 4], "queue.buffer": ["60 kB", "1 MB"]},
    "seeds": 2,
    "batch": 3,
    "traces": SERIES,
    "watch": ["leaf0->spine3", "leaf0->spine0", "spine*->leaf1"],
}


def of(**sweep: Any) -> fabsim.Scenario:
    """The small scenario with such a sweep."""
    return fabsim.load({**SMALL, "sweep": {**SWEEP, **sweep}})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep on the disk, half of it done and then the rest."""
    place = tmp_path_factory.mktemp("series") / "d"
    half = fabsim.sweep(of(), place, rank=Rank(0, 2), progress=False)
    assert half.identical(fabsim.open(place))
    assert np.isnan(half.series_queue.isel({"fabric.spines": 1}).values).any()
    fabsim.sweep(of(), place, progress=False)
    return place


def test_series_are_those_of_a_run_of_its_own(folder: Path) -> None:
    found = fabsim.open(folder)
    assert found.series_queue.dims == ("fabric.spines", "queue.buffer", "seed", "time", "watched")
    assert found.watched.values.tolist()[:2] == ["leaf0->spine3", "leaf0->spine0"]
    np.testing.assert_allclose(found.time, 3e-6 * np.arange(1, found.sizes["time"] + 1), rtol=1e-6)
    alone = fabsim.run(fabsim.load(SMALL, queue__buffer="60 kB", seed=2), watch="all", progress=False)
    assert alone.dropped.sum() > 0
    place = [alone.watched.tolist().index(name) for name in found.watched.values]
    frames = int(np.ceil(alone.last / 3e-6))
    point = found.sel({"fabric.spines": 4, "queue.buffer": 60e3, "seed": 2})
    for name in SERIES:
        mine, own = point[name].values, getattr(alone, name)[:, place]
        np.testing.assert_allclose(mine[:frames], own[:frames], rtol=1e-5, atol=1e-6 * own.max(), err_msg=name)
        assert np.isnan(mine[frames:]).all()
    missing = found.series_queue.sel({"fabric.spines": 2, "watched": "leaf0->spine3"})
    assert np.isnan(missing.values).all()
    assert np.isfinite(found.series_queue.sel({"fabric.spines": 2, "watched": "leaf0->spine0"}).isel(time=0)).all()


def test_they_change_nothing_else_and_depend_on_no_batch(folder: Path) -> None:
    found = fabsim.open(folder)
    without = fabsim.sweep(of(traces=[], watch=[], batch=1), progress=False)
    other = fabsim.sweep(of(traces=["completion", "series_queue"], batch=2), progress=False)
    np.testing.assert_allclose(without.last_completion, found.last_completion, rtol=1e-6)
    np.testing.assert_allclose(other.series_queue, found.series_queue, rtol=1e-5, atol=1e-2)
    assert other.completion.sizes["flow"] == 8


def test_their_size_is_told_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "{name: s, fabric: {kind: single_switch, hosts: 4, rate: 400 Gbps, latency: 1 us}, until: 30 us, traffic: "
        "[{kind: shift, by: 1, size: 1 MB}], sweep: {grid: {transport.window: [1 BDP, 2 BDP]}, "
        "traces: [series_queue, completion], watch: [h0]}}"
    )
    (tmp_path / "s.yaml").write_text(text)
    assert main(["sweep", "s.yaml", "--dry-run"]) == 0
    says = "traces (series_queue, completion) of 2 links: 80 B before compression"  # 2 x (3 frames x 2 links + 4) x 4 B
    assert says in capsys.readouterr().out
    assert main(["sweep", "s.yaml", "--out", "d", "--quiet"]) == 0
    assert says in capsys.readouterr().err
    found = fabsim.open("d")
    assert (2 * found.series_queue.size + 2 * found.completion.size) * 2 == 80


def test_bad_input_is_told() -> None:
    for sweep, says in (
        ({"watch": []}, 'sweep: series_queue is kept of links; name them, like watch: ["leaf0->spine*"]'),
        ({"traces": ["start"]}, "sweep: nothing is kept of the links of `watch`"),
        (
            {"traces": ["series_queues"]},
            "sweep.traces.0: not one of the choices, given 'series_queues'",
        ),
        ({"watch": ["leaf0->spine0", "leaf9->spine*"]}, 'sweep.watch.1: no link or node is named "leaf9->spine*"'),
        ({"grid": {"dt": ["1 us", "700 ns"]}}, "sweep.traces: series_queue has one axis of time, and frames of 3 us"),
    ):
        with pytest.raises(fabsim.InputError) as error:
            fabsim.sweep(of(**sweep), progress=False)
        assert says in str(error.value), str(error.value)


def test_the_page_has_them_with_their_bands(folder: Path) -> None:
    """Three traces a line and panel: both ends of the band, and the median."""
    from fabsim.plots.view import view
    from fabsim.report.over_time import of_sweep

    data = fabsim.open(folder)
    canvas = of_sweep(data, view(data, "time", metric="series_queue", by="queue.buffer"))
    assert len(canvas.data) == 3 * 3 * 2
    assert [trace.name for trace in canvas.data if trace.showlegend is not False] == ["60 kB", "1000 kB"]
    label = canvas.layout.yaxis.title.text
    link, unit = label.split("<br>")
    assert unit == "queue (kB)"
    values = data.series_queue.sel(watched=link).isel({"queue.buffer": 0}).values.reshape(4, -1) * 1e-3
    low, high, middle = (np.asarray(trace.y, float) for trace in canvas.data[:3])
    np.testing.assert_allclose(middle[0], np.nanmedian(values[:, 0]), rtol=1e-6)
    assert low[0] <= middle[0] <= high[0]
    assert canvas.data[0].x[0] == pytest.approx(3.0)


def test_they_are_drawn(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fabsim import plots

    monkeypatch.chdir(tmp_path)
    canvas = plots.plot(fabsim.open(folder), "time", by="queue.buffer", links=["leaf0->spine0"])
    (axes,) = canvas.axes
    data = fabsim.open(folder).series_queue.sel(watched="leaf0->spine0").isel(time=0)
    for number in range(2):
        some = data.isel({"queue.buffer": number}).values
        assert np.asarray(axes.lines[number].get_ydata())[0] == pytest.approx(np.median(some) * 1e-3)
    for more in (["--metric", "series_utilisation"], ["--link", "leaf0->spine0", "--link", "spine0->leaf1"]):
        assert main(["plot", str(folder), "--kind", "time", "--out", "p.png", "--force", *more]) == 0
    assert main(["report", str(folder)]) == 0
    page = Path("report.html").read_text()
    for name in SERIES:
        assert f"Over time: {name}" in page
    capsys.readouterr()
    for more, says in (
        (["--kind", "time", "--link", "leaf1->spine0"], "--link leaf1->spine0: was not watched in this sweep"),
        (
            ["--kind", "time", "--metric", "queue_peak"],
            "queue_peak: is no series of this sweep; there are",
        ),
        (["--kind", "time", "--x", "seed"], "--x seed: a series lies over time"),
        (["--kind", "heat", "--link", "leaf0->spine0"], "--link leaf0->spine0: heat shows no single link"),
    ):
        assert main(["plot", str(folder), *more]) == 2
        assert says in capsys.readouterr().err


def test_rows_of_unequal_length() -> None:
    values = np.arange(12.0).reshape(2, 3, 2)
    ended = until_the_end(values, np.array([[False, True], [False, False]]), np.array([0.5, 1.2]))
    np.testing.assert_array_equal(ended, [[[0, np.nan], [np.nan, np.nan]], [[6, 7], [8, 9]]])
    assert until_the_end(values, np.zeros((2, 2), bool), np.array([np.inf, 1.0])).shape == (2, 3, 2)
    whole = laid(None, [2], np.ones((1, 1)), 3)
    whole = laid(whole, [0], np.full((1, 2), 2.0), 3)
    np.testing.assert_array_equal(whole, [[2, 2], [np.nan, np.nan], [1, np.nan]])


def test_runs_of_unequal_end_are_programs_of_their_own() -> None:
    grid = {"until": ["12 us", "24 us"], "every": ["3 us", "12 us"]}
    found = fabsim.sweep(fabsim.load({**SMALL, "sweep": {"grid": grid, "metrics": ["sent"]}}), progress=False)
    assert (found.sent.isel(until=0) < 0.9 * found.sent.isel(until=1)).all(), found.sent.values
