"""The command line: exit codes, what is said and where, and that no traceback ever shows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

import fabsim
from fabsim.cli import cli, main

CONFIGS = Path(__file__).parents[1] / "configs"
SMALL = """\
name: small
fabric: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2, rate: 400 Gbps, latency: 1 us}
traffic:
  - {kind: permutation, size: 64 KiB}
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small scenario in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL)
    return "small.yaml"


def test_a_run_prints_a_table_and_says_where_the_picture_is(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", small]) == 0
    out = capsys.readouterr().out
    assert "small" in out
    assert "mean" in out
    assert "picture: fabsim-out/small.png" in out
    assert Path("fabsim-out/small.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def narrow_again() -> Iterator[None]:
    """JAX as it was for the tests behind one that turns on 64 bits."""
    yield
    jax.config.update("jax_enable_x64", False)


def test_a_case_that_stops_takes_no_other_with_it(
    small: str, capsys: pytest.CaptureFixture[str], narrow_again: None
) -> None:
    """Nor does one in another precision: once JAX has 64 bits, a law may not widen what it keeps in 32."""
    fault = 'faults: [{link: "leaf0<->h0", at: 1 us, speed: 0}]'
    more = f"transport: {{kind: nscc}}\ncases: {{wide: {{precision: float64}}, cut: {{{fault}}}, narrow: {{}}}}\n"
    Path("cases.yaml").write_text(SMALL + more)
    assert main(["run", "cases.yaml", "--out", "r.h5", "--quiet"]) == 3
    told = capsys.readouterr()
    assert [line.split()[0] for line in told.out.splitlines()[1:3]] == ["wide", "narrow"]
    assert told.err.startswith("stopped: cut: no progress at ")
    assert list(fabsim.open("r.h5").case.values) == ["wide", "narrow"]
    long = "cases={good: {}, long: {traffic.0.size: 100 TB}}"
    assert main(["run", small, "--set", long, "--out", "s.h5", "--no-plot", "--quiet"]) == 3
    told = capsys.readouterr()
    assert told.out.splitlines()[1].split()[0] == "good"
    assert told.err.splitlines()[-1].startswith("stopped: long: small.yaml")
    assert main(["run", "cases.yaml", "--set", "cases={cut: {" + fault + "}}", "--no-plot"]) == 3
    assert capsys.readouterr().out == ""


def test_collectives_stand_in_run_show_export_and_sweep(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rings of two: 2 (n - 1) / n = 1, so that the bus bandwidth is the size over the time."""
    traffic = "traffic=[{kind: ring, size: 1 MB, groups: [[0, 2], [1, 3]]}, {kind: shift, by: 1, size: 1 kB}]"
    assert main(["run", small, "--set", traffic, "--out", "r.h5", "--no-plot"]) == 0
    row = capsys.readouterr().out.splitlines()[-2].split()
    assert row[:5] == ["small,", "traffic.0:", "ring", "of", "2"]
    groups, fastest, slowest, busbw = map(float, row[5:])
    assert groups == 2
    assert 0 < fastest <= slowest
    assert busbw == pytest.approx(8e-3 * 1e6 / slowest, rel=2e-3)
    assert main(["show", "r.h5"]) == 0
    assert " ".join(row[2:]) in " ".join(capsys.readouterr().out.split())
    assert main(["export", "r.h5", "--table", "collectives"]) == 0
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads == "case,collectives,collective_start_s,collective_time_s,busbw_B_per_s"
    assert len(rows) == 2
    cases = "cases={a: {}, b: {traffic: [{kind: ring, size: 1 MB, groups: [[0, 1, 2, 3]]}]}}"
    four = "traffic=[{kind: ring, size: 1 MB, groups: [[0, 1], [2, 3]]}]"
    assert main(["run", small, "--set", four, "--set", cases, "--out", "c.h5", "--no-plot", "--quiet"]) == 0
    data = fabsim.open("c.h5")  # cases with other groups stand beside each other
    assert data.busbw.dims == ("case", "group")
    assert np.isfinite(data.busbw).sum("group").values.tolist() == [2, 1]
    found = fabsim.sweep(fabsim.load(small, traffic=[{"kind": "ring", "size": "1 MB"}], sweep={"seeds": 2}))
    assert {"busbw", "collective_time"} <= set(found.data_vars)


def test_figures_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (
        ("slowdown", "slowdown_p99"), ("utilisation", "what the line rate could have carried"), ("busbw", "nccl-tests"),
        ("completion_p99.9", "99.9th percentile of the completion time (s)"), ("metrics", "sweep.metrics"),
        ("sweep.metrics", "goodput"), ("elasticity", "-0.3 is 0.3 % less for 1 % more"),
    ):  # fmt: skip
        assert main(["explain", name]) == 0
        assert text in capsys.readouterr().out
    assert main(["explain", "slowup"]) == 2


def test_result_show_plot_export(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", small, "--out", "r.h5", "--no-plot"]) == 0
    assert main(["show", "r.h5"]) == 0
    assert "busiest links" in capsys.readouterr().out
    for kind in ("overview", "completions", "time", "map"):
        assert main(["plot", "r.h5", "--kind", kind, "--out", f"{kind}.png"]) == 0
        assert Path(f"{kind}.png").stat().st_size > 1000
    capsys.readouterr()
    assert main(["export", "r.h5", "--table", "flows"]) == 0
    assert capsys.readouterr().out.count("\n") == 5
    assert main(["export", "r.h5", "--json", "--out", "r.json"]) == 0
    assert json.loads(Path("r.json").read_text())


def test_pictures_and_tables_of_different_files_and_cases(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.yaml").write_text(f"{SMALL}cases: {{ECMP: {{}}, spray: {{routing.kind: all}}}}\n")
    Path("b").mkdir()
    for result in ("a.h5", "b/a.h5"):
        assert main(["run", "two.yaml", "--out", result, "--no-plot"]) == 0
        capsys.readouterr()
        assert main(["plot", result, "--kind", "time"]) == 0
        assert "case ECMP, the first of ECMP, spray; --case NAME draws another\n" in capsys.readouterr().out
        assert main(["plot", result, "--kind", "time", "--case", "spray"]) == 0
        assert "the first of" not in capsys.readouterr().out
        assert main(["plot", result]) == 0
        assert main(["plot", result, "--kind", "completions", "--case", "spray"]) == 0
    capsys.readouterr()
    assert main(["show", "a.h5", "--case", "spray"]) == 0
    told = capsys.readouterr().out
    assert "spray: busiest links" in told
    assert "ECMP" not in told
    assert main(["show", "a.h5", "--case", "x"]) == 2
    of_each = ("ecmp-time", "overview", "spray-completions", "spray-time")
    assert sorted(file.name for file in Path("fabsim-out").iterdir()) == sorted(
        f"{file}-{kind}.png" for file in ("a", "b-a") for kind in of_each
    )
    assert main(["attribute", "two.yaml", "--quiet"]) == 0
    for case in ("ecmp", "spray"):
        assert Path(f"fabsim-out/small-{case}-last-completion-by-link.png").is_file()
    assert main(["plot", "a.h5", "--case", "ecmp"]) == 2
    assert "there is no such case in a.h5; use ECMP, spray" in capsys.readouterr().err


def test_a_result_is_not_written_over_unless_asked(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.h5").write_text("mine")
    assert main(["run", small, "--out", "r.h5", "--no-plot"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("r.h5").read_text() == "mine"
    assert main(["run", small, "--out", "r.h5", "--no-plot", "--force"]) == 0
    assert Path("r.h5").read_bytes().startswith(b"\x89HDF")


def test_check(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", small]) == 0
    out = capsys.readouterr().out
    for word in ("4 hosts", "base RTT", "8.33712 us", "BDP", "416,856 B", "buffers", "ECN", "memory", "steps", "dt"):
        assert word in out


def test_check_tells_what_follows_from_the_fabric(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What pauses, what a switch shares, what a law derives, and why a step is short."""
    for changes, lines in (
        ({"queue.kind": "pfc", "transport.kind": "dcqcn"},
         ["pauses       a link pauses at 208,428 B, goes on at 166,742 B, each 2.166 us later; headroom 116,600 B",
          "transport    dcqcn: first 400 Gbps", "recovery     selective_repeat: timeout 83.37 us",
          "dt           1 us (derived)"]),
        ({"queue.kind": "shared", "transport.kind": "nscc"},
         ["shared       838,300 to 1,676,600 B a switch", "transport    nscc: target 6.253 us"]),
        ({"fabric.latency": "100 ns"}, ["dt           141.5 ns (derived: h1 to h0 are 283 ns apart, over 2 links)"]),
        ({"dt": "500 ns"}, ["dt           500 ns"]),
    ):  # fmt: skip
        assert main(["check", small, *(part for x in changes.items() for part in ("--set", "=".join(x)))]) == 0
        told = capsys.readouterr().out
        for line in lines:
            assert f"\n  {line}" in told, told


def test_check_names_keys_that_change_nothing(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", small, "--set", "queue.ecn_low=10 kB"]) == 0
    assert "no effect    queue.ecn_low: the transport (window) does not react to marks" in capsys.readouterr().out


def test_overrides_in_every_command_that_takes_a_scenario(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    takes = [name for name, command in cli.commands.items() if any(p.name == "changes" for p in command.params)]
    assert {"run", "check"} <= set(takes)
    for name in takes:
        assert main([name, small, "--set", "seed=x"]) == 2
        assert capsys.readouterr().err.startswith("--set seed: seed: not a whole number, given 'x'")
    assert main(["check", small, "--set", "fabric.spines=4", "--set", "queue.buffer=1 MB", "--seed", "3"]) == 0
    assert "1,000,000 B" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "Missing argument 'FILE'"),
        (["rum"], "No such command 'rum'. Did you mean 'run'?"),
        (["run", "small.yaml", "--outt", "x"], "No such option"),
        (["run", "nothing.yaml"], "nothing.yaml: there is no such file; . has small.yaml"),
        (["run", "small.yaml", "--set", "seed"], "--set seed: not KEY=VALUE"),
        (["run", "small.yaml", "--set", "seed="], "--set seed: the value is empty"),
        (["run", "small.yaml", "--set", "seed=[1"], "--set seed: not valid YAML"),
        (["run", "small.yaml", "--set", "transport.windo=1 BDP"], "did you mean 'window'?"),
        (["run", "small.yaml", "--seed", "-1"], "Invalid value for '--seed'"),
        (["run", "small.yaml", "--out", "no/r.h5"], "there is no folder"),
        (["run", "small.yaml", "--plot", "p.txt"], "ends in .png, .svg or .pdf"),
        (["run", "small.yaml", "--device", "tpu"], "--device tpu: JAX finds no tpu here, only"),
        (["show", "small.yaml"], "not a result file"),
        (["show", "none.h5"], "no such file"),
        (["validate", "."], "no summary.csv"),
        (["run", "small.yaml", "--plot", "there.png"], "there.png: exists already; give --force"),
        (["attribute", "small.yaml", "--plot", "there.png", "--quiet"], "there.png: exists already; give --force"),
        (["validate", ".", "--csv", "there.png"], "there.png: exists already; give --force"),
        (["tune", "tune.yaml", "--out", "there.png"], "there.png: is a file; a tuning is a folder"),
        (["tune", "tune.yaml", "--out", "no/such"], "no/such: there is no folder no"),
        (["tune", "tune.yaml", "--out", "."], ".: has tuned.yaml, and no journal of a tuning; give --force"),
        (["show", "damaged.h5"], "damaged.h5: is damaged and cannot be read"),
        (["check", "small.yaml", "--set", "packets={small: empty.csv}"], "packets.small: empty.csv:1: the file is emp"),
        (["check", "small.yaml", "--set", "packets={small: .}"], "packets.small: '.' is a folder; name a file in it"),
        (["check", "small.yaml", "--set", "fabric.rate=1e-9 bps"], "dt: a round trip is 1.02e+20 steps of 1 us, which"),
        (["check", "tune.yaml", "--set", "tune.optimiser=adamm"], "tune.optimiser: "),
        (
            ["check", "tune.yaml", "--set", "tune.parameters=[{key: queue.bufer}]"],
            "there is nothing to tune by the name",
        ),
        (["check", "tune.yaml", "--set", "tune.parameters=[{key: queue.buffer, low: 1 us}]"], "'1 us' is a time"),
        (["check", "tune.yaml", "--set", "tune.over={cases: true}"], "tune.over.cases: there are no cases"),
        (["check", "small.yaml", "--set", "prices=empty.csv"], "empty; a price list is a mapping of keys to values"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    small: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("tune.yaml").write_text(SMALL + "tune: {steps: 1}\n")
    Path("there.png").write_text("mine")
    Path("tuned.yaml").write_text("mine")
    Path("empty.csv").write_text("")
    Path("damaged.h5").write_bytes(b"\x89HDF\r\n\x1a\nxxxx")
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert says in shown.err
    assert Path("there.png").read_text() == Path("tuned.yaml").read_text() == "mine"
    assert "Traceback" not in shown.err
    assert not shown.out


def test_stopped_is_3(small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from fabsim import errors
    from fabsim.scenario import run

    def stop(*_: object, **__: object) -> None:
        raise errors.Stopped("2 flows wait for each other")

    monkeypatch.setattr(run, "run", stop)
    assert main(["run", small, "--no-plot"]) == 3
    assert capsys.readouterr().err == "stopped: small: 2 flows wait for each other\n"


@pytest.mark.parametrize(("fault", "code", "says"), [
    (KeyError("x"), 1, "internal error, our fault: KeyError"),
    (KeyboardInterrupt(), 130, "interrupted"),
    (MemoryError(), 3, "out of memory"),
    (OSError(28, "No space left on device"), 3, "No space left on device"),
    (BrokenPipeError(), 0, ""),
])  # fmt: skip
def test_faults_without_a_traceback(
    small: str, fault: BaseException, code: int, says: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from fabsim.scenario import check

    def break_down(_: object) -> str:
        raise fault

    monkeypatch.setattr(check, "report", break_down)
    monkeypatch.delenv("FABSIM_DEBUG", raising=False)
    monkeypatch.setattr("fabsim.guard.leave_quietly", lambda: 0)
    assert main(["check", small]) == code
    assert says in capsys.readouterr().err


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli.commands:
        assert main([name, "--help"]) == 0
        assert f"fabsim {name}" in capsys.readouterr().out.split("Options:")[0].split("Example")[1]


def test_help_and_import_do_not_load_jax() -> None:
    code = "import sys, fabsim, fabsim.cli; fabsim.cli.main(['--help']); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_folder_that_nobody_may_write(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    assert main(["run", small]) == 0
    place = Path(capsys.readouterr().out.split("picture: ")[1].strip())
    assert place.is_file()
    assert place.parent != Path("fabsim-out")


def test_sweep(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    import fabsim

    text = "sweep: {grid: {transport.window: [1 BDP, 2 BDP], routing.kind: [ecmp, all]}, seeds: 2}\n"
    Path("sweep.yaml").write_text(SMALL + text)
    assert main(["sweep", "sweep.yaml", "--out", "s"]) == 0
    assert "sweep: s" in capsys.readouterr().out
    found = fabsim.open("s")
    assert found.identical(fabsim.open("s/sweep.h5"))
    assert found.completion_max.dims == ("transport.window", "routing.kind", "seed")
    assert found.completion_max.sel({"transport.window": 2, "routing.kind": "all"}).notnull().all()
    assert main(["sweep", small]) == 2
    assert capsys.readouterr().err.startswith("small.yaml:1:1: sweep: ")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--set", "queue.buffer=200 kB"], ["--set queue.buffer: case 'shallow'"]),
        (["--set", "queue={kind: trim}"], ["--set queue: case 'shallow'"]),
        (["--set", "transport.window=1 BDP"], ["--set transport.window: case 'whole'"]),
        (["--seed", "3"], ["--seed: case 'whole'", "--seed: case 'other seed'"]),
        (["--set", "queue.ecn_low=1 kB"], []),
    ],
)
def test_who_overrides_what_a_case_says_itself_is_told(
    given: list[str], says: list[str], small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = "{shallow: {queue.buffer: 100 kB}, whole: {transport: {kind: window}, seed: 4}, other seed: {seed: 5}}"
    Path(small).write_text(f"{SMALL}cases: {cases}\n")
    assert main(["check", small, *given]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "of its own" in line]
    assert told == [f"warning: {head} has a value of its own, which holds there" for head in says]


def test_a_member_of_a_sweep_is_the_run_of_its_own(small: str) -> None:
    import fabsim

    scenario = fabsim.load(small, {"sweep": {"grid": {"queue.buffer": ["50 kB", "1 MB"]}, "seeds": 2}})
    found = fabsim.sweep(scenario, progress=False)
    alone = fabsim.run(fabsim.load(small, queue__buffer="50 kB", seed=2), progress=False)
    member = found.completion_max.sel({"queue.buffer": 50e3, "seed": 2})
    assert float(member) == pytest.approx(alone.duration.max(), rel=1e-6)


def test_tune(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", small]) == 2
    assert capsys.readouterr().err.startswith("small.yaml:1:1: tune: ")
    slow = "fabric.degraded=[{link: spine0, speed: 0.5}]"
    assert main(["tune", small, "--set", "tune.steps=2", "--set", "routing.kind=all", "--set", slow]) == 0
    assert "tuned" in capsys.readouterr().out
