"""The ideal split against the linear program, and what it costs not to know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import fabsim
from fabsim.engine.problem import Problem
from fabsim.engine.simulate import begin, keep_going, simulate
from fabsim.models.ideal_split import IdealSplit
from fabsim.routing import Routes, all_paths, utilisation
from fabsim.study.bounds import min_max_utilisation
from fabsim.topology import Change, Fabric, degrade, fat_tree, leaf_spine
from fabsim.workload import Flows, assemble, permutation
from tests.small import RATE, case, slopes
from tests.test_classes import classed

LEAVES = leaf_spine(4, 8, 4, rate=RATE, latency=1e-6)
TREE = fat_tree(4, rate=RATE, latency=1e-6)
HALF = degrade(LEAVES, [Change("spine0", speed=0.5)])
SINGLE = degrade(
    LEAVES, [Change("leaf0->spine0", speed=0.5), Change("spine1->leaf2", speed=0.25), Change("spine3", speed=0.3)]
)
SLOW_TREE = degrade(
    TREE, [Change("core0->agg2", speed=0.25), Change("leaf0->agg0", speed=0.5), Change("core3->agg*", speed=0.75)]
)


def made(fabric: Fabric, flows: Flows, **more: Any) -> tuple[Problem, Any]:
    """Without more said: windows and buffers without end, so that all that is asked for is sent."""
    problem, model = case(fabric, flows, all_paths(fabric, flows), **more)
    return problem, replace(model, balancer=IdealSplit())


def between(fabric: Fabric) -> np.ndarray:
    """[L] bytes per second of links between switches; no split changes what the others carry: without a bound."""
    ends = (fabric.src < fabric.hosts) | (fabric.dst < fabric.hosts)
    return np.where(ends, 1e18, fabric.capacity)


@pytest.mark.parametrize("fabric", [HALF, SINGLE, SLOW_TREE], ids=["half_spine", "single_links", "tree"])
def test_the_busiest_link_is_that_of_the_linear_program(fabric: Fabric) -> None:
    """After 1 us within 3 %, after 10 us within 1 %; an equal split is far off."""
    flows = permutation(fabric.hosts, 8e6, seed=2)
    problem, model = made(fabric, flows)
    routes, room = all_paths(fabric, flows), between(fabric)
    best = min_max_utilisation(routes, flows.size, room).utilisation
    state, found = begin(problem, model), []
    for _ in range(10):
        state, _ = keep_going(problem, model, state, count=1, every=1)
        split = Routes(routes.path, np.asarray(state.balance, float))
        found.append(utilisation(split, flows.size, room).max() / best)
    assert utilisation(routes, flows.size, room).max() > 1.3 * best
    assert 0.999 < found[0] < 1.03
    assert 0.999 < found[-1] < 1.01


def test_on_a_symmetric_fabric_it_is_an_even_split() -> None:
    flows = permutation(16, 1e6, seed=3)
    problem, model = made(LEAVES, flows, window=6e5)
    even = simulate(problem, replace(model, balancer=None), steps=60)
    np.testing.assert_allclose(simulate(problem, model, steps=60).completion, even.completion, rtol=1e-6)


def test_slopes() -> None:
    """By the speed of the slow spine's links, against differences."""
    flows = permutation(16, 4e5, seed=2)

    def last(problem: Problem, model: Any) -> jax.Array:
        return simulate(problem, model, steps=50).completion.max()

    slow = np.flatnonzero(HALF.speed < 1)
    with jax.enable_x64(True):
        problem, model = made(degrade(HALF, [Change("spine1", speed=0.3)]), flows, window=6e5, dtype="float64")
        _, found = slopes(last, problem, model, {"rate": lambda m: m.links.capacity})
    assert len(slow) == 8
    got, want = found["rate"]
    assert got == pytest.approx(want, rel=1e-4)


NARROW = degrade(leaf_spine(2, 4, 2, rate=RATE, latency=1e-6), [Change("leaf0->spine*", speed=0.5)])
"""Two senders below one leaf, with uplinks of half their rate: spines 0 and 1 carry what one of them sends."""


def split_of(priority: tuple[int, int], weight: tuple[float, float], bound: int, flow: int) -> np.ndarray:
    """[4] where one of two flows without end goes over the spines, each of a class of its own; flow `bound` has spines
    0 and 1 only."""
    flows = assemble([0, 1], [2, 3], [1e12, 1e12])
    routes = all_paths(NARROW, flows)
    routes.weight[bound] = [0.5, 0.5, 0.0, 0.0]
    problem, model = classed(NARROW, flows, [0, 1], priority, weight, routes=routes, window=RATE * 9e-6)
    model = replace(model, balancer=IdealSplit())
    return np.asarray(simulate(problem, model, steps=20, every=20).state.balance[flow])


def test_a_class_goes_where_those_before_it_leave_room() -> None:
    """The first class fills half of the uplinks; what is behind it has nothing there."""
    np.testing.assert_allclose(split_of((0, 1), (1, 1), 0, 1), [0, 0, 0.5, 0.5], atol=0.01)


def test_a_class_makes_no_room_for_those_behind_it() -> None:
    """The second class has two of four paths, and the first one goes evenly over all as if it were alone."""
    np.testing.assert_allclose(split_of((0, 1), (1, 1), 1, 0), 0.25, atol=1e-3)


def test_classes_of_one_level_have_their_weights() -> None:
    """3 to 1: of half a rate on spines 0 and 1, which the first class wants all of, the second is sure of an eighth
    each; it is equally busy there and on spines 2 and 3, where it is alone."""
    np.testing.assert_allclose(split_of((0, 0), (3, 1), 0, 1), [0.1, 0.1, 0.4, 0.4], atol=0.01)


SCENARIO = {
    "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4, "rate": "400 Gbps",
               "latency": "1 us"},
    "routing": {"kind": "all"},
    "traffic": [{"kind": "shift", "size": "2 MB", "by": 4}],
    "transport": {"kind": "window", "window": "1.5 BDP"},
    "balancer": {"kind": "ideal"},
}  # fmt: skip


def ends(**changes: Any) -> float:
    """us of the last completion."""
    return float(fabsim.run(fabsim.load(SCENARIO, **changes), progress=False).completion.max()) * 1e6


def test_no_balancer_is_faster_where_a_spine_becomes_slow_on_the_way() -> None:
    """It knows at once; a sender that listens knows a round trip and a queue later, one that does not never. 8 MB x 4
    over what is left of the spines is all the time there is."""
    slow = {"faults": [{"link": "spine0", "at": "10 us", "speed": 0.25}]}
    took = {kind: ends(balancer={"kind": kind}, **slow) for kind in ("ideal", "bitmap", "oblivious")}
    sent = 4 * (2e6 * (1 + 64 / 4086)) / RATE / 3.25 * 1e6
    assert took["ideal"] < sent + 10 * 0.75 / 3.25 + 8
    assert took["ideal"] < 0.99 * took["bitmap"] < 0.95 * took["oblivious"]


@pytest.mark.parametrize("down", [{"speed": 0}, {"flap": {"every": "20 us", "down": "5 us"}}], ids=["dead", "flap"])
def test_a_link_that_goes_down_is_left_and_nothing_is_divided_by_it(down: dict[str, Any]) -> None:
    """Four uplinks until then, three while it is down, and 8 us there and back for what was lost on it."""
    sent = 4 * (2e6 * (1 + 64 / 4086)) / RATE * 1e6
    slow = {"faults": [{"link": "leaf0<->spine1", "at": "10 us", **down}]}
    assert sent / 4 < ends(**slow) < 10 + (sent - 40) / 3 + 8


def test_a_sweep_over_the_speed_of_a_spine() -> None:
    sweep = {"grid": {"fabric.degraded": {
        "fast": [], "half": [{"link": "spine0", "speed": 0.5}]
    }}, "metrics": ["last_completion"]}  # fmt: skip
    found = fabsim.sweep(fabsim.load(SCENARIO | {"sweep": sweep}), progress=False)
    values = np.asarray(found["last_completion"], float).reshape(-1) * 1e6
    assert values[0] == pytest.approx(ends(), rel=1e-4)
    weighted = {"routing": {"kind": "wcmp"}, "balancer": {"kind": "oblivious"}}
    slow = {"fabric__degraded": [{"link": "spine0", "speed": 0.5}]}
    assert values[1] == pytest.approx(ends(**slow, **weighted), rel=0.01)  # a split by capacity is the optimum here
    assert values[1] < 0.9 * ends(**slow, balancer={"kind": "oblivious"})


def test_next_to_nothing_on_an_idle_path_has_no_huge_slope() -> None:
    """Between two sites, where messages are so short that paths are idle most of the time."""
    site = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "rate": "400 Gbps", "latency": "1 us"}
    scenario = fabsim.load(
        {
            "fabric": {"kind": "sites", "fabrics": [site, site], "routes": [{"latency": "4 km", "rate": "400 Gbps"}]},
            "traffic": [{"kind": "all_to_all", "size": "5 kB", "window": 1}],
            "transport": {"kind": "window"},
            "routing": {"kind": "drawn"},
            "balancer": {"kind": "ideal"},
        }
    )
    problem, model = scenario.compile()

    def mean(model: Any) -> jax.Array:
        return simulate(problem, model, steps=200, every=20).completion.mean()

    slope = jax.grad(mean, allow_int=True)(model)
    assert float(abs(slope.split.weight).max()) < 1e-4  # of mean completions of 20 us
