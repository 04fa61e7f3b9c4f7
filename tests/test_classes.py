"""Classes of traffic: strict priority, and shares by weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabsim.engine.problem import Problem
from fabsim.engine.setup import prepare
from fabsim.engine.simulate import simulate
from fabsim.errors import InputError
from fabsim.models.classes import Classes
from fabsim.models.ideal import Ideal
from fabsim.models.model import Model
from fabsim.models.protocol import Feedback, Sender
from fabsim.topology import Change, Fabric, degrade, leaf_spine, single_switch
from fabsim.typing import Array
from fabsim.workload import Flows, assemble
from tests.small import RATE, case, slopes, wire
from tests.test_laws import in_network, made, unheard, walk
from tests.test_pfc import pausing
from tests.test_shared_buffer import sharing

STAR = single_switch(6, rate=RATE, latency=1e-6)
LAST = 2e-6 + 4150 / RATE
"""Seconds from a byte's leaving its sender to the receiver behind an idle switch, and a packet stored on the way."""


def classed(
    fabric: Fabric,
    flows: Flows,
    own: Sequence[int],
    priority: Sequence[int],
    weight: Sequence[float] = (),
    **given: Any,
) -> tuple[Problem, Model[Any]]:
    """Problem and model with classes: own is the class of each flow; `given` as in `case`."""
    problem, model = case(fabric, flows, traffic_class=np.array(own), classes=len(priority), **given)
    return problem, with_classes(model, priority, weight or np.ones(len(priority)))


def with_classes(model: Model[Any], priority: Sequence[int], weight: Any, **buckets: Any) -> Model[Any]:
    """The model with the same queues for each class."""
    one = model.links.capacity[0] * 0 + 1
    queue = jax.tree.map(lambda x: jnp.tile(x, len(priority)) if jnp.ndim(x) else x, model.queue)
    classes = Classes(jnp.asarray(weight) * one, tuple(priority), **buckets)
    return replace(model, queue=queue, classes=classes)


def port(fabric: Fabric, name: str) -> int:
    """The number of a link."""
    return [fabric.link_name(link) for link in range(fabric.links)].index(name)


# Strict priority


TREE = leaf_spine(2, 2, 4, rate=RATE, latency=1e-6)
HIGH = [(0, 5, 1e6, 0.0), (1, 5, 7e5, 3e-6), (4, 1, 2e6, 1e-6), (2, 6, 4e5, 9.3e-6), (0, 3, 3e5, 20e-6)]
LOW = [(0, 5, 3e6, 0.0), (2, 5, 3e6, 0.0), (4, 1, 2e6, 5e-6), (2, 6, 2e6, 0.0), (7, 6, 3e6, 0.0), (3, 1, 1e6, 2e-6)]


def flows_of(rows: list[tuple[int, int, float, float]]) -> Flows:
    """From source, receiver, size and start."""
    src, dst, size, start = zip(*rows, strict=True)
    return assemble(list(src), list(dst), list(size), start=list(start))


def test_what_goes_first_is_not_touched() -> None:
    """With and without other classes behind it, over shared senders, uplinks and receivers, to rounding; and these wait
    for it, while no port rests."""
    own = [0] * len(HIGH) + [1] * len(LOW)
    with jax.enable_x64(True):
        both = simulate(*classed(TREE, flows_of(HIGH + LOW), own, (0, 1), dtype="float64"), steps=400)
        alone = simulate(*case(TREE, flows_of(HIGH), dtype="float64"), steps=400)
        low = simulate(*case(TREE, flows_of(LOW), dtype="float64"), steps=400)
    assert np.isfinite(both.completion).all()
    first, second = np.split(np.asarray(both.completion), [len(HIGH)])
    np.testing.assert_allclose(first, np.asarray(alone.completion), rtol=1e-11)
    assert (second >= np.asarray(low.completion) - 1e-12).all()
    assert (second > np.asarray(low.completion) * 1.1).sum() >= 4


def test_the_rest_is_for_the_others() -> None:
    """Two classes behind a first one share what it leaves, which is nothing until it has gone, 3 to 1."""
    size = 4e6
    flows = assemble([1, 2, 3], [0, 0, 0], size)
    done = simulate(*classed(STAR, flows, [0, 1, 2], (4, 7, 7), (1, 1, 3)), steps=300).completion
    np.testing.assert_allclose(done, LAST + wire(size) / RATE * np.array([1, 3, 1 + 4 / 3]), rtol=1e-5)


def test_the_ideal_law_knows_who_goes_first() -> None:
    """A first class takes a receiver's port; one behind it waits without a queue, and the third has what that one
    leaves at their common sender."""
    flows = assemble([1, 2, 2], [0, 0, 3], 2e6)
    problem, model = classed(STAR, flows, [0, 1, 2], (0, 1, 2), transport=Ideal(jnp.float32(1.0)))
    trace = simulate(problem, model, steps=200)
    time = wire(2e6) / RATE
    np.testing.assert_allclose(trace.completion - LAST, np.array([1, 2, 1]) * time, rtol=0.03)
    assert float(trace.frames.peak.max()) < 2 * RATE * float(problem.dt)


# Weights


@pytest.mark.parametrize("weight", [(3, 1), (1, 1), (0.2, 0.7)])
def test_shares_under_backlog(weight: tuple[float, float]) -> None:
    """w_i / sum w of the port's rate, however many flows and whatever backlog a class has; all of it for one alone."""
    flows = assemble([1, 2, 3, 4], [0] * 4, [1e7, 1e7, 1e7, 3e6])
    problem, model = classed(STAR, flows, [0, 1, 1, 1], (0, 0), weight)
    sent = simulate(problem, model, steps=1000, every=10).frames.by_class
    assert sent is not None
    sent = np.asarray(sent.sent)[:, :, port(STAR, "leaf0->h0")] / (RATE * 10 * float(problem.dt))
    share = np.array(weight) / sum(weight)
    np.testing.assert_allclose(sent[1:15], np.tile(share, (14, 1)), rtol=1e-5)
    whole = sent.sum(1)
    busy = int(wire(3.3e7) / RATE / (10 * float(problem.dt)))
    np.testing.assert_allclose(whole[1 : busy - 1], 1.0, rtol=1e-5)
    alone = (sent[: busy - 1] < 1e-6).any(1)
    assert alone.sum() > 4
    np.testing.assert_allclose(sent[: busy - 1][alone].max(1), 1.0, rtol=1e-5)


def test_processor_sharing_with_staggered_starts() -> None:
    """Generalised processor sharing (Parekh and Gallager, 1993) in closed form: a of weight 2 alone until b of weight 1
    comes at t, then 2/3 and 1/3 until a has gone, then b alone; over one sender's port, and into one receiver's. What
    begins within a step has its bytes of that step at once: less than half a step more for a."""
    a, b = 2.9e6, 2.3e6
    for t, apart in ((14e-6, 1e-3), (13.7e-6, 0.5)):
        first, second = t + (wire(a) / RATE - t) * 1.5, (wire(a) + wire(b)) / RATE
        for ends in (([1, 1], [0, 2]), ([1, 2], [0, 0])):
            problem, model = classed(STAR, assemble(*ends, [a, b], start=[0.0, t]), [0, 1], (0, 0), (2, 1))
            done = np.asarray(simulate(problem, model, steps=200).completion)
            np.testing.assert_allclose(done - LAST, [first, second], atol=apart * float(problem.dt))


def brute(weight: np.ndarray, whole: float, demand: np.ndarray) -> np.ndarray:
    """Water filling by bisection of the level."""
    low, high = 0.0, 1e6
    for _ in range(200):
        level = 0.5 * (low + high)
        low, high = (level, high) if np.minimum(demand, weight * level).sum() < whole else (low, level)
    return np.minimum(demand, weight * low)


NUMBERS = st.lists(st.floats(0.01, 10.0), min_size=4, max_size=4)


@settings(max_examples=60, deadline=None)
@given(weight=NUMBERS, demand=NUMBERS, whole=st.floats(0.1, 30.0), single=st.booleans())
def test_water_filling(weight: list[float], demand: list[float], whole: float, single: bool) -> None:
    """What classes are given of a port is what bisection finds, level by level, and nothing is left that one wants."""
    levels = (0, 0, 0, 0) if single else (1, 0, 1, 0)
    w, d = np.array(weight), np.array(demand)
    with jax.enable_x64(True):
        room = Classes(jnp.array(w), levels).rooms(jnp.array([whole]), jnp.full((4, 1), 1e9), jnp.array(d)[:, None])
    got = np.minimum(np.asarray(room)[:, 0], d)
    want, left = np.zeros(4), whole
    for level in sorted(set(levels)):
        mine = np.array(levels) == level
        want[mine] = brute(w[mine], left, d[mine])
        left -= want[mine].sum()
    np.testing.assert_allclose(got, want, atol=1e-6)
    assert got.sum() == pytest.approx(min(whole, d.sum()))


# Queues


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Listener:
    """Sends at a fixed rate (B/s), and adds up bytes times the delay that came back: a law of the tests."""

    signals = True
    needs_fair = False
    telemetry = False
    rate: Array

    def init(self, sender: Sender) -> Array:
        return jnp.zeros_like(sender.rtt)

    def offer(self, state: Array, sender: Sender) -> Array:
        return jnp.minimum(self.rate * sender.dt / sender.unit, sender.rate)

    def step(self, state: Array, feedback: Feedback, sender: Sender) -> Array:
        return state + feedback.acked * feedback.delay


def test_littles_law_by_class() -> None:
    """The integral of each class's queue is what its bytes waited, as senders hear of it: over a busy period, in which
    a class is overtaken, shares with another and drains."""
    rate = jnp.array([0.55, 0.5, 0.5]) * RATE
    flows = assemble([1, 2, 3], [0, 0, 0], [1.5e6, 2e6, 1e6], start=[2e-5, 0.0, 1e-5])
    problem, model = classed(
        STAR, flows, [0, 1, 2], (0, 1, 1), (1, 1, 3), transport=Listener(jnp.asarray(rate, "float32")), dt=2.5e-7
    )
    trace = simulate(problem, model, steps=1000, every=1)
    assert np.isfinite(trace.completion).all()
    assert trace.frames.by_class is not None
    held = np.asarray(trace.frames.by_class.queue)[:, :, port(STAR, "leaf0->h0")].sum(0)
    waited = np.asarray(trace.state.law) * float(problem.unit)
    assert held[0] < 1e-3 * held[1]
    np.testing.assert_allclose(waited[1:], held[1:], rtol=0.01)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-12)])
def test_no_byte_is_forgotten(dtype: str, tolerance: float) -> None:
    """Sent = delivered + waiting + on the way + trimmed, for each flow of three classes on a fabric with faults."""
    load: dict[str, Any] = {
        "kind": "two tiers", "to": [3, 1, 3, 3, 1, 0], "size": [2.5e6, 4e5, 2.5e6, 4e5, 2.5e6, 4e5],
        "start": [0.0, 1e-6, 3e-6, 0.0, 0.0, 2e-5], "dead": True, "slow": 0.5, "slow_host": 1.0, "buffer": 2e4,
        "window": 4e5,
    }  # fmt: skip
    with jax.enable_x64(dtype == "float64"):
        fabric = made(load, dtype)[2]
        flows = assemble([0, 0, 1, 2, 3, 3], load["to"], load["size"], start=load["start"])
        problem, model = classed(
            fabric, flows, [0, 1, 2, 1, 0, 2], (0, 1, 1), (1, 1, 3),
            window=4e5, buffer=2e4, dtype=dtype, share_rows=False, ring=64,
        )  # fmt: skip
        s = jax.jit(prepare)(problem, model)
        delay, buffer = np.asarray(s.beyond_mean + s.back), np.asarray(s.queue.buffer)[:-1]
        arrived, most = np.zeros(fabric.links), 0.0
        for state, seen in walk(problem, model, 6):
            data, trimmed = in_network(state)
            back = unheard(state, delay)
            scale = float(np.sum(load["size"])) / float(problem.unit)
            np.testing.assert_allclose(state.flow.in_flight, data + trimmed + back[:2].sum(0), atol=tolerance * scale)
            np.testing.assert_allclose(state.flow.lost, trimmed + back[1], atol=tolerance * scale)
            arrived += seen.sent.sum(0)
            size = np.asarray(problem.size, float) / float(problem.unit)
            delivered = size - state.flow.held - state.flow.credit - data - trimmed - back[1]
            off = delivered.sum() - arrived[fabric.dst < fabric.hosts].sum()
            assert abs(off) <= tolerance * scale
            assert (seen.by_class.queue <= buffer.reshape(3, -1) * (1 + 1e-6)).all()
            np.testing.assert_allclose(seen.by_class.sent.sum(1), seen.sent, rtol=1e-6)
            most = max(most, float(seen.dropped.max()))
        assert most > 0
        assert (state.flow.completion < 1e9).all()


def test_a_pause_is_for_a_class() -> None:
    """Two to one in the second class pause the uplink of leaf1 for that class; a victim over the same link is held up
    if it is of that class, and goes as if alone if it is of the first."""
    fabric = leaf_spine(2, 1, 3, rate=RATE, latency=1e-6)
    flows = assemble([3, 4, 1, 5], [0, 0, 0, 2], [8e6, 8e6, 8e6, 5e5], start=[0.0, 0.0, 0.0, 5e-5])

    def victim(own: int) -> float:
        problem, model = case(fabric, flows, traffic_class=np.array([1, 1, 1, own]), classes=2, dt=2e-7, ring=64)
        trace = simulate(problem, with_classes(pausing(model), (0, 1), (1, 1)), steps=1200)
        assert trace.frames.paused is not None
        assert trace.frames.paused[:, port(fabric, "spine0->leaf0")].sum() > 1e-5
        return float(trace.completion[3] - 5e-5)

    alone = wire(5e5) / RATE + 4e-6 + 3 * 4150 / RATE
    assert victim(0) == pytest.approx(alone, rel=1e-4)
    assert victim(1) > 2 * alone


def test_a_shared_memory_has_a_threshold_for_each_class() -> None:
    """Two classes that overflow at one port settle at alpha B / (1 + 2 alpha) each, as two ports would."""
    flows = assemble([1, 2, 3, 4], 0, 1e9)
    problem, model = case(STAR, flows, traffic_class=np.array([0, 1, 0, 1]), classes=2)
    model = with_classes(sharing(model, memory=1e6, alpha=0.5), (0, 0), (3, 1))
    by_class = simulate(problem, model, steps=100).frames.by_class
    assert by_class is not None
    np.testing.assert_allclose(by_class.peak[-1, :, port(STAR, "leaf0->h0")], 0.25e6, rtol=1e-3)


# Sweeps and slopes


def test_slopes_by_weight_and_buffer() -> None:
    """Against differences, all from one sweep."""
    with jax.enable_x64(True):
        flows = assemble([2, 3, 4, 4], [0, 0, 0, 1], [3e5, 2.6e5, 2.2e5, 1.7e5], start=[0.0, 0.3e-6, 0.7e-6, 1e-6])
        problem, model = classed(STAR, flows, [0, 1, 1, 0], (0, 0), (2.0, 1.3), buffer=3e4, window=2e5, dtype="float64")

        def total(problem: Problem, model: Model[Any]) -> Array:
            return simulate(problem, model, steps=80, every=20).completion.sum() * 1e6

        values, found = slopes(total, problem, model, {"weight": weights, "buffer": lambda m: m.queue.buffer})
    assert np.isfinite(values).all()
    for leaf, (got, want) in found.items():
        assert got == pytest.approx(want, rel=1e-4, abs=1e-6), leaf
    assert abs(found["buffer"][1]) > 0.1


def weights(model: Model[Any]) -> Array:
    """The weights of a model's classes."""
    assert model.classes is not None
    return model.classes.weight


def test_problem_and_model_must_agree() -> None:
    problem, model = classed(STAR, assemble([1, 2], 0, 1e5), [0, 1], (0, 1))
    with pytest.raises(InputError, match="the problem is built for 2 classes of traffic, the model has 1"):
        simulate(problem, replace(model, classes=None), steps=10)


def test_a_slow_link_and_a_dead_one() -> None:
    """Classes share what a slow link has."""
    fabric = degrade(STAR, [Change("leaf0->h0", speed=0.5)])
    size = 2e6
    done = simulate(*classed(fabric, assemble([1, 2], 0, size), [0, 1], (0, 0), (3, 1)), steps=300).completion
    np.testing.assert_allclose(done, LAST + wire(size) / (0.5 * RATE) * np.array([4 / 3, 2]), rtol=1e-4)


def test_a_wait_in_front_of_a_long_wire() -> None:
    """A class that goes at a tenth of the rate over a wire of 100 us: its last byte waits at its own pace, and is then
    as quick as light. Both begin when the port is empty, so that the shares hold from the first byte on."""
    fabric = leaf_spine(2, 1, 2, rate=RATE, latency=1e-6)
    far = np.array([fabric.link_name(link) == "leaf0->spine0" for link in range(fabric.links)])
    fabric = replace(fabric, latency=np.where(far, 100e-6, fabric.latency))
    size = np.array([1e6, 1e7])
    problem, model = classed(fabric, assemble([0, 1], [2, 3], size), [0, 1], (0, 0), (1, 9))
    assert problem.wires is not None
    done = np.asarray(simulate(problem, model, steps=500).completion)
    want = wire(size) / RATE * np.array([10, 10 / 9]) + 103e-6 + 3 * 4150 / RATE
    both = wire(size.sum()) / RATE + 103e-6 + 3 * 4150 / RATE  # the last to go has had the port for itself
    np.testing.assert_allclose(done, np.minimum(want, both), atol=0.1 * float(problem.dt))
