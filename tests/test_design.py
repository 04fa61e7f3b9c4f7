"""Designs of sweeps: what is varied, how it is combined and drawn; and every refusal is a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabsim
from fabsim.study.catalogue import metric
from fabsim.sweeps.design import Design, design
from fabsim.sweeps.structure import structures
from fabsim.units import quantity

BASE = {
    "seed": 3,
    "fabric": {
        "kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "rate": "400 Gbps", "latency": "1 us",
    },
    "traffic": [{"kind": "permutation", "size": "64 KiB"}],
}  # fmt: skip


def of(**sweep: Any) -> Design:
    """The design of a sweep over the small scenario."""
    return design(fabsim.load({**BASE, "sweep": sweep}))


def test_a_grid_combines_everything_with_everything_and_the_last_axis_is_fastest() -> None:
    found = of(grid={"transport.window": ["1 BDP", "2 BDP"], "queue.buffer": ["50 kB", "1 MB", "2 MB"]}, seeds=2)
    assert [axis.name for axis in found.axes] == ["transport.window", "queue.buffer", "seed"]
    assert found.shape == (2, 3, 2)
    assert found.values(0) == {"transport.window": "1 BDP", "queue.buffer": "50 kB", "seed": 3}
    assert found.values(7) == {"transport.window": "2 BDP", "queue.buffer": "50 kB", "seed": 4}
    assert found.described(11) == "transport.window=2 BDP, queue.buffer=2 MB, seed=4"


def test_zipped_values_go_together() -> None:
    found = of(zip={"fabric.spines": [2, 4], "fabric.rate": ["400 Gbps", "200 Gbps"]}, grid={"queue.buffer": ["1 MB"]})
    assert found.shape == (1, 2)
    assert found.values(1) == {"queue.buffer": "1 MB", "fabric.spines": 4, "fabric.rate": "200 Gbps"}


def test_coordinates_are_numbers_with_units_where_they_can_be() -> None:
    grid = {
        "fabric.rate": ["400 Gbps", "200 Gbps"],
        "queue.buffer": ["1 BDP", "100 kB"],
        "fabric.spines": [2, 4],
        "routing": {"one path": {"kind": "ecmp"}, "spray": {"kind": "all"}},
        "fabric.latency": ["1 us", "2 us"],
    }
    found = {axis.name: axis.coordinate(axis.name) for axis in of(grid=grid).axes}
    assert found["fabric.rate"][0].tolist() == [50e9, 25e9]
    assert found["fabric.rate"][1] == "B/s"
    assert found["queue.buffer"][0].tolist() == ["1 BDP", "100 kB"]
    assert found["fabric.spines"][0].dtype.kind == "i"
    assert found["routing"][0].tolist() == ["one path", "spray"]
    assert found["fabric.latency"] == (pytest.approx([1e-6, 2e-6]), "s")


@pytest.mark.parametrize("method", ["random", "latin_hypercube", "sobol"])
def test_samples_lie_in_their_ranges_and_the_seed_gives_them_again(method: str) -> None:
    ranges = {
        "queue.buffer": {"low": "10 kB", "high": "1 MB", "log": True},
        "transport.window": {"low": "0.5 BDP", "high": "2 BDP"},
        "fabric.spines": {"low": 2, "high": 5},
    }

    def drawn(seed: int) -> list[dict[str, Any]]:
        found = of(sample={"count": 64, "method": method, "ranges": ranges, "seed": seed})
        return [found.values(number) for number in range(found.count)]

    points = drawn(1)
    assert points == drawn(1)
    assert points != drawn(2)
    buffers = np.array([quantity(point["queue.buffer"])[0] for point in points])
    assert ((buffers >= 10e3) & (buffers <= 1e6)).all()
    assert abs(np.median(buffers) / 100e3 - 1) < 0.6  # even in the logarithm
    assert {point["fabric.spines"] for point in points} == {2, 3, 4, 5}
    if method == "latin_hypercube":
        windows = np.array([quantity(point["transport.window"])[0] for point in points])
        assert sorted(((windows - 0.5) / 1.5 * 64).astype(int).tolist()) == list(range(64))
    if method == "sobol":
        halves = np.array([quantity(point["transport.window"])[0] for point in points]) < 1.25
        assert halves.sum() == 32  # balanced in every power of two


def test_points_that_differ_in_values_only_are_one_structure() -> None:
    found = of(
        grid={
            "queue.buffer": ["50 kB", "1 MB"],
            "routing.kind": ["ecmp", "all"],
            "transport.window": ["1 BDP", "2 BDP"],
        },
        seeds=2,
    )
    groups = list(structures(found))
    assert len(groups) == 4  # two routings and two seeds
    assert sorted(np.concatenate(groups).tolist()) == list(range(16))
    for group in groups:
        assert len({(found.values(i)["routing.kind"], found.values(i)["seed"]) for i in group}) == 1


def test_words_among_values_are_another_structure() -> None:
    assert len(list(structures(of(grid={"queue.buffer": ["auto", "50 kB", "1 MB"]})))) == 3


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ({}, "sweep: nothing is varied; give a grid, a zip, a sample or seeds"),
        ({"grid": {"transport.window": []}}, "sweep.grid.transport.window: must not be empty"),
        ({"grid": {"transport.window": "1 BDP"}}, "neither a list of values nor values by label, given '1 BDP'"),
        ({"grid": {"transport.windw": ["1 BDP"]}}, "transport.windw: unknown key"),
        ({"zip": {"fabric.spines": [2], "fabric.leaves": [2, 4]}},
         "zipped values must be equally many, given 1 of fabric.spines, 2 of fabric.leaves"),
        ({"grid": {"seed": [1]}, "zip": {"seed": [1]}}, "seed is varied twice; take it out of grid, zip or sample"),
        ({"sample": {"count": 4, "ranges": {"queue.buffer": {"low": "1 MB", "high": "10 kB"}}}},
         "low '1 MB' is not below high '10 kB'"),
        ({"sample": {"count": 4, "ranges": {"queue.buffer": {"low": "1 us", "high": "10 kB"}}}},
         "have different units"),
        ({"sample": {"count": 4, "ranges": {"queue.buffer": {"low": "0 B", "high": "1 kB", "log": True}}}},
         "a logarithmic range begins above 0"),
        ({"sample": {"count": 4, "ranges": {"queue.buffer": {"low": "1 us", "high": "2 us"}}}}, "is a time"),
        ({"seeds": 2, "metrics": ["last_completoin"]}, "did you mean 'last_completion'"),
        ({"seeds": 2, "metrics": ["completion_p101"]}, "not a figure, given 'completion_p101'"),
        ({"seeds": 2, "traces": ["queues"]}, "not one of the choices, given 'queues'"),
        ({"seeds": 2, "batch": 0}, "sweep.batch: must be at least 1"),
    ],
)  # fmt: skip
def test_refusals(sweep: dict[str, Any], says: str) -> None:
    with pytest.raises(fabsim.InputError) as error:
        of(**sweep)
    assert says in str(error.value)
    assert len(error.value.sentences) == 1


MARKS = BASE | {"queue": {"kind": "trim", "buffer": "400 kB", "ecn_low": "40 kB", "ecn_high": "60 kB"}}


@pytest.mark.parametrize(
    "sweep",
    [
        {"zip": {"queue.ecn_low": ["40 kB", "80 kB"], "queue.ecn_high": ["60 kB", "120 kB"]}},
        {"zip": {"queue.ecn_low": {"a": "80 kB"}, "queue.ecn_high": {"b": "120 kB"}}},
        {"grid": {"queue.ecn_low": ["80 kB", "40 kB"], "queue.ecn_high": ["60 kB", "70 kB", "120 kB"]}},
        {"grid": {"queue.ecn_low": ["80 kB"]}, "zip": {"queue.ecn_high": ["120 kB"], "seed": [3]}},
        {"grid": {"queue.xoff": ["100 kB"], "queue.kind": ["trim", "pfc"]}},
        {"sample": {"count": 4, "ranges": {"queue.ecn_low": {"low": "70 kB", "high": "80 kB"},
                                           "queue.ecn_high": {"low": "90 kB", "high": "99 kB"}}}},
    ],
)  # fmt: skip
def test_values_that_go_together_are_tried_together(sweep: dict[str, Any]) -> None:
    """None of them goes with what the file says, each does with another that the sweep varies."""
    assert fabsim.load(MARKS | {"sweep": sweep}).sweep is not None


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ({"zip": {"queue.ecn_low": ["40 kB", "80 kB"], "queue.ecn_high": ["60 kB", "70 kB"]}}, "above ecn_high (70"),
        ({"zip": {"queue.ecn_low": ["40 kB", "80 kB"], "queue.ecn_high": ["60 kB", "2 us"]}}, "is a time"),
        ({"grid": {"queue.ecn_low": ["50 kB", "80 kB"], "seed": [1, 2]}}, "above ecn_high (60000 B), given 80000 B"),
        ({"grid": {"queue.ecn_low": ["50 us"], "queue.ecn_high": ["60 kB", "99 kB"]}}, "is a time"),
        ({"grid": {"queue.ecn_low": ["130 kB"], "queue.ecn_high": ["60 kB", "99 kB"]}}, "above ecn_high (60000 B)"),
    ],
)
def test_a_value_that_goes_with_none_is_refused(sweep: dict[str, Any], says: str) -> None:
    with pytest.raises(fabsim.InputError) as error:
        fabsim.load(MARKS | {"sweep": sweep})
    (line,) = error.value.sentences
    assert says in line


def test_each_zipped_fault_is_told_at_its_own_place(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    base = "\n".join(f"{key}: {json.dumps(value)}" for key, value in BASE.items())
    file.write_text(f"sweep:\n  zip:\n    queue.buffer: [1 kB, 1 us]\n    packet.mtu: [1 kB, 0 B]\n{base}")
    with pytest.raises(fabsim.InputError) as error:
        fabsim.load(file)
    assert [line.partition(": sweep.zip: ")[0] for line in error.value.sentences] == [f"{file}:3:26", f"{file}:4:24"]


def test_metrics_by_percentile() -> None:
    assert metric("completion_p99.9") is not None
    assert metric("slowdown_p5") is not None
    assert metric("completion_p") is None
