"""Classes of traffic in a scenario: what may be written, what comes out, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabsim
from fabsim.cli import main
from fabsim.errors import InputError
from fabsim.export import as_csv
from fabsim.results import read, write
from fabsim.scenario.batch import Compiler
from fabsim.scenario.guide.explain import explain
from fabsim.sweeps.design import design
from fabsim.sweeps.plan import plan
from fabsim.tables import show

TEXT: dict[str, Any] = {
    "name": "small",
    "fabric": {
        "kind": "leaf_spine",
        "leaves": 2,
        "spines": 1,
        "hosts_per_leaf": 2,
        "rate": "400 Gbps",
        "latency": "1 us",
    },
    "traffic": [
        {"kind": "shift", "by": 2, "size": "1 MB", "class": "control"},
        {"kind": "shift", "by": 2, "size": "2 MB"},
    ],
    "queue": {"kind": "trim", "classes": [{"name": "control", "priority": 0}, {"name": "bulk", "weight": 3}]},
}
SHAPE = {"rate": "100 Gbps", "burst": "100 kB"}


def test_classes_and_their_defaults() -> None:
    """Flows have the class that their entry names, else the last; queues are the port's, or follow a buffer."""
    own = {"queue.classes.1.buffer": "100 kB", "queue.classes.0.ecn_low": "50 kB", "queue.ecn_high": "300 kB"}
    problem, model = fabsim.load(TEXT, own).compile()
    links, size = problem.links, problem.links * 2
    assert problem.classes == 2
    assert (np.asarray(problem.port_link)[:, 0] // links).tolist() == [0] * 4 + [1] * 4
    assert model.classes is not None
    assert model.classes.priority == (0, 1)
    assert model.classes.weight.tolist() == [1, 3]
    assert model.classes.shape is model.classes.police is None
    buffer, low, high = (np.asarray(x).reshape(2, -1)[:, 0] for x in vars(model.queue).values() if np.size(x) == size)
    assert buffer[1], low[1] == (1e5, 2e4)
    assert (low[0], high[0], high[1]) == (5e4, 3e5, pytest.approx(8e4))
    assert fabsim.load({**TEXT, "queue": {"kind": "trim"}, "traffic": [TEXT["traffic"][1]]}).compile()[0].classes == 1


def test_buckets_stand_where_they_are_said_to() -> None:
    both = {"queue.classes.0.shape": SHAPE | {"links": "leaf0->*"}, "queue.classes.1.police": SHAPE}
    scenario = fabsim.load(TEXT, both)
    fabric, classes = scenario.network().fabric, scenario.compile()[1].classes
    assert classes is not None
    assert classes.shape is not None
    assert classes.police is not None
    shaped, policed = (np.asarray(x.rate).reshape(2, -1) < 1e14 for x in (classes.shape, classes.police))
    assert {fabric.link_name(int(link)) for link in np.flatnonzero(shaped[0])} == {
        "leaf0->h0", "leaf0->h1", "leaf0->spine0",
    }  # fmt: skip
    assert not shaped[1].any()
    assert not policed[0].any()
    assert (policed[1] == (fabric.src >= fabric.hosts)).all()


def test_results_by_class(tmp_path: Path) -> None:
    """Classes add up to links; files, tables and text have them."""
    result = fabsim.run(fabsim.load(TEXT), progress=False)
    assert result.classes.tolist() == ["control", "bulk"]
    assert result.traffic_class.tolist() == [0] * 4 + [1] * 4
    for name in ("sent", "marked", "dropped", "queue_mean"):
        np.testing.assert_allclose(getattr(result, f"class_{name}").sum(0), getattr(result, name), rtol=1e-5, atol=1e-9)
    ahead = result.headers / (result.capacity * result.last)  # of no class
    assert ahead.max() > 0.01
    np.testing.assert_allclose(result.class_utilisation.sum(0) + ahead, result.utilisation, rtol=1e-5)
    assert (result.class_queue_peak.max(0) <= result.queue_peak * (1 + 1e-6)).all()
    assert result.duration[:4].max() < result.duration[4:].min()
    write(result, tmp_path / "r.h5")
    assert read(tmp_path / "r.h5")[0].class_sent.tolist() == result.class_sent.tolist()
    data = fabsim.open(tmp_path / "r.h5")
    assert data.class_sent.sel(classes="bulk", link="leaf0->spine0") > data.class_sent.sel(classes="control").max()
    assert "class    flows" in show([result])
    assert "entries of traffic" not in show([result])  # there are two, which the classes tell apart
    lines = as_csv([result], "classes").splitlines()
    assert lines[0].startswith("case,class,link,class_sent_B")
    assert len(lines) == 1 + 2 * len(result.link)


def test_weights_rates_and_classes_are_one_program() -> None:
    """A sweep over all of them, and over the class of an entry, compiles once; its figures are those of single runs."""
    grid = {
        "queue.classes.0.weight": [1.0, 7.0],
        "queue.classes.1.shape.rate": ["50 Gbps", "300 Gbps"],
        "traffic.0.class": ["control", "bulk"],
    }
    level = {"queue.classes.0.priority": 1, "queue.classes.1.shape": SHAPE}
    scenario = fabsim.load({**TEXT, "sweep": {"grid": grid}}, level)
    planned = plan(scenario, design(scenario), Compiler(), devices=1, progress=False)
    assert [program.points for program in planned.programs] == [8]
    found = fabsim.sweep(scenario, progress=False).last_completion
    assert len(np.unique(found.values)) > 4
    for point in ({"queue.classes.0.weight": 1, "queue.classes.1.shape.rate": 1, "traffic.0.class": 0},):
        values = {key: grid[key][number] for key, number in point.items()}
        alone = fabsim.run(fabsim.load(TEXT, level | values), progress=False)
        assert float(found.isel(point)) == pytest.approx(alone.last, rel=1e-6)


def test_check_and_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.yaml").write_text(
        "fabric: {kind: single_switch, hosts: 3, rate: 400 Gbps, latency: 1 us}\n"
        "traffic: [{kind: shift, by: 1, size: 1 MB, class: one}]\n"
        "queue: {kind: trim, classes: [{name: one, shape: {rate: 100 Gbps, burst: 1 MB, links: leaf0}}, {name: two}]}\n"
    )
    assert main(["check", str(tmp_path / "s.yaml")]) == 0
    text = capsys.readouterr().out
    assert "one: 3 flows, priority 1, weight 1, shaped to 100 Gbps and a burst of 1 MB at leaf0" in text
    assert "two: 0 flows, priority 1, weight 1" in text
    assert "queue.classes.0.weight" in explain("queue.classes.weight")
    assert "levels with a lower number are served first" in explain("queue")
    assert "the class of queue.classes that its flows are of" in explain("traffic.permutation.class")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such class": (
        {"traffic.1.class": "bulky"},
        "traffic.1.class: there is no class 'bulky'; the classes are control, bulk",
    ),
    "no classes": (
        {"queue.classes": []},
        "traffic.0.class: there is no class 'control'; queue.classes declares none",
    ),
    "twice": ({"queue.classes.1.name": "control"}, "a second class 'control'; give each a name of its own"),
    "weight": ({"queue.classes.1.weight": 0}, "queue.classes.1.weight: must be more than 0, given 0; write it like 3"),
    "level": ({"queue.classes.1.priority": -1}, "queue.classes.1.priority: must be at least 0"),
    "rate": ({"queue.classes.1.shape": {"rate": 3, "burst": "1 kB"}}, "queue.classes.1.shape.rate"),
    "links": (
        {"queue.classes.1.shape": SHAPE | {"links": "leaf7->spine0"}},
        'queue.classes.1.shape.links: no link or node is named "leaf7->spine0"',
    ),
    "senders": (
        {"queue.classes.1.police": SHAPE | {"links": "h0->leaf0"}},
        "queue.classes.1.police.links: h0->leaf0 are links of senders, who cut nothing of their own; give shape",
    ),
    "buffer": (
        {"queue.kind": "pfc", "queue.classes.1.buffer": "1 MB"},
        "queue.classes.1.buffer: ports have no buffers of their own under kind: pfc; leave it out",
    ),
    "thresholds": (
        {"queue.classes.0.ecn_low": "400 kB", "queue.classes.0.ecn_high": "1 kB"},
        "queue.classes.0.ecn_low: above ecn_high",
    ),
    "derived thresholds": (
        {"queue.classes.0.buffer": "10 kB", "queue.classes.0.ecn_low": "0.5 BDP"},
        "queue.classes.0.ecn_low: ecn_low would be",
    ),
    "ideal": (
        {"transport.kind": "ideal", "queue.classes.0.priority": 1},
        "transport.kind: knows what classes leave each other by priority, not by weight; give each class a priority",
    ),
    "tune": (
        {"tune": {"objective": "last_completion", "parameters": [{"key": "queue.buffer", "per": "tier"}]}},
        "queue.buffer has no value for each tier; use class",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    values, sentence = BAD[case]

    def built() -> None:
        scenario = fabsim.load(TEXT, values)
        fabsim.tune(scenario, progress=False) if scenario.tune else scenario.compile()

    with pytest.raises(InputError) as error:
        built()
    assert sentence in str(error.value)
