"""The optimum over all splits: against cases with a known one, weak duality, and another program for the same thing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from fabsim.routing import Routes, all_paths, link_load, proportional, utilisation
from fabsim.study.bounds import min_max_utilisation
from fabsim.topology import Change, Fabric, degrade, find_links, leaf_spine
from fabsim.workload import Flows, shift

RATE = 50e9


def slow_spine(spines: int) -> tuple[Fabric, Flows]:
    """As many hosts as spines on each of two leaves, each sends 1 MB to the other leaf; spine0 runs at half speed."""
    fabric = degrade(leaf_spine(2, spines, spines, rate=RATE, latency=1e-6), [Change("spine0", speed=0.5)])
    return fabric, shift(fabric.hosts, 1e6, by=spines)


def test_one_of_sixteen_spines_at_half_speed() -> None:
    """Equal: the slow one has the load of a host at half its rate. Best: 16 hosts share 15.5 spines."""
    fabric, flows = slow_spine(16)
    equal, by_capacity = all_paths(fabric, flows), proportional(fabric, flows)
    bound = min_max_utilisation(equal, flows.size, fabric.capacity)
    busiest = utilisation(equal, flows.size, fabric.capacity).max()
    assert bound.utilisation == pytest.approx(16e6 / 15.5 / RATE, rel=1e-9)
    assert busiest == pytest.approx(2e6 / RATE, rel=1e-9)
    assert busiest / bound.utilisation == pytest.approx(1.9375)  # equal split: 94 % off
    assert utilisation(by_capacity, flows.size, fabric.capacity).max() == pytest.approx(bound.utilisation, rel=1e-9)


def test_the_split_reaches_the_optimum_and_the_prices_prove_it() -> None:
    fabric, flows = slow_spine(4)
    routes = all_paths(fabric, flows)
    bound = min_max_utilisation(routes, flows.size, fabric.capacity)
    best = Routes(routes.path, bound.split)
    np.testing.assert_allclose(bound.split.sum(1), 1)
    assert utilisation(best, flows.size, fabric.capacity).max() == pytest.approx(bound.utilisation, rel=1e-6)
    assert bound.certificate == pytest.approx(bound.utilisation, rel=1e-6)
    assert bound.price.sum() == pytest.approx(1)


def test_a_price_is_what_a_faster_link_saves() -> None:
    """One leaf sends: its four uplinks set the optimum, each by its part of their capacity."""
    fabric, flows = slow_spine(4)
    some = np.where(flows.src < 4, flows.size, 0.0)
    bound = min_max_utilisation(all_paths(fabric, flows), some, fabric.capacity)
    for spine, capacity in (("spine0", 0.5), ("spine1", 1.0)):
        link = find_links(fabric, f"leaf0->{spine}")[0], find_links(fabric, f"{spine}->leaf1")[0]
        assert bound.price[list(link)].sum() == pytest.approx(capacity / 3.5, rel=1e-6)
        faster = fabric.capacity.copy()
        faster[list(link)] *= 1 + 1e-4
        other = min_max_utilisation(all_paths(fabric, flows), some, faster)
        assert 1 - other.utilisation / bound.utilisation == pytest.approx(1e-4 * capacity / 3.5, rel=1e-3)


def test_lanes_without_weight_are_no_choice() -> None:
    fabric, flows = slow_spine(4)
    routes = all_paths(fabric, flows)
    only = Routes(routes.path, np.eye(4)[[0]].repeat(flows.count, 0))  # all by the slow spine
    bound = min_max_utilisation(only, flows.size, fabric.capacity)
    assert bound.utilisation == pytest.approx(4e6 / (0.5 * RATE))


@pytest.mark.parametrize("seed", range(4))
def test_concurrent_flow_is_the_other_program(seed: int) -> None:
    """Random demands and capacities: the largest factor of all demands, by a program that is written out densely."""
    random = np.random.default_rng(seed)
    fabric = leaf_spine(3, 4, 2, rate=RATE, latency=1e-6)
    capacity = fabric.capacity * random.uniform(0.3, 1.0, fabric.links)
    flows = shift(fabric.hosts, 1e6, by=2)
    demand = random.uniform(0.2, 1.0, flows.count) * RATE
    routes = all_paths(fabric, flows)
    bound = min_max_utilisation(routes, demand, capacity)
    assert bound.concurrent == pytest.approx(concurrent(routes, demand, capacity), rel=1e-6)


def concurrent(routes: Routes, demand: np.ndarray, capacity: np.ndarray) -> float:
    """maximise z with amounts y >= 0: sum over k of y[f, k] = z demand[f], loads at most the capacities."""
    flows, lanes = routes.weight.shape
    loads, sums = np.zeros((len(capacity), flows * lanes + 1)), np.zeros((flows, flows * lanes + 1))
    for flow in range(flows):
        sums[flow, -1] = -demand[flow] / RATE
        for lane in range(lanes):
            loads[routes.path[flow, lane][routes.path[flow, lane] >= 0], flow * lanes + lane] = 1
            sums[flow, flow * lanes + lane] = 1
    cost = np.append(np.zeros(flows * lanes), -1.0)
    found = linprog(cost, loads, capacity / RATE, sums, np.zeros(flows))
    return -found.fun


def test_load_of_a_split() -> None:
    fabric, flows = slow_spine(4)
    load = link_load(all_paths(fabric, flows), flows.size, fabric.links)
    assert load[find_links(fabric, "leaf0->spine2")] == pytest.approx(1e6)
    assert load.sum() == pytest.approx(8e6 * 4)
