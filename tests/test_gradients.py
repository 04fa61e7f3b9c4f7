"""Gradients of completion times by every parameter, against central differences in float64."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.port import inject
from fabsim.engine.problem import Problem
from fabsim.engine.setup import prepare
from fabsim.engine.simulate import begin, simulate
from fabsim.engine.trailing import parts_of
from fabsim.models.ideal import Ideal
from fabsim.models.model import Model
from fabsim.models.quotient import quotient
from fabsim.topology import Change, Fabric, degrade, leaf_spine, single_switch
from fabsim.workload import assemble, merge, ring_coupled
from tests.small import RATE, case, wire

STEPS = 60


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """float64, for the tests of this file only."""
    with jax.enable_x64(True):
        yield


@functools.cache
def slope(checkpoint: bool = True) -> Callable[[Problem, Model[Any]], tuple[jax.Array, Model[Any]]]:
    """The sum of all completions, in us, and its gradient; compiled once for each shape."""

    def total(problem: Problem, model: Model[Any]) -> jax.Array:
        return simulate(problem, model, steps=STEPS, every=20, checkpoint=checkpoint).completion.sum() * 1e6

    return jax.jit(
        jax.value_and_grad(total, argnums=1), compiler_options={"xla_backend_optimization_level": 0}
    )  # half the time to compile


def busy(dead: bool = False) -> tuple[Problem, Model[Any]]:
    """Five flows over two spines of unequal speed, with trims and a window, at no special point."""
    fabric = degrade(leaf_spine(2, 2, 2, rate=RATE, latency=1.03e-6), [Change("leaf0->spine1", speed=0.61)])
    if dead:
        fabric = degrade(fabric, [Change("spine1->leaf0", speed=0)])
    flows = assemble([0, 1, 2, 3, 0], [3, 3, 1, 0, 2], [4e5, 5.1e5, 3e5, 2.3e5, 1e5], start=[0, 0.3e-6, 1e-6, 2e-6, 0])
    problem, model = case(
        fabric, flows, window=3.07e5, buffer=4.03e4, dtype="float64", share_rows=False, dt=1e-6, ring=16
    )
    if not dead:
        uneven = model.links.capacity * jnp.asarray(np.random.default_rng(5).uniform(0.97, 1.03, fabric.links))
        model = replace(model, links=replace(model.links, capacity=uneven))  # else lanes tie for the last byte
        rows = np.array([[0.63, 0.37], [0.41, 0.59], [0.55, 0.45], [0.48, 0.52], [0.7, 0.3]])
        model = replace(model, split=replace(model.split, weight=jnp.asarray(rows)))
    return problem, model


LEAVES: dict[str, Callable[[Any], Any]] = {
    "capacity": lambda m: m.links.capacity,
    "latency": lambda m: m.links.latency,
    "buffer": lambda m: m.queue.buffer,
    "window": lambda m: m.transport.window,
    "split": lambda m: m.split.weight,
}


def along(model: Model[Any], name: str, seed: int = 0) -> Model[Any]:
    """A direction: random changes of one leaf (relative), zero elsewhere; splits keep their sum."""
    rng = np.random.default_rng(seed)
    leaf = LEAVES[name](model)
    way = np.asarray(leaf) * rng.uniform(0.5, 1.5, leaf.shape)
    if name == "split":
        way = (rng.random(leaf.shape[0]) - 0.5)[:, None] * np.array([1.0, -1.0])
    zeros = jax.tree.map(jnp.zeros_like, model)
    return jax.tree.map(lambda z, x: jnp.asarray(way) if x is leaf else z, zeros, model)


def differences(problem: Problem, model: Model[Any], way: Model[Any], h: float) -> float:
    """The slope along a direction, by central differences."""
    ends = [slope()(problem, jax.tree.map(lambda x, y: x + sign * h * y, model, way))[0] for sign in (1, -1)]  # noqa: B023
    return float(ends[0] - ends[1]) / (2 * h)


def check(problem: Problem, model: Model[Any], name: str, seed: int, *, least: float, h: float = 1e-7) -> None:
    """The gradient along a random direction of one leaf is the central difference, and not small."""
    _, gradient = slope()(problem, model)
    way = along(model, name, seed)
    inner = sum(float(jnp.vdot(g, w)) for g, w in zip(jax.tree.leaves(gradient), jax.tree.leaves(way), strict=True))
    assert abs(inner) > least
    assert inner == pytest.approx(differences(problem, model, way, h), rel=1e-5)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", sorted(LEAVES))
def test_gradient_of_a_busy_fabric(name: str, seed: int) -> None:
    check(*busy(), name, seed, least=0.03)


def test_the_gradient_is_a_model_and_finite() -> None:
    problem, model = busy()
    value, gradient = slope()(problem, model)
    assert np.isfinite(value)
    assert isinstance(gradient, Model)
    assert jax.tree.structure(gradient) == jax.tree.structure(model)
    for leaf in jax.tree.leaves(gradient):
        assert np.isfinite(leaf).all()


def test_a_dead_link_spoils_no_gradient() -> None:
    problem, model = busy(dead=True)
    value, gradient = slope()(problem, model)
    assert np.isfinite(value)
    for leaf in jax.tree.leaves(gradient):
        assert np.isfinite(leaf).all()


def test_checkpoints_change_nothing() -> None:
    problem, model = busy()
    pairs = zip(
        jax.tree.leaves(slope(True)(problem, model)), jax.tree.leaves(slope(False)(problem, model)), strict=True
    )
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-18)


def kept(jaxpr: Any, length: int) -> list[jax.ShapeDtypeStruct]:
    """What each round of the loops of so many rounds hands to the outside: of each the one with most bytes."""
    found: list[jax.ShapeDtypeStruct] = []
    for eqn in jaxpr.eqns:
        several = [getattr(inner, "jaxpr", inner) for inner in eqn.params.values() if hasattr(inner, "eqns")]
        options = [kept(inner, length) for inner in several]
        if eqn.primitive.name == "scan" and eqn.params["length"] == length:
            each = [var.aval for var in eqn.outvars[parts_of(eqn)[1] :]]
            options.append([jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in each])
        found = max([found, *options], key=size)
    return found


def size(arrays: list[jax.ShapeDtypeStruct]) -> int:
    """Bytes."""
    return sum(x.size * x.dtype.itemsize for x in arrays)


def kept_of_a_step(problem: Problem, model: Model[Any]) -> list[jax.ShapeDtypeStruct]:
    """What a gradient without checkpoints keeps of each step."""

    def last(model: Model[Any]) -> jax.Array:
        return simulate(problem, model, steps=STEPS, every=20, checkpoint=False).completion.max()

    return kept(jax.make_jaxpr(jax.grad(last))(model).jaxpr, 20)


def test_a_gradient_keeps_less_of_a_step_than_its_state() -> None:
    """Without checkpoints. What is wide and cheap is made again: cond, cuts and shares of every port and lane."""
    problem, model = busy()
    state = sum(x.nbytes for x in jax.tree.leaves(begin(problem, model)))
    assert 0.3 * state < size(kept_of_a_step(problem, model)) < state


def test_a_gradient_keeps_no_ring_of_a_sprayed_step() -> None:
    """Neither of feedback nor of the queues that last packets met; and not of what is trimmed, which passes by."""
    problem, model = busy()
    problem = replace(problem, ring=23)  # a length that nothing else has
    assert model.split.weight.shape[1] > 1
    shapes = [x.shape for x in kept_of_a_step(problem, model)]
    assert not any({23 + more for more in range(5)} & set(shape) for shape in shapes), shapes
    assert begin(problem, model).moving.fabric.shape not in shapes


def coupled() -> tuple[Problem, Model[Any]]:
    """A ring of three flows coupled by grains, one of two as a stream, one host slow, and a chain of two beside."""
    grains = ring_coupled(7, 3 * 2.03e5, groups=[[0, 1, 2]], grain=2.03e5)
    stream = ring_coupled(7, 2 * 3.1e5, groups=[[3, 4]])
    chain = assemble([5, 6], [6, 5], [3e5, 1.7e5], trigger=[-1, 0], need=[0, 1], fires=[0, -1], start=[0, 0.77e-6])
    slow = [Change("h1->leaf0", speed=0.83), Change("h4->leaf0", speed=0.71), Change("h6->leaf0", speed=0.9)]
    fabric = degrade(single_switch(7, rate=RATE, latency=1.03e-6), slow)
    return case(fabric, merge([grains, stream, chain]), window=1.53e5, dtype="float64", dt=1e-6, ring=16)


@pytest.mark.parametrize("name", ["capacity", "latency", "window"])
def test_gradient_through_triggers_and_coupled_flows(name: str) -> None:
    check(*coupled(), name, 0, least=0.01)


def test_gradient_of_the_ideal_law() -> None:
    """By capacity and by its own share of the fair rate."""
    problem, model = busy()
    ideal = replace(model, transport=Ideal(jnp.float64(0.9)))
    check(problem, ideal, "capacity", 0, least=0.1)
    _, gradient = slope()(problem, ideal)
    h = 1e-7
    ends = [slope()(problem, replace(ideal, transport=Ideal(jnp.float64(0.9 + sign * h))))[0] for sign in (1, -1)]
    assert float(gradient.transport.share) == pytest.approx(float(ends[0] - ends[1]) / (2 * h), rel=1e-5)


# Ties

TIED = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)
ON_PATH = ["h0->leaf0", "leaf0->spine0", "spine0->leaf1", "leaf1->h3"]
FULL = float(wire(1.5e6)) / RATE * 1e6
"""us that the flow of `lone` takes at line rate."""
PACKET = 4150 / RATE * 1e6


def lone(fabric: Fabric, start: float = 0.0) -> tuple[float, np.ndarray]:
    """Completion in us, and its derivative by the relative capacity of each link of the path, of a lone flow.

    In the shape of `busy`: the other flows are empty, and of two lanes one is used.
    """
    flows = assemble([0, 1, 2, 3, 0], [3, 3, 1, 0, 2], [1.5e6, 0, 0, 0, 0], start=[start, 0, 0, 0, 0])
    problem, model = case(fabric, flows, buffer=1e9, dtype="float64", share_rows=False, dt=1e-6, ring=16)
    model = replace(model, split=replace(model.split, weight=jnp.asarray([[1.0, 0.0]] * 5)))
    value, gradient = slope()(problem, model)
    names = [fabric.link_name(link) for link in range(fabric.links)]
    path = [names.index(name) for name in ON_PATH]
    return float(value), np.asarray(gradient.links.capacity * model.links.capacity)[path]


def test_of_equal_links_in_a_row_the_last_carries_the_derivative() -> None:
    """Load equals capacity at every link (TIE): the derivative by the last is that of making it slower; the others,
    which are as tight, show no more than the one packet that each may store and forward."""
    value, got = lone(TIED)
    h = 1e-3
    slower, _ = lone(degrade(TIED, [Change(ON_PATH[-1], speed=1 - h)]))
    assert got[3] == pytest.approx((slower - value) / -h, abs=2 * PACKET)
    assert got[3] == pytest.approx(-FULL, abs=2 * PACKET)
    np.testing.assert_allclose(got[:3], 0, atol=2 * PACKET)


def test_all_equal_links_together_have_the_derivative_of_a_slower_fabric() -> None:
    value, got = lone(TIED)
    h = 1e-3
    slower, _ = lone(replace(TIED, capacity=TIED.capacity * (1 - h)))
    assert got.sum() == pytest.approx((slower - value) / -h, rel=3e-3)


def test_the_derivative_does_not_depend_on_where_in_a_step_a_flow_starts() -> None:
    """But for the first step, in which a port is not full, and whose bytes are the NIC's."""
    _, one = lone(TIED)
    for start in (3.37e-6, 3.81e-6):
        _, other = lone(TIED, start=start)
        np.testing.assert_allclose(one, other, atol=1.0)
        assert other.sum() == pytest.approx(one.sum(), rel=1e-6)


# Next to nothing, in float32


@pytest.mark.parametrize("size", [1.0, 1e-12, 1e-22, 1e-30])
def test_a_quotient_of_next_to_nothing_has_its_slopes(size: float) -> None:
    """1 / y and - x / y^2; of the latter JAX has one over the square, which is no number in float32 below 1e-19."""
    x, y = jnp.float32(3 * size), jnp.float32(4 * size)
    value, (by_x, by_y) = jax.jit(jax.value_and_grad(quotient, argnums=(0, 1)))(x, y)
    assert value == x / y
    assert float(by_x) * size == pytest.approx(1 / 4, rel=1e-6)
    assert float(by_y) * size == pytest.approx(-3 / 16, rel=1e-6)


def test_a_flow_with_next_to_nothing_left_has_a_slope() -> None:
    """What is cut of next to nothing is sent again: all of it goes, and has gone after its time at line rate."""
    problem, model = case(single_switch(2, rate=RATE, latency=1e-6), assemble([0], [1], [1e5]))
    s, state = prepare(problem, model), begin(problem, model)
    free, nothing = jnp.full_like(s.size, 10.0), jnp.zeros_like(s.size)

    def sent(credit: jax.Array) -> jax.Array:
        flow = replace(state.flow, credit=credit, until=credit)
        going, when = inject(s, flow, state.ports, free, nothing, nothing)
        return going.sum() + when.sum()

    for left in (1e-3, 1e-22):
        rate = float(s.rate.sum())
        assert float(jax.grad(sent)(jnp.full_like(s.size, left))[0]) == pytest.approx(1 + 1 / rate, rel=1e-5)
