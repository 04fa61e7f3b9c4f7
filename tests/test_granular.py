"""Ports that feel packets, against the M/D/1 queue."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.setup import irregular
from fabsim.models.granular import ENDLESS, GranularQueue
from fabsim.models.queue import TrimQueue
from fabsim.routing import all_paths
from fabsim.topology import find_links, leaf_spine
from fabsim.workload import assemble
from tests.small import case

PACKET, ROOM = 1.0 / 12, 1.0
LARGE = jnp.full(1, 1e6)


def settle(load: float, random: float, steps: int, packet: float = PACKET, turn: float = ENDLESS) -> np.ndarray:
    """Queue in packets after each step of a port of capacity one that is fed evenly."""
    queue = GranularQueue(LARGE, LARGE, LARGE, jnp.full(1, packet), turn=jnp.asarray(turn))
    state, one = queue.init(jnp.zeros(1)), jnp.ones(1)
    found = []
    for _ in range(steps):
        state, _ = queue.step(state, ROOM * one, load * one, 0.0 * one, random * one)
        found.append(float(state.queue[0]) / packet)
    return np.array(found)


@pytest.mark.parametrize("load", [0.5, 0.8, 0.9, 0.95])
def test_stands_at_the_mean_of_the_md1_queue(load: float) -> None:
    expected = load**2 / (2 * (1 - load))
    assert settle(load, 1.0, 600)[-1] == pytest.approx(expected, rel=0.01)


def test_half_as_random_half_as_long() -> None:
    assert settle(0.9, 0.5, 600)[-1] == pytest.approx(0.5 * 0.9**2 / 0.2, rel=0.01)


def test_at_saturation_grows_as_the_square_root_of_the_packets() -> None:
    found = settle(1.0, 1.0, 400)
    packets = 12 * np.array([100, 400])
    assert found[[99, 399]] == pytest.approx(np.sqrt(packets), rel=0.1)


@pytest.mark.parametrize(("load", "turn"), [(1.0, 128), (1.0, 512), (0.95, 128), (0.9, 512)])
def test_rounds_of_packets_stand_at_the_mean_of_the_nd_d1_queue(load: float, turn: int) -> None:
    """The integral of exp(- 2 x (x / N + 1 - load)): sqrt(pi N / 8) at saturation, from above or below."""
    x = np.linspace(0, 40 * np.sqrt(turn), 100_001)
    expected = np.trapezoid(np.exp(-2 * x * (x / turn + 1 - load)), x)
    if load == 1.0:
        assert expected == pytest.approx(np.sqrt(np.pi * turn / 8), rel=1e-6)
    assert settle(load, 1.0, 1200, turn=turn)[-1] == pytest.approx(expected, rel=0.02 if load == 1.0 else 0.14)


def test_half_as_random_rounds_bring_a_root_of_half() -> None:
    assert settle(1.0, 0.5, 1200, turn=128)[-1] == pytest.approx(np.sqrt(0.5 * np.pi * 128 / 8), rel=0.04)


def test_a_spray_is_random_at_ports_between_switches_only() -> None:
    """Of three flows, of each an eighth, a packet meets one of the two others: 2/3. A lone flow meets none; and at a
    receiver's port all of a flow arrives."""
    fabric = leaf_spine(2, 8, 4, rate=50e9, latency=1e-6)
    flows = assemble([0, 1, 2], [4, 5, 6], [1e6, 1e6, 1e6])
    problem, model = case(fabric, flows, all_paths(fabric, flows))
    random = np.asarray(irregular(problem, model.split.weight))
    ends = (fabric.src < fabric.hosts) | (fabric.dst < fabric.hosts)
    np.testing.assert_allclose(random[find_links(fabric, "leaf0->spine*")], 2 / 3, rtol=1e-6)
    assert not random[:-1][ends].any()
    problem, model = case(fabric, assemble([0], [4], [1e6]), all_paths(fabric, assemble([0], [4], [1e6])))
    np.testing.assert_allclose(irregular(problem, model.split.weight), 0, atol=1e-6)


def test_paced_arrivals_do_not_queue_and_packets_vanish_in_the_limit() -> None:
    assert settle(0.9, 0.0, 50)[-1] == 0.0
    assert settle(0.9, 1.0, 50, packet=1e-6)[-1] * 1e-6 < 1e-4


def test_overload_and_bounds_are_those_of_the_plain_queue() -> None:
    one = jnp.ones(1)
    plain = TrimQueue(3 * one, one, 2 * one)
    granular = GranularQueue(3 * one, one, 2 * one, PACKET * one)
    a, b = plain.init(0 * one), granular.init(0 * one)
    for _ in range(30):
        a, left = plain.step(a, one, 1.7 * one, 0 * one)
        b, right = granular.step(b, one, 1.7 * one, 0 * one, one)
        assert float(b.queue[0]) <= 3.0 + 1e-5
        assert float(right.sent[0]) <= float(left.sent[0]) + 1e-6
        total = float(b.queue[0] + right.sent[0] + right.drop[0])
        assert total == pytest.approx(float(b.queue[0]) + float(right.sent[0]) + float(right.drop[0]))
    assert float(right.sent[0]) == pytest.approx(1.0, rel=0.02)
