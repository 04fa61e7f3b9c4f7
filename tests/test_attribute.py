"""Elasticities from one backward pass are what happens when a rate changes; keys that change nothing are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fabsim
from fabsim.cli import main
from fabsim.options import plain_apart
from fabsim.study.objectives import Objective
from fabsim.topology import find_links, link_names
from fabsim.tuning.attribute import Trial, attribute, slope_of, tiers
from fabsim.tuning.certificate import figures
from fabsim.tuning.members import member

SCENARIO = """
name: one narrow uplink
fabric:
  kind: leaf_spine
  leaves: 2
  spines: 2
  hosts_per_leaf: 2
  rate: 400 Gbps
  latency: 1.03 us
  degraded: [{link: "leaf0->spine1", speed: 0.3}, {link: "h0->leaf0", speed: 0.93}]
routing: {kind: all}
traffic: [{kind: shift, by: 2, size: 400 kB}]
queue: {kind: trim, buffer: 1 MB}
transport: {kind: window, window: 500 kB}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scenario on the disk."""
    path = tmp_path_factory.mktemp("attribute") / "narrow.yaml"
    path.write_text(SCENARIO)
    return path


def test_the_narrow_link_is_found_and_what_is_foretold_happens(file: Path) -> None:
    scenario = fabsim.load(file)
    found = attribute(scenario)
    names = link_names(found.fabric)
    assert names[int(np.abs(found.capacity).argmax())] == "leaf0->spine1"
    narrow = found.capacity.min()
    assert -1.1 < narrow < -0.8  # nearly all of the time is the narrow link's
    first = found.trials[0]
    assert first.faster_run == pytest.approx(first.faster, abs=0.01)
    assert first.slower_run == pytest.approx(first.slower, abs=0.01)
    assert not first.apart
    assert len(found.trials) >= 5
    tried = [trial.link for trial in found.trials]
    assert all(np.isin(tried, links).any() for links in tiers(found.fabric).values())
    assert found.lost == 0
    assert sum(found.tiers(found.capacity).values()) == pytest.approx(found.capacity.sum())
    hosts = found.hosts()
    link = find_links(found.fabric, "h1->leaf0"), find_links(found.fabric, "leaf0->h1")
    assert hosts[1] == pytest.approx(found.capacity[link[0]][0] + found.capacity[link[1]][0])
    assert {"queue.ecn_low", "queue.ecn_high", "queue.buffer"} <= set(found.inert)
    assert "links.capacity" not in found.inert
    small_change(scenario, narrow)


def small_change(scenario: fabsim.Scenario, elasticity: float) -> None:
    """0.5 % more rate changes the objective by the elasticity times 0.5 %."""
    one = member(scenario, split=False)
    link = int(find_links(one.net.fabric, "leaf0->spine1")[0])
    terms = Objective((("last_completion", 1.0),))
    ends = []
    for factor in (0.995, 1.005):
        rate = one.model.links.capacity.at[link].multiply(factor)
        model = replace(one.model, links=replace(one.model.links, capacity=rate))
        ends.append(figures(one, terms, model)["last_completion"])
    assert (ends[1] / ends[0] - 1) / 0.01 == pytest.approx(elasticity, rel=0.005)


def test_a_gradient_that_overflows_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def overflown(*given: Any) -> Any:
        return jax.tree.map(lambda slope: slope + np.nan, slope_of(*given))

    monkeypatch.setattr("fabsim.tuning.attribute.slope_of", overflown)
    assert main(["attribute", str(file), "--no-plot"]) == 3
    assert "last_completion is not finite in float32; --precision float64 may do" in capsys.readouterr().err


def test_what_is_foretold_wrong_is_said_with_its_reason(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An incast into a shallow buffer: the last completion goes by rounds of retransmission."""
    assert not Trial(0, -0.02, -0.015, 0.02, 0.03).apart
    assert Trial(0, -0.02, -0.009, 0.02, 0.02).apart
    assert Trial(0, -0.02, 0.02, 0.0, 0.0).apart
    assert not Trial(0, 1e-6, -4e-5, 0.0, 0.0).apart  # less than a ten-thousandth of the objective
    text = SCENARIO.replace("{kind: shift, by: 2, size: 400 kB}", "{kind: incast, senders: 3, receiver: 3, size: 1 MB}")
    (tmp_path / "s.yaml").write_text(text.replace("buffer: 1 MB", "buffer: 20 kB"))
    assert main(["attribute", str(tmp_path / "s.yaml"), "--no-plot", "--quiet", "--top", "2"]) == 0
    told = capsys.readouterr().out
    table, below = told.split("\n* foretold")
    table = table.splitlines()[2:]
    assert any(line.endswith("*") for line in table)
    assert sum("(tier" in line for line in table) >= 1
    assert "are lost and sent again, and last_completion jumps with the rounds that this takes" in told
    assert "--objective mean_completion is smoother" in told
    marked = {line.split()[0] for line in table if line.endswith("*")}
    hosts = next(line for line in below.splitlines() if line.startswith("hosts, by rate")).partition(":")[2].split(", ")
    ends = {end for name in marked for end in name.split("->") if end.startswith("h")}
    assert {text.split()[0] for text in hosts if text.endswith("*")} == ends & {text.split()[0] for text in hosts}
    assert ends


def test_the_step_is_short_enough_for_faster_links(capsys: pytest.CaptureFixture[str]) -> None:
    """Short cables: a packet's time is much of a hop, and the derived step, which is the shortest hop, is too long."""
    short = fabsim.load({
        "name": "one switch", "fabric": {"kind": "single_switch", "hosts": 3, "rate": "100 Gbps", "latency": "100 ns"},
        "traffic": [{"kind": "incast", "senders": 2, "receiver": 2, "size": "100 kB"}],
        "transport": {"kind": "window", "window": "1 BDP"},
    })  # fmt: skip
    derived = float(member(short, split=False).problem.dt)
    found = attribute(short)
    down = int(find_links(found.fabric, "leaf0->h2")[0])
    tried = {trial.link: trial for trial in found.trials}
    assert tried[down].faster_run < -0.05
    with pytest.raises(fabsim.InputError, match=r"10 % faster, which are run here; .* ns would do") as refused:
        attribute(short.change({"dt": f"{derived * 0.999e9} ns"}))
    told = str(refused.value).split("; ")[-1].removesuffix(" would do")
    assert attribute(short.change({"dt": told}), checked=1).trials[0].link == down


def test_only_the_last_flow_counts_for_the_last_completion() -> None:
    """Others end 1 % earlier: a smooth maximum, as a tuning has it, would have them count too."""
    uneven = fabsim.load({
        "name": "one slower link",
        "fabric": {"kind": "single_switch", "hosts": 4, "rate": "100 Gbps", "latency": "1.03 us",
                   "degraded": [{"link": "leaf0->h2", "speed": 0.99}]},
        "traffic": [{"kind": "shift", "by": 1, "size": "1 MB"}],
        "transport": {"kind": "window", "window": "2 BDP"},
    })  # fmt: skip
    found = attribute(uneven, checked=1, progress=False)
    slow, other = (int(find_links(found.fabric, name)[0]) for name in ("leaf0->h2", "leaf0->h1"))
    assert found.capacity[slow] < -0.9
    assert abs(found.capacity[other]) < 1e-6


def test_the_command(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "links.png"
    assert main(["attribute", str(file), "--top", "3", "--plot", str(picture), "--quiet"]) == 0
    told = capsys.readouterr().out
    assert "leaf0->spine1" in told.splitlines()[2]
    assert "no effect here:    queue.buffer, queue.ecn_low, queue.ecn_high" in told
    assert picture.stat().st_size > 10_000
    assert main(["attribute", str(file), "--objective", "speed"]) == 2
    assert "there is no such objective; use last_completion" in capsys.readouterr().err
    assert main(["attribute", str(file), "--objective", "lost_bytes"]) == 2
    assert "is zero in this scenario" in capsys.readouterr().err


def test_each_case_has_a_picture_of_its_own() -> None:
    """Names that differ in case or blanks only, or in letters that no file name has, are told apart by numbers."""
    names = ("A b", "a-b", "a b 2", "+", "µ")
    assert list(plain_apart(names).values()) == ["a-b", "a-b-2", "a-b-2-2", "run", "run-2"]


def test_check_names_inert_keys(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(["check", str(file), "--inert"]) == 0
    out, err = capsys.readouterr()
    assert "queue.buffer, queue.ecn_low" in out
    assert "gradient:   0%" in err  # a minute of a large fabric has a sign of life
