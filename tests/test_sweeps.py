"""Sweeps as a whole: figures are those of runs of their own, nothing done is lost, nobody stops the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray

import fabsim
from fabsim import journal
from fabsim.cli import main
from fabsim.scenario.batch import Compiler
from fabsim.scenario.compile.files import _names, checksums
from fabsim.scenario.compile.memory import needed_by
from fabsim.store import Sheet, Variable
from fabsim.study import outcomes
from fabsim.sweeps.ahead import ahead
from fabsim.sweeps.design import design
from fabsim.sweeps.plan import Plan, plan
from fabsim.sweeps.ranks import Rank, rank
from fabsim.sweeps.table import as_text

SMALL = """\
name: small
seed: 5
fabric: {kind: leaf_spine, leaves: 2, spines: 4, hosts_per_leaf: 4, rate: 400 Gbps, latency: 1 us}
routing: {kind: ecmp}
traffic:
  - {kind: shift, by: 4, size: 256 KiB}
"""
SWEEP = "sweep: {grid: {transport.window: [1 BDP, 2 BDP, 3 BDP], queue.buffer: [50 kB, 1 MB]}, seeds: 2, batch: 3}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a small sweep."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SMALL + SWEEP)
    return tmp_path


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> xarray.Dataset:
    """The same sweep in memory."""
    file = tmp_path_factory.mktemp("reference") / "s.yaml"
    file.write_text(SMALL + SWEEP)
    return fabsim.sweep(fabsim.load(file), progress=False)


def figures(data: xarray.Dataset) -> dict[str, Any]:
    """All figures, to be compared to the bit."""
    return {str(name): data[name].values.tobytes() for name in data.data_vars if data[name].dtype.kind == "f"}


# Plan


def test_values_share_a_program_and_classes_do_not() -> None:
    grid = {"transport.window": ["1 BDP", "2 BDP"], "routing.kind": ["ecmp", "all"], "dt": ["auto", "1 us"]}
    scenario = fabsim.load({**base(), "sweep": {"grid": grid, "seeds": 3, "batch": 4}})
    points = design(scenario)
    found = plan(scenario, points, Compiler(), 1, progress=False)
    assert [program.points for program in found.programs] == [12, 12]
    assert all(len(shard.points) <= 4 for shard in found.shards)
    together = np.concatenate([shard.points for shard in found.shards])
    assert sorted(together.tolist()) == list(range(24))
    assert Plan.of(json.loads(json.dumps(found.data()))).data() == found.data()


def base() -> dict[str, Any]:
    """The scenario as a dict."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(SMALL)


def test_dry_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--dry-run", "--out", "d", "--set", "sweep.traces=[completion]"]) == 0
    text = capsys.readouterr().out
    assert "12 points: 3 transport.window x 2 queue.buffer x 2 seed" in text
    assert "leaf_spine, ecmp, window: 8 flows over 1 path" in text
    assert "traces (completion): 384 B before compression" in text
    assert not Path("d").exists()


# Figures


def test_figures_are_those_of_a_run_of_its_own(reference: xarray.Dataset) -> None:
    alone = fabsim.run(
        fabsim.load({**base(), "transport": {"kind": "window", "window": "2 BDP"}, "seed": 6}), progress=False
    )
    member = (
        reference.sel({"transport.window": 2, "queue.buffer": 1e6, "seed": 6}, method=None)
        if "1 MB" not in reference["queue.buffer"].values
        else reference.isel(seed=1)
    )
    close = {"rel": 1e-6}
    assert float(member.last_completion) == pytest.approx(alone.last, **close)
    assert float(member.completion_mean) == pytest.approx(alone.duration.mean(), **close)
    assert float(member.completion_p99) == pytest.approx(np.quantile(alone.duration, 0.99), **close)
    assert float(member.slowdown_mean) == pytest.approx(alone.slowdown.mean(), rel=1e-5)
    assert float(member.sent) == pytest.approx(alone.sent.sum(), rel=1e-5)


def test_collectives_percentiles_and_prices() -> None:
    ring = {"kind": "ring", "size": "1 MiB", "ranks": 4, "grain": "0 B"}
    names = ["collective_time", "busbw", "completion_p37.5", "slowdown_max", "goodput", "cost", "watts"]
    sweep = {"grid": {"fabric.rate": ["400 Gbps", "200 Gbps"]}, "metrics": names, "traces": ["completion"]}
    found = fabsim.sweep(fabsim.load({**base(), "traffic": [ring], "sweep": sweep}), progress=False)
    alone = fabsim.run(fabsim.load({**base(), "traffic": [ring]}), progress=False)
    first = found.isel({"fabric.rate": 0})
    assert float(first.collective_time) == pytest.approx(alone.last, rel=1e-6)
    assert float(first.busbw) == pytest.approx(2**20 / alone.last * 2 * 3 / 4, rel=1e-6)
    assert float(first["completion_p37.5"]) == pytest.approx(np.quantile(alone.duration, 0.375), rel=1e-6)
    assert float(first.goodput) == pytest.approx(alone.size.sum() / alone.last, rel=1e-5)
    np.testing.assert_allclose(first.completion.values, alone.completion, rtol=1e-6)
    assert float(found.busbw[0]) > 1.5 * float(found.busbw[1])
    assert float(found.cost[0]) > 0
    assert found.completion.dims == ("fabric.rate", "flow")


def test_each_device_gets_a_share_of_shards_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard keeps all devices busy; those of a CPU share its memory, an accelerator has its own."""
    windows = [f"{size} kB" for size in range(100, 2100)]
    scenario = fabsim.load({**base(), "sweep": {"grid": {"transport.window": windows}}})
    points, compiler = design(scenario), Compiler()

    def size(count: int, kind: str, **memory: float) -> int:
        there = [SimpleNamespace(platform=kind, memory_stats=lambda: memory or None)] * count
        mesh = SimpleNamespace(devices=np.array(there), size=count)
        monkeypatch.setattr("fabsim.sweeps.plan.over", lambda _: mesh)
        return plan(scenario, points, compiler, None, progress=False).programs[0].size

    need = needed_by(compiler.compile(points.scenario(scenario.single(), 0)).shared.problem)
    assert [size(count, "cpu") for count in (1, 2, 32)] == [250, 250, 1000]
    assert size(4, "gpu") == 2000
    assert size(4, "gpu", bytes_limit=200.5 * need) == 400
    assert size(4, "gpu", bytes_limit=200.5 * need, bytes_in_use=100 * need) == 200
    monkeypatch.setattr("fabsim.study.devices.available", lambda: 200.5 * need)
    assert [size(count, "cpu") for count in (1, 4)] == [100, 100]


def test_zip_and_labels() -> None:
    sweep = {
        "zip": {"fabric.spines": [2, 4], "fabric.rate": ["400 Gbps", "200 Gbps"]},
        "grid": {"routing": {"one": {"kind": "ecmp"}, "all": {"kind": "all"}}},
    }
    found = fabsim.sweep(fabsim.load({**base(), "sweep": sweep}), progress=False)
    assert found.last_completion.dims == ("routing", "zip")
    assert found["fabric.spines"].values.tolist() == [2, 4]
    one = found.sel(routing="all").isel(zip=1)
    alone = fabsim.load({**base(), "routing": {"kind": "all"}}, fabric__rate="200 Gbps")
    assert float(one.last_completion) == pytest.approx(fabsim.run(alone, progress=False).last, rel=1e-6)


# What goes wrong


def test_a_point_that_fails_is_told_and_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, reference: xarray.Dataset
) -> None:
    from dataclasses import replace

    compile_ = Compiler.compile

    def spoilt(self: Compiler, scenario: Any) -> Any:
        member = compile_(self, scenario)
        if str(scenario.transport.window) == "2 BDP" and scenario.seed == 6:
            window = replace(member.model.transport, window=np.float32(np.nan))
            return replace(member, model=replace(member.model, transport=window))
        return member

    monkeypatch.setattr(Compiler, "compile", spoilt)
    found = fabsim.sweep(fabsim.load({**base(), "sweep": sweep_of()}), progress=False)
    bad = found.failed.values.astype(bool)
    assert bad.sum() == 2
    assert set(found.reason.values[bad]) == {"a value is not a number any more"}
    same = found.last_completion.values[~bad] == reference.last_completion.values[~bad]
    assert same.all()
    assert np.isnan(found.last_completion.values[bad]).all()


def sweep_of() -> dict[str, Any]:
    """The section `sweep`."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(SWEEP)["sweep"]


def test_points_that_contradict_themselves_are_told() -> None:
    grid = {
        "queue.ecn_low": ["10 kB", "400 kB"],
        "queue.ecn_high": ["20 kB", "500 kB"],
    }
    found = fabsim.sweep(fabsim.load({**base(), "sweep": {"grid": grid}}), progress=False)
    told = found.reason.sel({"queue.ecn_low": 400e3, "queue.ecn_high": 20e3})
    assert str(told.values).startswith("sweep: queue.ecn_low: above ecn_high (20000 B), given 400000 B")
    assert int(found.failed.sum()) == 1
    seeds = {"grid": grid, "seeds": 2, "metrics": ["last_completion"]}
    text = as_text(fabsim.sweep(fabsim.load({**base(), "sweep": seeds}), progress=False))
    assert "\nmedian (5 to 95 %) of 2 seeds\n2 of 8 have no figures:" in text  # points without any do not count


def test_nobody_waits_for_a_point_that_can_never_end() -> None:
    """All cables of a leaf are dead for good; without a look at it the batch goes on for a second, a million steps."""
    fault = {"link": "leaf0<->spine*", "at": "5 us", "speed": 0, "count": 1}
    grid = {"faults.0.count": [1, int(base()["fabric"]["spines"])]}
    scenario = {**base(), "routing": {"kind": "all"}, "faults": [fault], "sweep": {"grid": grid}}
    found = fabsim.sweep(fabsim.load(scenario), progress=False)
    assert found.reason.values.tolist() == ["", "flows wait for links that are down and stay down"]
    with pytest.raises(fabsim.Stopped, match="the first one: 8 of 8 flows have not ended after 6 us"):
        fabsim.sweep(fabsim.load({**scenario, "until": "6 us"}), progress=False)


def test_a_table_has_what_was_asked_for() -> None:
    """The figures that most readers want come first, and others have the places that they leave."""
    grid = {"grid": {"queue.buffer": ["100 kB", "200 kB"]}, "metrics": ["cost", "sent", "last_completion"]}
    head = as_text(fabsim.sweep(fabsim.load({**base(), "sweep": grid}), progress=False)).splitlines()[0]
    assert head.split() == ["queue.buffer", "(kB)", "last_completion", "(us)", "cost", "sent", "(kB)"]


def test_when_nothing_works_it_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--set", "sweep.grid={fabric.hosts_per_leaf: [1]}"]) == 2
    assert "shift by 4" in capsys.readouterr().err


def out_of_memory(monkeypatch: pytest.MonkeyPatch, fits: Any) -> list[int]:
    """Batches for which `fits` (of their number and size) is false do not fit into memory; the sizes that are tried."""
    sizes, run_batch = [], outcomes.run_batch

    def short(one: Any, **options: Any) -> Any:
        sizes.append(options["like"])
        if not fits(len(sizes), options["like"]):
            raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return run_batch(one, **options)

    monkeypatch.setattr(outcomes, "run_batch", short)
    return sizes


def test_out_of_memory_before_the_first_shard_plans_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reference: xarray.Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = out_of_memory(monkeypatch, lambda _, size: size < 3)
    found = fabsim.sweep(fabsim.load("s.yaml", sweep__batch=6), "d", progress=False)
    assert sizes == [6, 3, *[1] * 12]
    assert "out of memory with 6 scenarios at a time; the sweep is planned anew" in capsys.readouterr().err
    assert len(list(Path("d/shards").iterdir())) == 12
    assert json.loads(Path("d/plan.json").read_text())["programs"][0]["size"] == 1
    np.testing.assert_allclose(found.last_completion, reference.last_completion, rtol=1e-5)


def test_out_of_memory_later_goes_on_in_smaller_parts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reference: xarray.Dataset
) -> None:
    sizes = out_of_memory(monkeypatch, lambda number, size: number == 1 or size <= 2)
    fabsim.sweep(fabsim.load("s.yaml"), "d", progress=False)
    assert sizes == [3, *[3, 2, 2] * 3]
    sizes.clear()
    fabsim.sweep(fabsim.load("s.yaml"), "e", rank=Rank(1, 2), progress=False)  # others follow the same plan
    assert sizes == [3, 3, 2, 2]
    np.testing.assert_allclose(fabsim.open("d").last_completion, reference.last_completion, rtol=1e-5)
    sizes = out_of_memory(monkeypatch, lambda number, _: False)
    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
        fabsim.sweep(fabsim.load("s.yaml"), progress=False)


def test_a_shard_of_a_plan_that_was_made_anew_is_not_kept(folder: Path) -> None:
    fabsim.sweep(fabsim.load("s.yaml"), "d", rank=Rank(8, 9), progress=False)
    mine, other = journal.existing("d"), journal.existing("d")
    assert mine is not None
    assert other is not None
    other = other.begun_anew({**other.plan, "refused": {"0": "why"}})
    sheet = Sheet({"point": Variable(("point",), np.arange(3))})
    with pytest.raises(fabsim.Stopped, match="d: another process has made the plan anew"):
        mine.put(0, sheet)
    other.put(0, sheet)
    with pytest.raises(fabsim.Stopped, match="d: another process has begun"):
        other.begun_anew(other.plan)


# Journal


def test_a_sweep_goes_on_and_no_shard_is_done_again(folder: Path, reference: xarray.Dataset) -> None:
    scenario = fabsim.load("s.yaml")
    half = fabsim.sweep(scenario, "d", rank=Rank(0, 2), progress=False)
    assert half.failed.values.sum() == 6
    assert set(half.reason.values[half.failed.values > 0]) == {"not run yet"}
    assert half.identical(fabsim.open("d"))
    before = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in Path("d/shards").iterdir()}
    whole = fabsim.sweep(scenario, "d", progress=False)
    assert figures(whole) == figures(reference)
    assert figures(fabsim.open("d/sweep.h5")) == figures(reference)
    for file, (when, content) in before.items():
        assert (file.stat().st_mtime_ns, file.read_bytes()) == (when, content)


def test_another_scenario_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--out", "d", "--rank", "7", "--ranks", "8"]) == 0
    plan_ = Path("d/plan.json").read_bytes()
    capsys.readouterr()
    assert main(["sweep", "s.yaml", "--out", "d", "--set", "fabric.rate=200 Gbps"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("d: holds the sweep of another scenario ('rate: 400 Gbps' there, 'rate: 200 Gbps' here)")
    assert "name another folder, begin anew with --force, or give the scenario" in told
    assert Path("d/plan.json").read_bytes() == plan_
    anew = ["sweep", "s.yaml", "--out", "d", "--set", "fabric.rate=200 Gbps", "--force"]
    assert main([*anew, "--rank", "7", "--ranks", "8"]) == 2
    assert "one process of several would remove what the others do" in capsys.readouterr().err
    Path("d/notes.txt").write_text("mine")
    assert main(anew) == 0
    assert fabsim.open("d").completion_max.notnull().all()
    assert Path("d/notes.txt").read_text() == "mine"
    assert main(["diff", "d/sweep.h5", "d/sweep.h5"]) == 2
    assert capsys.readouterr().err.startswith("d/sweep.h5: is of a sweep, not of a run; fabsim show")
    Path("other").mkdir()
    Path("other/mine.txt").write_text("mine")
    assert main(["sweep", "s.yaml", "--out", "other"]) == 2
    assert main(["sweep", "s.yaml", "--out", "other", "--force"]) == 2
    assert Path("other/mine.txt").read_text() == "mine"
    assert "holds something else than a sweep" in capsys.readouterr().err
    assert main(["sweep", "s.yaml", "--out", "no/such"]) == 2
    assert "there is no folder no" in capsys.readouterr().err
    assert main(["sweep", "s.yaml", "--out", "s.yaml"]) == 2
    assert "is a file" in capsys.readouterr().err


def test_a_sweep_that_is_refused_or_killed_by_force_mixes_with_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["sweep", "s.yaml", "--out", "d"]) == 0
    before = {file: file.read_bytes() for file in Path("d").rglob("*") if file.is_file()}
    nowhere = ["--set", "sweep.watch=[leaf77->spine0]", "--set", "sweep.traces=[series_queue]"]
    assert main(["sweep", "s.yaml", "--out", "d", "--force", *nowhere]) == 2
    assert {file: file.read_bytes() for file in Path("d").rglob("*") if file.is_file()} == before

    def killed(self: Path, missing_ok: bool = False) -> None:
        if self.name.startswith("00001"):
            raise KeyboardInterrupt
        os.unlink(self)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            journal.forget("d")
    assert journal.existing("d") is not None
    Path("d/plan.json").unlink()
    with pytest.raises(fabsim.InputError, match="holds shards of a sweep whose plan is gone"):
        journal.existing("d")


def test_a_sweep_is_read_where_nothing_can_be_written(
    folder: Path, reference: xarray.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["sweep", "s.yaml", "--out", "d"]) == 0
    monkeypatch.setattr("fabsim.store.TemporaryFile", lambda **_: (_ for _ in ()).throw(OSError(30, "read-only")))
    assert figures(fabsim.open("d")) == figures(reference)
    assert main(["show", "d"]) == 0


def test_files_that_a_scenario_names_are_part_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flows, other = Path("flows.csv"), Path("other.csv")
    flows.write_text("src,dst,bytes\n0,4,100000\n")
    other.write_text("src,dst,bytes\n1,5,100000\n")
    listed = SMALL.replace("{kind: shift, by: 4, size: 256 KiB}", "{kind: flows, file: flows.csv}")
    Path("f.yaml").write_text(listed + "sweep: {grid: {traffic.0.file: [flows.csv, other.csv]}}\n")
    scenario = fabsim.load("f.yaml")
    assert set(checksums(scenario)) == {"flows.csv", "other.csv"}
    labelled = {"grid": {"traffic.0.file": {"a": "flows.csv"}, "fabric": {"x": {"file": "other.csv"}, "y": 1}}}
    assert set(_names({"sweep": labelled, "packets": {"a": "p.csv"}})) == {"flows.csv", "other.csv"}
    arguments = ["sweep", "f.yaml", "--out", "d", "--quiet", "--rank", "7", "--ranks", "8"]
    assert main(arguments) == 0
    flows.touch()
    assert main(arguments) == 0
    other.write_text("src,dst,bytes\n1,5,200000\n")
    capsys.readouterr()
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("d: holds a sweep that was begun with another content of other.csv; name")


def test_a_corrupt_shard_is_found_named_and_done_again(folder: Path, reference: xarray.Dataset) -> None:
    scenario = fabsim.load("s.yaml")
    fabsim.sweep(scenario, "d", progress=False)
    victim = sorted(Path("d/shards").iterdir())[1]
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    Path("d/sweep.h5").write_bytes(Path("d/sweep.h5").read_bytes()[:1000])  # then the shards are read
    with pytest.raises(fabsim.InputError, match=f"{victim}: is damaged; run fabsim sweep FILE --out d again"):
        fabsim.open("d")
    with pytest.warns(UserWarning, match=f"{victim.name}: not what was written there"):
        again = fabsim.sweep(scenario, "d", progress=False)
    assert figures(again) == figures(reference)
    assert victim.with_suffix(".corrupt").exists()


def test_the_next_is_made_ready_while_one_is_worked_on() -> None:
    """In order, one ahead and no more; what fails does so in its turn."""
    made: list[int] = []
    both = threading.Barrier(2, timeout=20.0)

    def make(item: int) -> int:
        if item:
            both.wait()  # nobody comes before the item ahead of it is taken
        made.append(item)
        return 6 // (3 - item)

    coming = ahead(make, range(4))
    assert next(coming) == 2
    assert made == [0]
    both.wait()
    assert next(coming) == 3
    both.wait()
    assert next(coming) == 6
    assert made == [0, 1, 2]
    both.wait()
    with pytest.raises(ZeroDivisionError):
        next(coming)


FAKE = '''
import os, random, signal, sys, time
import numpy as np
import fabsim, fabsim.sweeps.sweep as driver
from fabsim.sweeps.work import as_sheet

def work(plan, ready, *, metrics, traces, parts, devices, bar):
    """A stand-in for the physics: values that follow from the points, and a little time."""
    shard = ready.shard
    time.sleep(0.01)
    figures = {name: np.sin(shard.points + len(name)) for name in metrics}
    return as_sheet(shard.points, figures, [""] * len(shard.points), {})

driver.work = work
scenario = fabsim.load("s.yaml")
if sys.argv[1] == "plan":
    fabsim.sweep(scenario, "d", rank=driver.Rank(9999, 10000), progress=False)
    sys.exit()
dice, seen, kills, longest = random.Random(1), {}, 0, 0.2
while kills < 25:
    child = os.fork()
    if not child:
        fabsim.sweep(scenario, "d", progress=False)
        os._exit(0)
    time.sleep(dice.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    kills += killed
    files = [name for name in os.listdir("d/shards") if name.endswith(".h5") and name[0] != "."]
    now = {name: os.stat("d/shards/" + name).st_mtime_ns for name in files}
    assert all(now.get(name) == when for name, when in seen.items()), "a finished shard was lost or done again"
    longest *= 0.8 if not killed or len(now) > len(seen) + 1 else 1.2 if len(now) == len(seen) else 1.0
    seen = now
assert len(seen) > 3, "the kills came too early to mean anything"
fabsim.sweep(scenario, "d", progress=False)
print(kills)
'''


def test_kills_at_any_moment_lose_nothing(folder: Path) -> None:
    """kill -9 at random, 25 times; then the sweep goes on to its end."""
    many = (
        "sweep: {grid: {transport.window: [1 BDP, 2 BDP]}, sample: {count: 30, ranges: "
        "{queue.buffer: {low: 50 kB, high: 1 MB}}}, batch: 1}\n"
    )
    (folder / "s.yaml").write_text(SMALL + many)
    script = folder / "fake.py"
    script.write_text(FAKE)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(script), "plan"], check=True, env=env)
    done = subprocess.run([sys.executable, str(script), "kill"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 25
    found = fabsim.open("d")
    assert not found.failed.any()
    expected = np.sin(np.arange(60.0) + len("last_completion")).reshape(found.last_completion.shape)
    np.testing.assert_array_equal(found.last_completion, expected)


def test_a_full_disk_leaves_what_was_finished(folder: Path) -> None:
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
        "from fabsim.cli import main; sys.exit(main(['sweep', 's.yaml', '--out', 'd', '--quiet']))"
    )
    fabsim.sweep(fabsim.load("s.yaml"), "d", rank=Rank(3, 4), progress=False)
    before = sorted(Path("d/shards").iterdir())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("stopped: ")
    assert "File too large" in done.stderr
    assert sorted(Path("d/shards").iterdir()) == before
    assert not Path("d/sweep.h5").exists()


# Many processes


def test_ranks_from_arguments_slurm_and_jax() -> None:
    assert rank(1, 3, {}) == Rank(1, 3)
    assert rank(env={"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}) == Rank(1, 2)
    array = {"SLURM_ARRAY_TASK_ID": "12", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "10"}
    assert rank(env=array) == Rank(2, 3)
    assert rank(env={**array, "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}) == Rank(5, 6)
    assert rank(env={"JAX_PROCESS_ID": "3", "JAX_NUM_PROCESSES": "4"}) == Rank(3, 4)
    assert rank(env={}) == Rank(0, 1)
    for number, count, env, says in (
        (1, None, {}, "--rank and --ranks go together"),
        (3, 3, {}, "--rank and --ranks: rank 3 of 3: there is no such process; 0 to 2 would do"),
        (None, None, {"SLURM_PROCID": "x", "SLURM_NTASKS": "2"}, "SLURM_PROCID='x': not a whole number"),
    ):
        with pytest.raises(fabsim.InputError, match=says):
            rank(number, count, env)
    for number, count in ((5, 2), (2, 2), (-1, 2), (0, 0)):
        with pytest.raises(fabsim.InputError, match=f"^rank {number} of {count}: there is no such process"):
            Rank(number, count)


def test_two_processes_of_slurm_share_a_folder(folder: Path, reference: xarray.Dataset) -> None:
    def process(number: int) -> subprocess.Popen[str]:
        slurm = {"SLURM_PROCID": str(number), "SLURM_NTASKS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "fabsim", "sweep", "s.yaml", "--out", "d", "--quiet"]
        return subprocess.Popen(command, env={**os.environ, **slurm}, stdout=subprocess.PIPE, text=True)

    both = [process(0), process(1)]
    assert [one.communicate()[1] or one.returncode for one in both] == [0, 0]
    found = fabsim.open("d")
    assert figures(found) == figures(reference)
    assert Path("d/sweep.h5").exists()
