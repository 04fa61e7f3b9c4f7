"""`fabsim new` gives what runs as it is, and `fabsim diff` says what differs between two results."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

import fabsim
from fabsim import results
from fabsim.cli import main
from fabsim.diff import diff, pairs
from fabsim.errors import InputError
from fabsim.scenario.guide.new import commented
from fabsim.scenario.guide.reference import all_keys, keys_of

FABRIC = next(key for key in all_keys() if key.path == ("fabric",))
MADE_UP = [
    kind
    for kind, section in FABRIC.inside.items()
    if not any(key.name == "file" and key.required for key in keys_of(section))
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", MADE_UP)
def test_a_new_scenario_of_each_fabric_is_right_as_it_is(kind: str) -> None:
    text = commented("my first", kind)
    scenario = fabsim.load(YAML(typ="safe", pure=True).load(text))
    assert scenario.name == "my first"
    assert scenario.fabric.kind == kind
    assert scenario.network().flows.count > 1
    for key in all_keys():
        if len(key.path) == 1 or key.path[:2] == ("fabric", kind):
            assert re.search(rf"^[ #-]*{key.path[0]}: ?", text, re.MULTILINE), key.dotted
        if key.path[:2] == ("fabric", kind) and len(key.path) == 3:
            assert re.search(rf"^  (# )?{key.name}: .+  # .+", text, re.MULTILINE), key.dotted


def test_the_commented_defaults_are_the_defaults() -> None:
    """Every line that shows a default may be used: nothing changes."""
    text = commented("x")
    lines = [
        line
        if "not given" in line or re.match(r" *# (degraded|faults|classes|links):", line)
        else re.sub(r"^( *)# (\w+:( |$))", r"\1\2", line)
        for line in text.split("# Several runs")[0].splitlines()
    ]
    used = [line for line in lines if not line.lstrip().startswith("#")]
    assert len(used) > 20
    one, other = (fabsim.load(YAML(typ="safe", pure=True).load(part)) for part in (text, "\n".join(used)))
    assert one.model_dump() == other.model_dump()


def test_new_writes_a_file_that_runs_and_no_second_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "My first!", "--fabric", "single_switch"]) == 0
    assert capsys.readouterr().out == "scenario: my_first.yaml\n"
    assert main(["run", "my_first.yaml", "--no-plot"]) == 0
    assert "My first!" in capsys.readouterr().out
    assert main(["new", "My first!"]) == 2
    assert "my_first.yaml: exists already; give --force" in capsys.readouterr().err
    assert main(["new", "a: b", "--out", "my_first.yaml", "--force"]) == 0
    assert fabsim.load("my_first.yaml").name == "a: b"


@pytest.mark.parametrize(
    ("kind", "says"), [("leaf_spin", "did you mean leaf_spine?"), ("htsim", "read from a file of yours")]
)
def test_fabrics_that_cannot_be_made_up(kind: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "x", "--fabric", kind]) == 2
    assert says in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_diff_of_two_results(result: Any, other_case: Any) -> None:
    text = diff(result, other_case)
    assert re.search(r"^min +30\.0 +35\.0 +\+16\.7 %$", text, re.MULTILINE)
    assert re.search(r"^last +60\.0 +42\.0 +-30\.0 %$", text, re.MULTILINE)
    assert "flows: 3 are in both, of 3 in A and 3 in B" in text
    order = re.findall(r"^(h\d to h2) ", text, re.MULTILINE)
    assert order == ["h3 to h2", "h0 to h2", "h1 to h2"]
    assert "16 are in both" in text


def test_diff_matches_flows_by_their_ends_and_number(result: Any) -> None:
    flipped = dataclasses.replace(
        result, src=result.src[::-1].copy(), dst=result.dst[::-1].copy(), completion=result.completion[::-1].copy()
    )
    assert "flows: 3 are in both, of 3 in A and 3 in B; none differs" in diff(result, flipped)
    alone = dataclasses.replace(result, src=np.array([1, 1, 1]), dst=np.array([0, 0, 0]))
    assert "flows: none is in both" in diff(result, alone)
    last = dataclasses.replace(result, src=np.array([1, 1, 1]), dst=np.array([0, 0, 2]))
    assert "flows: 1 are in both" in diff(alone, last) or "flows: 2 are in both" in diff(alone, last)


def test_diff_of_flows_that_did_not_end(result: Any) -> None:
    stuck = dataclasses.replace(result, completion=np.array([np.inf, *result.completion[1:]]))
    text = diff(result, stuck)
    assert re.search(r"^h0 to h2 .* unfinished +-$", text, re.MULTILINE)
    assert re.search(r"^unfinished +0 +1$", text, re.MULTILINE)


def test_diff_puts_the_link_that_carries_more_before_full_queues(result: Any) -> None:
    """Links of switches fill a buffer of 100 kB, and the last one carries 1 MB less; then queues alone differ."""
    inside = np.flatnonzero(result.tail_tier > 0)
    full, more = (np.zeros(len(result.link)) for _ in range(2))
    full[inside[:-1]] = 100e3 + np.arange(len(inside) - 1)
    more[inside[-1]] = -1e6
    calm = dataclasses.replace(result, queue_peak=np.zeros(len(result.link)), sent=np.full(len(result.link), 2e6))

    def order(other: Any) -> list[str]:
        below = diff(calm, other, flows=0, links=3).split("added up\n")[1].splitlines()[1:4]
        return [line.split()[0] for line in below]

    names = result.link[inside]
    changed = dataclasses.replace(calm, queue_peak=full, sent=calm.sent + more)
    assert order(changed) == [names[-1], names[-2], names[-3]]
    assert order(dataclasses.replace(calm, queue_peak=full)) == list(names[-2:-5:-1])


def test_diff_lists_keys_that_differ(result: Any) -> None:
    other = dataclasses.replace(result, scenario="name: second\nseed: 8\nqueue: {buffer: 1 BDP}\n")
    text = diff(result, other)
    assert re.search(r"^seed +7 +8$", text, re.MULTILINE)
    assert re.search(r"^queue.buffer +- +1 BDP$", text, re.MULTILINE)
    assert "scenario: no key differs" in diff(result, result)


def test_cases_are_compared_by_name(result: Any, other_case: Any) -> None:
    two = [result, other_case]
    assert [one.name for one, _ in pairs(two, two, ("a", "b"), ())] == ["ECMP", "spray"]
    assert pairs(two, two, ("a", "b"), ("ECMP", "spray")) == [(result, other_case)]
    assert pairs([result], [other_case], ("a", "b"), ()) == [(result, other_case)]
    renamed = [dataclasses.replace(one, name=f"{one.name} 2") for one in two]
    with pytest.raises(InputError, match="cannot be compared by name: give --case A --case B"):
        pairs(two, renamed, ("a", "b"), ())
    with pytest.raises(InputError, match="--case x: there is no such case in b; use ECMP, spray"):
        pairs(two, two, ("a", "b"), ("ECMP", "x"))


def test_the_command(result: Any, other_case: Any, capsys: pytest.CaptureFixture[str]) -> None:
    results.write(result, "a.h5")
    results.write([result, other_case], "b.h5")
    assert main(["diff", "a.h5", "b.h5"]) == 0
    assert capsys.readouterr().out.startswith("A: ECMP\nB: ECMP\n")
    assert main(["diff", "b.h5", "b.h5", "--case", "ECMP", "--case", "spray", "--flows", "0"]) == 0
    assert "flows:" not in capsys.readouterr().out
    assert main(["diff", "a.h5", "none.h5"]) == 2
    assert "none.h5: no such file" in capsys.readouterr().err
