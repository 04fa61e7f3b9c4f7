"""A memory that ports share by a dynamic threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.problem import Problem
from fabsim.engine.simulate import simulate
from fabsim.models.model import Model
from fabsim.models.recovery import SelectiveRepeat
from fabsim.models.shared import SharedBuffer
from fabsim.scenario import load
from fabsim.scenario.compile.arrays import compile_scenario
from fabsim.topology import leaf_spine, single_switch
from fabsim.typing import Array
from fabsim.workload import assemble
from tests.small import RATE, case, slopes
from tests.test_laws import check_conserved
from tests.test_taildrop import LOAD

MEMORY = 4e6
PORTS = 8
STAR = single_switch(3 * PORTS, rate=RATE, latency=1e-6)


def sharing(model: Model[Any], memory: float = MEMORY, alpha: Any = 1.0, buffer: float = 1e12) -> Model[Any]:
    """The same model with shared memories."""
    one = jnp.ones_like(model.links.capacity)
    sizes = {"buffer": buffer * one, "memory": memory * one, "alpha": jnp.asarray(alpha) * one}
    queue = SharedBuffer(**(vars(model.queue) | sizes))
    return replace(model, queue=queue, recovery=SelectiveRepeat(*(x * one[0] for x in (2e-5, 2.0, 64.0))))


def overload(ports: int) -> tuple[Problem, Model[Any]]:
    """Two senders at line rate into each of so many ports, for as long as one looks."""
    to = np.repeat(np.arange(PORTS), 2)
    return case(STAR, assemble(np.arange(PORTS, 3 * PORTS), to, np.where(to < ports, 1e9, 0.0)))


DOWN = [link for link in range(STAR.links) if STAR.dst[link] < STAR.hosts]


@pytest.mark.parametrize("alpha", [0.125, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_ports_settle_at_equal_parts(alpha: float, n: int) -> None:
    """Q = alpha B / (1 + alpha n), with no oscillation at alpha n above 1; B/2, B/3 and B/9 at alpha = 1."""
    problem, model = overload(n)
    frames = simulate(problem, sharing(model, alpha=alpha), steps=300, every=1).frames
    queue = np.sort(np.asarray(frames.peak[-50:, DOWN]), axis=1)[:, ::-1]
    want = alpha * MEMORY / (1 + alpha * n)
    np.testing.assert_allclose(queue[:, :n], want, rtol=1e-4)
    assert (queue[:, n:] == 0).all()
    assert frames.dropped[-50:, DOWN].sum() == pytest.approx(50 * n * RATE * float(problem.dt), rel=1e-3)


def test_unequal_parts_and_a_bound_of_their_own() -> None:
    """alpha F each for unequal alphas; a port at its own bound leaves the rest to the others."""
    problem, model = overload(3)
    alpha = np.ones(STAR.links)
    alpha[DOWN[:3]] = [0.5, 1.0, 2.0]
    queue = simulate(problem, sharing(model, alpha=alpha), steps=300).frames.peak[-1, jnp.asarray(DOWN[:3])]
    np.testing.assert_allclose(queue, np.array([0.5, 1.0, 2.0]) * MEMORY / 4.5, rtol=1e-3)
    queue = simulate(problem, sharing(model, alpha=alpha, buffer=6e5), steps=300).frames.peak[-1, jnp.asarray(DOWN[:3])]
    assert queue.max() == pytest.approx(6e5, rel=1e-5)


def test_each_switch_has_a_memory_of_its_own() -> None:
    """Two leaves, one port in need at each: both may hold half of a memory, not a third."""
    fabric = leaf_spine(2, 1, 3, rate=RATE, latency=1e-6)
    problem, model = case(fabric, assemble([1, 2, 4, 5], [0, 0, 3, 3], 1e9))
    peak = simulate(problem, sharing(model, memory=6e5), steps=100).frames.peak[-1]
    busy = np.flatnonzero(np.asarray(peak))
    assert [fabric.link_name(int(link)) for link in busy] == ["leaf0->h0", "leaf1->h3"]
    np.testing.assert_allclose(peak[busy], 3e5, rtol=1e-4)


def test_no_byte_is_forgotten() -> None:
    assert check_conserved(LOAD, "float32", 1e-6, lambda model: sharing(model, memory=5e4)) > 10


def total(problem: Problem, model: Model[Any]) -> Array:
    """Of all completions, in us."""
    return simulate(problem, model, steps=80, every=20).completion.sum() * 1e6


LEAVES: dict[str, Callable[[Any], Any]] = {"memory": lambda m: m.queue.memory, "alpha": lambda m: m.queue.alpha}


def test_gradients_and_sweeps() -> None:
    """Slopes by memory and alpha are central differences, all from one sweep."""
    with jax.enable_x64(True):
        fabric = single_switch(6, rate=RATE, latency=1e-6)
        flows = assemble([2, 3, 4, 5], [0, 0, 1, 1], [3e5, 2.6e5, 2.2e5, 1.7e5], start=[0.0, 0.3e-6, 0.7e-6, 1e-6])
        problem, model = case(fabric, flows, dtype="float64", window=2.3e5)
        model = sharing(model, memory=1.03e5, alpha=0.83)
        values, found = slopes(total, problem, model, LEAVES)
    assert np.isfinite(values).all()
    for leaf, (got, want) in found.items():
        assert abs(want) > 0.1, leaf
        assert got == pytest.approx(want, rel=1e-4), leaf


def test_in_a_scenario() -> None:
    text: dict[str, Any] = {
        "fabric": {"kind": "single_switch", "hosts": 4, "rate": "400 Gbps", "latency": "1 us"},
        "traffic": [{"kind": "incast", "senders": 3, "size": "1 MB"}],
        "queue": {"kind": "shared", "memory": "2 MB", "alpha": 0.5},
    }
    model = compile_scenario(load(text))[1]
    assert isinstance(model.queue, SharedBuffer)
    assert np.unique(model.queue.memory) == pytest.approx([2e6])
    assert np.unique(model.queue.alpha) == pytest.approx([0.5])
    assert isinstance(model.recovery, SelectiveRepeat)
    derived = compile_scenario(load(text, {"queue.memory": "auto"}))[1].queue.memory
    bdp = load(text).network().baseline.bdp
    assert float(derived.max()) == pytest.approx(4 * bdp, rel=0.1)
