"""Reading a sweep: what a table, a picture, a page and a file of it say. Nothing is simulated but one tiny sweep."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import fabsim
from fabsim import plots, report
from fabsim.cli import main
from fabsim.errors import InputError
from fabsim.plots.pareto import unbeaten
from fabsim.plots.view import KINDS, logarithmic, view
from fabsim.spread import others, spread, table
from fabsim.store import Sheet, Variable, encode, publish
from fabsim.study.catalogue import metric
from fabsim.sweeps.pivot import pivot
from fabsim.sweeps.rows import as_csv
from fabsim.sweeps.table import as_text, reasons
from fabsim.sweeps.whole import dataset
from fabsim.swept import at, axis, figure

BUFFER = ("queue.buffer", [1e5, 2e5, 4e5, 8e5], "B")
WINDOW = ("transport.window", [0.5, 1.0, 2.0], "BDP")
ROUTING = ("routing.kind", ["ecmp", "drawn"], "")
SEEDS = ("seed", [1, 2, 3, 4, 5], "")
PLANES = {"zip": [("fabric.planes", [1, 2, 4], ""), ("fabric.rate", [5e10, 2.5e10, 1.25e10], "B/s")]}
SAMPLE = {"sample": [("queue.buffer", [1e5, 3e5, 9e5, 2e5], "B"), ("transport.window", [0.6, 1.7, 1.1, 0.9], "BDP")]}

Key = tuple[str, list[Any], str]


def made_up(
    *grid: Key, together: Mapping[str, list[Key]] | None = None, seeds: Key | None = None, **figures: Any
) -> Sheet:
    """A sweep: keys of a grid, keys that go together, seeds, and figures (arrays of the shape of the design)."""
    dims = {name: [(name, values, unit)] for name, values, unit in grid} | dict(together or {})
    dims |= {"seed": [seeds]} if seeds else {}
    variables = {
        key: Variable((dim,), np.array(values, dtype=object if isinstance(values[0], str) else None), unit)
        for dim, parts in dims.items()
        for key, values, unit in parts
    }
    names, keys = tuple(dims), list(variables)
    shape = tuple(len(parts[0][1]) for parts in dims.values())
    for name, values in figures.items():
        about = metric(name)
        assert about is not None
        variables[name] = Variable(names, np.broadcast_to(values, shape).astype(float), about.unit, about.meaning)
    failed = np.isnan(next(variables[name].values for name in figures))
    variables["failed"] = Variable(names, failed.astype(np.int8))
    variables["reason"] = Variable(names, np.where(failed, "3 of 8 flows are unfinished", "").astype(object))
    variables["scenario"] = Variable((), np.array("name: made up\n", dtype=object))
    facts = {"kind": "sweep", "name": "made up", "seed": 1, "versions": json.dumps({"fabsim": "0.1.0"})}
    return Sheet(variables, facts | {"coordinates_of": json.dumps(keys)})


@pytest.fixture
def grid() -> xarray.Dataset:
    """4 buffers, 3 windows, 5 seeds: 100 us + 10 ns for each kB + 10 us for each BDP + the seed in us; one failed."""
    last = (
        100e-6
        + 1e-11 * np.array(BUFFER[1])[:, None, None]
        + 10e-6 * np.array(WINDOW[1])[:, None]
        + 1e-6 * np.array(SEEDS[1])
    )
    last[3, 2, 4] = np.nan
    return dataset(made_up(BUFFER, WINDOW, seeds=SEEDS, last_completion=last, queue_peak=2 * np.nan_to_num(last) * 1e9))


@pytest.fixture
def folder(grid: xarray.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as a file, in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    values = np.asarray(grid.last_completion)
    publish("s.h5", encode({"": made_up(BUFFER, WINDOW, seeds=SEEDS, last_completion=values, queue_peak=1e5)}))
    return tmp_path


def test_spread_is_what_numpy_says() -> None:
    random = np.random.default_rng(1)
    values, cell = random.normal(size=400), random.integers(0, 7, 400)
    values[random.random(400) < 0.1] = np.nan
    found = spread(values, cell, 8)
    for number in range(7):
        some = values[(cell == number) & np.isfinite(values)]
        np.testing.assert_allclose(found[:, number], np.quantile(some, [0.05, 0.5, 0.95]))
    assert np.isnan(found[:, 7]).all()


def test_axes_and_figures_as_they_are_shown(grid: xarray.Dataset) -> None:
    buffer, last = axis(grid, "queue.buffer"), figure(grid, "last_completion")
    assert (buffer.labels, buffer.heading) == (("100", "200", "400", "800"), "queue.buffer (kB)")
    assert last.heading == "last_completion (us)"
    assert last.values[0] == pytest.approx(107.0)
    with pytest.raises(InputError, match=r"queue\.bufer: is no axis of this sweep; there are queue\.buffer, transport"):
        axis(grid, "queue.bufer")
    with pytest.raises(InputError, match="cost: is no figure of this sweep; there are last_completion, queue_peak"):
        figure(grid, "cost")


def test_a_table_over_two_axes_is_the_median_over_the_others(grid: xarray.Dataset) -> None:
    buffer, window = axis(grid, "queue.buffer"), axis(grid, "transport.window")
    low, middle, high = table(grid, figure(grid, "last_completion"), window, buffer)
    by_hand = grid.last_completion.median("seed").transpose("transport.window", "queue.buffer") * 1e6
    np.testing.assert_allclose(middle, by_hand)
    assert (high - low)[0] == pytest.approx(3.6)
    assert others(grid, [buffer, window]) == "5 seeds"
    assert others(grid, [buffer]) == "3 transport.window, 5 seeds"


def test_pivot_marks_the_best_and_says_what_it_is_over(grid: xarray.Dataset) -> None:
    lines = pivot(grid, "transport.window", "queue.buffer").splitlines()
    assert lines[0] == "last_completion (us), median over 5 seeds; * is the best"
    assert lines[1].split() == ["transport.window", "(BDP)", "\\", "queue.buffer", "(kB)", "100", "200", "400", "800"]
    assert lines[2].split() == ["0.5", "109.00*", "110.00", "112.00", "116.00"]
    more = dataset(made_up(BUFFER, ROUTING, goodput=1e9 * np.arange(8).reshape(4, 2)))
    assert "56.00*" in pivot(more, "queue.buffer", "routing.kind")  # more goodput is better
    with pytest.raises(InputError, match="one axis twice"):
        pivot(grid, "seed", "seed")


def test_the_text_says_what_failed(grid: xarray.Dataset) -> None:
    text = as_text(grid)
    assert "109.00 (107.20 to 110.80)" in text.splitlines()[1]
    assert "median (5 to 95 %) of those of 5 seeds that have figures, 4 to 5 at each point" in text
    assert text.endswith("1 of 60 have no figures:\n  1 x 3 of 8 flows are unfinished")
    assert reasons(grid) == {"3 of 8 flows are unfinished": 1}


def test_seeds_may_stand_anywhere_in_the_design(grid: xarray.Dataset) -> None:
    """A row is the median over seeds, not over what comes after them in the file."""
    for order in (("seed", "queue.buffer", "transport.window"), ("queue.buffer", "seed", "transport.window")):
        assert as_text(grid.transpose(*order)).splitlines() == as_text(grid).splitlines()


def test_a_part_of_a_sweep(grid: xarray.Dataset) -> None:
    for text in ("200", "200 kB", "0.2 MB"):
        assert at(grid, {"queue.buffer": text}).sizes["queue.buffer"] == 1
    some = at(grid, {"queue.buffer": "200 kB", "seed": "3"})
    assert figure(some, "last_completion").values == pytest.approx([110.0, 115.0, 125.0])
    with pytest.raises(InputError, match=r"queue\.buffer=3 kB: was not tried in this sweep; there are 100 kB, 200 kB"):
        at(grid, {"queue.buffer": "3 kB"})


def test_keys_that_go_together() -> None:
    data = dataset(made_up(ROUTING, together=PLANES, last_completion=np.arange(6).reshape(2, 3) * 1e-6))
    assert axis(data, "zip").labels == ("planes 1", "planes 2", "planes 4")
    assert axis(data, "fabric.rate").labels == ("100", "200", "400")  # numbers in order
    found = table(data, figure(data, "last_completion"), axis(data, "fabric.rate"))[1]
    np.testing.assert_allclose(found, [3.5, 2.5, 1.5])
    assert view(data, "curves").x == "fabric.planes"


def test_what_is_chosen_where_nobody_says(grid: xarray.Dataset) -> None:
    found = view(grid)
    assert (found.kind, found.figure, found.x, found.by) == (
        "curves", "last_completion", "queue.buffer", "transport.window",
    )  # fmt: skip
    assert view(grid, "heat", x="transport.window").by == "queue.buffer"
    assert view(grid, "pareto").x == "queue_peak"
    only_seeds = dataset(made_up(seeds=SEEDS, last_completion=1.0))
    assert view(only_seeds).kind == "share"
    many = ("seed", list(range(30)), "")
    assert view(dataset(made_up(ROUTING, seeds=many, last_completion=1.0))).kind == "share"
    moves = np.arange(4)[:, None, None] + 9 * np.arange(3)[:, None] + 5 * np.arange(2)
    three = dataset(made_up(BUFFER, WINDOW, ROUTING, last_completion=moves))
    assert (view(three, x="queue.buffer").by, view(three, "share").by) == ("transport.window", "transport.window")
    paid = dataset(made_up(BUFFER, cost=[1.0, 2.0, 3.0, 4.0], completion_p99=[4.0, 3.0, 2.0, 1.0]))
    assert (view(paid).kind, view(paid).x, view(paid).figure) == ("pareto", "cost", "completion_p99")
    for wrong, says in [
        ({"kind": "heat"}, "no axis"),
        ({"kind": "pareto"}, "a front needs two figures"),
        ({"kind": "share", "x": "seed"}, "shares lie over the figure itself"),
        ({"kind": "pareto", "by": "seed"}, "has no lines"),
    ]:
        with pytest.raises(InputError, match=says):
            view(only_seeds, **wrong)


@pytest.mark.parametrize(
    ("numbers", "is_log"),
    [([1, 2, 4, 8], True), ([1, 2, 3, 4], False), ([0, 10, 1000], False), ([1, 1000], True), ([1, 2], False)],
)
def test_axes_that_grow_by_factors_are_logarithmic(numbers: list[float], is_log: bool) -> None:
    assert logarithmic(np.array(numbers, float)) == is_log


def test_a_front_is_what_nothing_beats() -> None:
    random = np.random.default_rng(2)
    x, y = random.integers(0, 9, (2, 60)).astype(float)
    y[5] = np.nan
    beaten = [
        np.isnan(y[i])
        or bool(((x <= x[i]) & (y <= y[i]) & ((x < x[i]) | (y < y[i]))).any())
        for i in range(60)
    ]  # fmt: skip
    front = set(zip(x[unbeaten(x, y)], y[unbeaten(x, y)], strict=True))
    assert front == {(x[i], y[i]) for i in range(60) if not beaten[i]}


def test_curves_show_medians_and_bands(grid: xarray.Dataset) -> None:
    axes = plots.plot(grid).axes[0]
    np.testing.assert_allclose(axes.lines[1].get_xydata()[:, 0], [100, 200, 400, 800])
    np.testing.assert_allclose(axes.lines[1].get_xydata()[:, 1], [114, 115, 117, 121])
    assert (axes.get_xscale(), axes.get_xlabel(), axes.get_ylabel()) == (
        "log", "queue.buffer (kB)", "last_completion (µs)",
    )  # fmt: skip
    assert len(axes.collections) == 3  # bands
    named = plots.plot(dataset(made_up(ROUTING, seeds=SEEDS, last_completion=np.arange(5) * 1e-6))).axes[0]
    assert [tick.get_text() for tick in named.get_xticklabels()] == ["ecmp", "drawn"]


def test_heat_frames_the_best_cell(grid: xarray.Dataset) -> None:
    axes = plots.plot(grid, "heat").axes[0]
    np.testing.assert_allclose(axes.images[0].get_array()[0], [109, 110, 112, 116])  # type: ignore[index]
    assert axes.patches[0].get_xy() == (-0.5, -0.5)  # type: ignore[attr-defined]


def test_dots_of_samples() -> None:
    data = dataset(made_up(together=SAMPLE, last_completion=np.array([4.0, 1.0, 3.0, 2.0]) * 1e-6))
    dots: Any = plots.plot(data, "heat", x="queue.buffer", by="transport.window").axes[0].collections
    np.testing.assert_allclose(dots[0].get_offsets(), [[100, 0.6], [300, 1.7], [900, 1.1], [200, 0.9]])
    np.testing.assert_allclose(dots[1].get_offsets(), [[300, 1.7]])  # the best
    curves: Any = plots.plot(data, x="transport.window").axes[0].collections[0]
    np.testing.assert_allclose(curves.get_offsets(), [[0.6, 4], [1.7, 1], [1.1, 3], [0.9, 2]])


def test_pareto_and_share_are_drawn(grid: xarray.Dataset) -> None:
    canvas = plots.plot(dataset(made_up(BUFFER, cost=[1, 2, 3, 4], completion_p99=np.array([4, 3, 3, 1]) * 1e-6)))
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == [
        "1   buffer 100 kB", "2   buffer 200 kB", "3   buffer 800 kB",
    ]  # fmt: skip
    line = plots.plot(grid, "share", by="transport.window").axes[0].lines[4]
    assert line.get_ydata()[-1] == pytest.approx(95.0)  # one of 20 has no figure


def test_a_sweep_of_which_nothing_ended_is_still_told(tmp_path: Path) -> None:
    sheet = made_up(BUFFER, WINDOW, seeds=SEEDS, last_completion=np.nan, cost=np.nan)
    data = dataset(sheet)
    for kind in set(KINDS) - {"time"}:  # which needs series
        plots.save(plots.plot(data, kind), tmp_path / "p.png")
    assert "60 of 60 have no figures" in as_text(data)
    assert "*" not in pivot(data, "queue.buffer", "seed").split("best")[1]
    publish(tmp_path / "s.h5", encode({"": sheet}))
    assert "3 of 8 flows are unfinished" in report.page(tmp_path / "s.h5")


def test_csv_has_a_row_for_each_point_in_si_units(grid: xarray.Dataset) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(grid))))
    assert rows[0] == [
        "queue.buffer_B", "transport.window_BDP", "seed", "last_completion_s", "queue_peak_B", "reason",
    ]  # fmt: skip
    assert len(rows) == 61
    assert [float(cell) for cell in rows[1][:4]] == pytest.approx([1e5, 0.5, 1, 107e-6])
    assert rows[-1][3:4] + rows[-1][5:] == ["", "3 of 8 flows are unfinished"]


def test_the_page_needs_no_network_and_tells_all(folder: Path) -> None:
    page = report.page("s.h5")
    for text in ("made up", "Curves", "Heat map", "Pareto front", "3 of 8 flows are unfinished", "fabsim sweep again"):
        assert text in page, text
    assert "queue.buffer=800000.0, transport.window=2.0, seed=5" in page
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="?http', page)


def test_the_page_of_samples_has_dots() -> None:
    from fabsim.report import charts

    data = dataset(made_up(ROUTING, together=SAMPLE, last_completion=np.arange(8).reshape(2, 4) * 1e-6, cost=1.0))
    for canvas in (charts.curves(data, view(data, "curves")), charts.heat(data, view(data, "heat"))):
        assert {trace.type for trace in canvas.data} == {"scatter"}
        assert len(canvas.data[0].x) == 4
    assert canvas.layout.updatemenus[0].buttons[1].label == "cost"


def test_the_page_of_runs(result: Any, other_case: Any, folder: Path) -> None:
    from fabsim import results

    results.write([result, other_case], "r.h5")
    assert main(["report", "r.h5", "--out", "r.html"]) == 0
    page = Path("r.html").read_text()
    for text in ("Busiest links: ECMP", "Over time: spray", "leaf1-&gt;h2", "fabsim run again.yaml"):
        assert text in page, text


def test_without_plotly_a_sentence(folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert main(["report", "s.h5"]) == 2
    assert "pip install 'fabsim[report]'" in capsys.readouterr().err
    assert not Path("report.html").exists()


def test_commands(folder: Path, result: Any, capsys: Any) -> None:
    from fabsim import results

    results.write(result, "r.h5")
    assert main(["show", "s.h5", "--pivot", "queue.buffer,transport.window", "--at", "seed=2"]) == 0
    assert "108.00*" in capsys.readouterr().out
    assert main(["plot", "s.h5", "--kind", "heat", "--out", "p.png"]) == 0
    assert main(["export", "s.h5", "--out", "s.csv"]) == 0
    assert Path("s.csv").read_text().count("\n") == 61
    capsys.readouterr()
    for arguments, says in [
        (["show", "s.h5", "--pivot", "queue.buffer"], "give two axes"),
        (["show", "s.h5", "--pivot", "buffer,seed"], "there are queue.buffer, transport.window, seed"),
        (["show", "s.h5", "--pivot", "queue.buffer,seed", "--metric", "x"], "there are last_completion, queue_peak"),
        (["show", "s.h5", "--metric", "x"], "goes with --pivot"),
        (["show", "s.h5", "--at", "seed"], "not KEY=VALUE"),
        (["show", "r.h5", "--pivot", "a,b"], "r.h5: is a run"),
        (["show", "s.h5", "--case", "a"], "s.h5 is a sweep, which has points; --at KEY=VALUE chooses of them"),
        (["plot", "s.h5", "--kind", "map"], "is a sweep, which has curves, heat, pareto, share"),
        (["plot", "r.h5", "--kind", "heat"], "is a run, which has overview"),
        (["plot", "r.h5", "--x", "seed"], "--x: r.h5 is a run"),
        (["plot", "s.h5", "--link", "a"], "--link a: curves shows no single link"),
        (["export", "s.h5", "--json"], "leave out --table and --json"),
        (["report", "s.h5", "--out", "x.pdf"], "ends in .html"),
    ]:
        assert main(arguments) == 2, arguments
        assert says in capsys.readouterr().err


def test_an_unfinished_sweep_says_how_far_it_is(tmp_path: Path, capsys: Any) -> None:
    text = {
        "name": "tiny",
        "fabric": {"kind": "single_switch", "hosts": 3, "rate": "400 Gbps", "latency": "1 us"},
        "traffic": [{"kind": "permutation", "size": "64 KiB"}],
        "sweep": {"grid": {"transport.window": ["1 BDP", "2 BDP", "3 BDP"]}, "batch": 1},
    }
    fabsim.sweep(fabsim.load(text), tmp_path / "s", progress=False)
    (tmp_path / "s" / "sweep.h5").unlink()
    next((tmp_path / "s" / "shards").glob("00001-*")).unlink()
    assert main(["show", str(tmp_path / "s")]) == 0
    out = capsys.readouterr().out
    assert "not done yet: 2 of 3 points (66 %), 2 of 3 shards" in out
    assert "have no figures" not in out
    assert main(["report", str(tmp_path / "s"), "--out", str(tmp_path / "r.html")]) == 0
    assert "not done yet" in (tmp_path / "r.html").read_text()


def test_100_000_points_are_read_in_seconds(tmp_path: Path) -> None:
    wide = ("transport.window", list(np.linspace(0.1, 2, 50)), "BDP")
    buffers = ("queue.buffer", list(np.geomspace(1e5, 1e7, 20)), "B")
    seeds = ("seed", list(range(100)), "")
    last = np.random.default_rng(0).lognormal(-9, 0.3, (20, 50, 100))
    last[::4, ::5, ::7] = np.nan
    publish(tmp_path / "s.h5", encode({"": made_up(buffers, wide, seeds=seeds, last_completion=last)}))
    began = time.process_time()
    data = fabsim.open(tmp_path / "s.h5")
    assert len(as_text(data).splitlines()) > 60
    assert len(pivot(data, "transport.window", "queue.buffer").splitlines()) == 52
    assert time.process_time() - began < 5.0  # about 0.3 s
