"""Ensembles: seeds as one batch, their median and range in table and file; and warnings outside of what is known."""

from __future__ import annotations

import csv
import dataclasses
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabsim
from fabsim import results, tables
from fabsim.cli import main
from fabsim.scenario.validity import OutsideWarning, outside
from fabsim.store import Variable

SMALL = """\
name: small
seeds: 3
seed: 5
fabric: {kind: leaf_spine, leaves: 2, spines: 4, hosts_per_leaf: 4, rate: 400 Gbps, latency: 1 us}
routing: {kind: ecmp}
traffic:
  - {kind: shift, by: 4, size: 256 KiB}
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small ensemble in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL)
    return "small.yaml"


def test_each_member_is_the_run_of_its_seed(small: str) -> None:
    result = fabsim.run(fabsim.load(small), progress=False)
    found = result.ensemble
    assert found is not None
    assert found.seeds.tolist() == [5, 6, 7]
    for number, seed in enumerate(found.seeds.tolist()):
        alone = fabsim.run(fabsim.load(small, seed=seed, seeds=1), progress=False)
        assert alone.ensemble is None
        for name, value in {
            "completion_min": alone.duration.min(),
            "completion_mean": alone.duration.mean(),
            "completion_max": alone.duration.max(),
            "last_completion": alone.last,
            "slowdown_mean": alone.slowdown.mean(),
            "queue_peak": alone.queue_peak.max(),
            "marked": alone.marked.sum(),
        }.items():
            assert found.figures[name].values[number] == pytest.approx(value, rel=1e-5), (seed, name)
    assert result.duration.max() == pytest.approx(found.figures["completion_max"].values[0], rel=1e-5)


def test_table_and_file(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", small, "--no-plot", "--out", "r.h5"]) == 0
    printed = capsys.readouterr().out
    assert "small, median of 3 seeds" in printed
    assert "\n  5 % " in printed
    assert "\n  95 % " in printed
    assert main(["show", "r.h5"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("small, median of 3 seeds") == 2
    assert printed.splitlines()[1] in shown
    assert main(["export", "r.h5", "--table", "seeds"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["seed"] for row in rows] == ["5", "6", "7"]
    last = fabsim.open("r.h5").ensemble_last_completion
    assert last.dims == ("seed",)
    assert last.sel(seed=6) == pytest.approx(float(rows[1]["last_completion_s"]))
    again = results.read("r.h5")[0].ensemble
    assert again is not None
    assert again.spread("completion_p50")[1] == pytest.approx(
        float(np.median([float(r["completion_p50_s"]) for r in rows]))
    )
    assert main(["run", small, "--no-plot", "--set", "seeds=1", "--out", "one.h5"]) == 0
    capsys.readouterr()
    assert main(["export", "one.h5", "--table", "seeds"]) == 2
    assert "a run of one seed" in capsys.readouterr().err


def test_packets_stand_beside_the_median(result: Any) -> None:
    values = {name: np.array([40e-6, 50e-6, 60e-6]) for name in tables.FIVE}
    values |= {"slowdown_mean": np.full(3, np.nan), "slowdown_p99": np.full(3, np.nan), "failed": np.array([0, 0, 1.0])}
    figures = {name: Variable(("seed",), value, "s") for name, value in values.items()}
    many = dataclasses.replace(result, ensemble=results.Ensemble(np.arange(3), figures))
    text = tables.summary([many], {"ECMP": np.full(3, 40e-6)})
    assert "+25.0 %" in text
    assert "ECMP: 1 of 3 seeds did not end; the figures are of the others" in text


def test_seeds_that_change_nothing_are_told(small: str) -> None:
    scenario = fabsim.load(small, {"routing.kind": "all"})
    with pytest.warns(UserWarning, match="small: nothing in it is drawn, so all 3 seeds are one run"):
        fabsim.run(scenario, progress=False)


def test_the_chance_of_whole_packets_is_drawn_too(small: str) -> None:
    """Every host sends to the first over all paths: what differs from seed to seed is what is trimmed."""
    traffic = [{"kind": "incast", "senders": 7, "receiver": 0, "size": "512 KiB"}]
    check_seeds_differ(fabsim.load(small, {"routing.kind": "all", "transport": {"kind": "nscc"}, "traffic": traffic}))


def test_the_luck_on_lossy_links_is_drawn_too(small: str) -> None:
    """Which flows lose a packet, where nothing else is drawn."""
    lossy = {"fabric.degraded": [{"link": "h*->leaf*", "loss": 0.05}], "routing.kind": "all"}
    check_seeds_differ(fabsim.load(small, lossy))


def check_seeds_differ(scenario: fabsim.Scenario) -> None:
    """Each of three seeds is a run of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fabsim.run(scenario, progress=False).ensemble
    assert found is not None
    assert len(set(found.figures["completion_mean"].values.tolist())) == 3


@pytest.mark.parametrize("wrong", ["0", "1.5", "many"])
def test_seeds_is_a_whole_number(small: str, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", small, "--set", f"seeds={wrong}"]) == 2
    assert "seeds: " in capsys.readouterr().err


def test_a_sweep_takes_the_seeds_of_the_scenario(small: str) -> None:
    grid = {"sweep": {"grid": {"transport.window": ["1 BDP"]}}}
    assert fabsim.sweep(fabsim.load(small, grid), progress=False).seed.values.tolist() == [5, 6, 7]
    assert "seed" not in fabsim.sweep(fabsim.load(small, grid, sweep__seeds=1), progress=False).dims


def sentences(small: str, **changes: Any) -> list[str]:
    """Warnings of a scenario."""
    scenario = fabsim.load(small, **changes)
    return outside(scenario, scenario.network())


def test_what_is_outside_of_what_is_validated(small: str) -> None:
    assert not sentences(small)
    (text,) = sentences(small, traffic__0__size="20 kB")
    assert text.startswith(
        "8 of 8 flows send messages of less than 8 packets (32.69 kB): h0 to h4, h1 to h5, h2 to h6, ..."
    )
    assert "less than a packet of 4.15 kB" in sentences(small, transport__window="4 kB")[0]
    assert "leaf0->" in sentences(small, queue__buffer="4 kB")[0]
    lone = {"kind": "flows", "list": [{"src": 0, "dst": 5, "size": "1 kB"}]}
    assert not sentences(small, traffic=[lone])


def test_go_back_n_is_outside_where_packets_are_out_of_order_or_lost_in_bursts(small: str) -> None:
    go_back, drop, spray = {"kind": "go_back_n"}, {"kind": "tail_drop"}, {"kind": "all"}
    lossy = {"fabric__degraded": [{"link": "leaf0->spine0", "loss": 0.01}]}
    event = {"faults": [{"link": "leaf0->spine0", "loss": 0.01}]}
    flowlets = {"routing": {"kind": "drawn"}, "balancer": {"kind": "flowlet"}}
    burst, holds, order = "go_back_n at ports that drop", "go_back_n on links that lose", "go_back_n, and 8 of 8 flows"
    for changes, want in (
        ({"recovery": go_back, "routing": spray}, []),  # nothing is lost, and `check` says so
        ({"recovery": go_back, "queue": {"kind": "pfc"}}, []),
        ({"queue": drop, "routing": spray, **lossy}, []),
        ({"recovery": go_back, "queue": drop}, [burst]),
        ({"recovery": go_back, **lossy}, [holds]),
        ({"recovery": go_back, **event}, [holds]),
        ({"recovery": go_back, **flowlets, **lossy}, [holds]),
        ({"recovery": go_back, "queue": {"kind": "pfc"}, "routing": spray}, [order]),
        ({"recovery": go_back, "queue": drop, "routing": spray, **lossy}, [order, burst, holds]),
    ):
        found = sentences(small, **changes)
        assert len(found) == len(want)
        assert all(text.startswith(words) for text, words in zip(found, want, strict=True))


def test_a_warning_is_one_line_on_stderr(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["run", small, "--no-plot", "--set", "traffic.0.size=8 kB", "--set", "seeds=1"]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("warning: small: 8 of 8 flows send messages of less than 8 packets")
    assert shown.err.count("\n") == 1
    assert "warning" not in shown.out
    with pytest.warns(OutsideWarning):
        fabsim.run(fabsim.load(small, seeds=1, traffic__0__size="8 kB"), progress=False)
    assert main(["check", small, "--set", "traffic.0.size=8 kB"]) == 0
    assert "warning      8 of 8 flows" in capsys.readouterr().out
