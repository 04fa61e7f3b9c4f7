"""Faults in a scenario: what is read, refused, shown and swept."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fabsim
from fabsim.errors import InputError, InputWarning
from fabsim.scenario import load
from fabsim.scenario.batch import Compiler, run_all
from fabsim.scenario.check import report
from fabsim.scenario.contradictions import contradictions
from fabsim.sweeps.structure import only_values
from fabsim.topology import find_links

BASE: dict[str, Any] = {
    "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 2, "rate": "400 Gbps",
               "latency": "1 us"},
    "routing": {"kind": "all"},
    "traffic": [{"kind": "permutation", "size": "2 MB"}],
    "faults": [{"link": "spine0", "at": "10 us", "until": "20 us", "speed": 0}],
}  # fmt: skip


def with_faults(*events: dict[str, Any], **more: Any) -> fabsim.Scenario:
    """The scenario with other events."""
    return load({**BASE, "faults": list(events), **more})


def test_events_come_to_their_links() -> None:
    scenario = with_faults(
        {"link": "leaf0<->spine1", "at": "10 us", "flap": {"every": "50 us", "down": "10 us"}},
        {"link": "leaf*->spine*", "until": "1 ms", "speed": 0.25, "loss": 0.01, "count": 2},
        react="40 us",
    )
    problem, model = scenario.compile()
    fabric, events = scenario.network().fabric, problem.faults
    assert events is not None
    assert events.loss is not None
    assert model.recovery is not None
    hit = np.asarray(events.links)
    np.testing.assert_array_equal(np.flatnonzero(hit[0]), find_links(fabric, "leaf0<->spine1"))
    assert hit.sum(1).tolist() == [2, 4]  # both ways of two cables
    assert np.asarray(events.speed).tolist() == [0.0, 0.25]
    assert np.asarray(events.begin).tolist() == pytest.approx([1e-5, 0.0])
    assert np.asarray(events.period[0]) == pytest.approx(5e-5)
    assert np.asarray(events.end[1]) == pytest.approx(1e-3)
    assert np.asarray(events.react) == pytest.approx([4e-5, 4e-5])
    assert load({key: value for key, value in BASE.items() if key != "faults"}).compile()[0].faults is None


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"speed": 0, "at": "20 us", "until": "10 us"}, "not after it begins at 20 us, given 10 us"),
        ({"flap": {"every": "10 us", "down": "10 us"}}, "it never is up, down for 10 us of each 10 us"),
        ({}, "'spine0' is listed, but nothing happens; give speed, loss or flap"),
        ({"link": "spine9", "speed": 0}, 'no link or node is named "spine9"'),
        ({"speed": 0, "count": 9}, "given a count of 9"),
    ],
)
def test_what_cannot_be_is_one_sentence(event: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)) as error:
        with_faults({"link": "spine0", **event}).compile()
    assert len(error.value.sentences) == 1
    assert "faults.0" in str(error.value)


def test_check_lists_the_events() -> None:
    text = report(with_faults(*BASE["faults"], {"link": "h0->leaf0", "flap": {"every": "1 ms", "down": "20 us"}}))
    assert "spine0 (4 links): down from 10 us to 20 us" in text
    assert "h0->leaf0 (1 link): down for 20 us of each 1 ms, from 0 s on" in text
    assert "senders know 30 us later" in text
    assert "react: there are no faults on the way" in report(with_faults(react="1 ms"))


def test_a_fault_that_no_flow_meets_is_said() -> None:
    """The flow stays below leaf0: what happens to spines is in vain, and what happens to one of its links is not."""
    inside = {"traffic": [{"kind": "flows", "list": [{"src": 0, "dst": 1, "size": "2 MB"}]}]}
    in_vain = with_faults({"link": "h0<->leaf0", "speed": 0.5}, {"link": "leaf0<->spine1", "speed": 0}, **inside)
    told = "faults.1: no flow is routed over leaf0<->spine1"
    assert [line.split(maxsplit=2)[2] for line in report(in_vain).splitlines() if "no effect" in line] == [told]
    with pytest.warns(InputWarning) as caught:
        fabsim.run(in_vain, progress=False)
    assert [str(one.message) for one in caught if one.category is InputWarning] == [
        f"{in_vain.name}: no effect: {told}"
    ]
    assert "no flow is routed" not in report(with_faults({"link": "leaf0->*", "speed": 0.5}, **inside))
    assert "no flow is routed" not in report(with_faults({"link": "leaf0<->spine1", "speed": 0}))  # over all paths
    assert f"{told.replace('.1', '.0')} in the first of 3 draws" in report(
        with_faults({"link": "leaf0<->spine1", "speed": 0}, **inside, seeds=3)
    )


def test_a_sweep_over_times_places_and_reactions_is_one_batch() -> None:
    """The members of a batch are the runs that they would be alone."""
    assert only_values("faults.0.at", ["10 us", "20 us"])
    assert only_values("react", ["10 us", "1 s"])
    scenario, compiler = load(BASE), Compiler()
    changes = [
        {},
        {"faults.0.at": "15 us"},
        {"faults.0.link": "leaf0->spine2"},
        {"react": "2 us"},
        {"faults.0.speed": 1},
    ]
    members = [compiler.compile(scenario.change(change)) for change in changes]
    assert len({id(member.shared.net) for member in members}) == 1
    found = run_all(members, ["last_completion"]).figures["last_completion"]
    alone = [fabsim.run(scenario.change(change), progress=False).duration.max() for change in changes]
    np.testing.assert_allclose(found, alone, rtol=1e-6)
    assert len(set(np.round(alone, 9).tolist())) >= 4
    assert not contradictions(scenario)
