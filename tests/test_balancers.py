"""Balancers: their points of rest, what they conserve, and that a slow spine is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.engine.problem import Problem
from fabsim.engine.simulate import Trace, begin, finish, keep_going, simulate
from fabsim.engine.state import State
from fabsim.errors import InputError
from fabsim.models.bitmap import Bitmap
from fabsim.models.model import Model
from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import Reps
from fabsim.models.reps_bitmap import RepsBitmap
from fabsim.routing import all_paths, proportional
from fabsim.topology import Change, degrade, leaf_spine
from fabsim.workload import shift
from tests.small import RATE, case

ONE = jnp.asarray(1.0)
PACKET = 1.0 / 12
MIDDLE, PARTS = 50, 5
FABRIC = degrade(
    leaf_spine(2, 4, 2, rate=RATE, latency=1e-6), [Change(link="leaf*->spine0", speed=0.25, buffer=0.25)], seed=1
)
FLOWS = shift(4, 6e6, by=2)


def reps(memory: float = 8.0, echo: float = 1.0) -> Reps:
    """With all clean packets named."""
    return Reps(jnp.asarray(memory), jnp.asarray(echo))


def bitmap(mark: float = 1.0, trim: float = 4.0) -> Bitmap:
    """Over 128 values."""
    return Bitmap(jnp.asarray(mark), jnp.asarray(trim), jnp.asarray(128.0))


def mixed() -> RepsBitmap:
    """The packet simulator's default."""
    return RepsBitmap(ONE, 4 * ONE, 128 * ONE, 8 * ONE, 0.25 * ONE)


def rest(law: Any, marked: np.ndarray, trimmed: np.ndarray, base: np.ndarray, rounds: int = 3000) -> np.ndarray:
    """Where the split of one flow settles if each path marks and trims a fixed part; a third of a unit a step."""
    one = jnp.ones(1)
    sender = Sender(ONE, ONE, one, one, PACKET * one, one, one, jnp.zeros(1, jnp.uint32))
    e, m, n = (jnp.asarray(x)[None] for x in (base, marked, trimmed))

    def step(state: Any, _: None) -> tuple[Any, None]:
        sent = law.split(state, e) / 3
        back = PathFeedback(acked=sent * (1 - n), marked=sent * m, trimmed=sent * n)
        return law.step(state, back, e, sender), None

    state, _ = jax.lax.scan(step, law.init(e, sender), None, length=rounds)
    return np.asarray(law.split(state, e)[0])


EVEN = np.full(4, 0.25, "float32")
MARKED = np.array([0.02, 0.05, 0.1, 0.4], "float32")
NONE = np.zeros(4, "float32")


def test_reps_rests_where_marked_bytes_are_equal() -> None:
    expected = (1 / MARKED) / (1 / MARKED).sum()
    np.testing.assert_allclose(rest(reps(), MARKED, NONE, EVEN), expected, rtol=1e-3)
    uneven = np.array([0.4, 0.3, 0.2, 0.1], "float32")
    expected = (uneven / MARKED) / (uneven / MARKED).sum()
    np.testing.assert_allclose(rest(reps(), MARKED, NONE, uneven), expected, rtol=1e-3)


def test_reps_goes_where_nothing_is_marked() -> None:
    split = rest(reps(), np.array([0.0, 0.1, 0.2, 0.3], "float32"), NONE, EVEN)
    assert split[0] > 0.999


def test_reps_of_which_one_packet_in_four_is_named() -> None:
    weight = 1 / (1 - 0.25 * (1 - MARKED))
    np.testing.assert_allclose(rest(reps(echo=0.25), MARKED, NONE, EVEN), weight / weight.sum(), rtol=1e-3)


def test_bitmap_rests_by_its_penalties() -> None:
    """w ~ e / (1 + p / f), f = sum of e / (1 + p / f): the values that are free."""
    trimmed = np.array([0.0, 0.1, 0.05, 0.0], "float32")
    free = 1.0
    for _ in range(100):
        weight = 1 / (1 + (MARKED + 4 * trimmed) / free)
        free = weight.mean()
    np.testing.assert_allclose(rest(bitmap(), MARKED, trimmed, EVEN), weight / weight.sum(), rtol=2e-3)


def test_bad_values_that_were_used_again_have_their_penalties_one_after_another() -> None:
    """With three packets in flight for each value, of which a path marks all: the first begins a penalty, and of the
    rest those that come later wait for its end. What they add up to is the same."""
    one, law = jnp.ones(1), bitmap()
    sender = Sender(ONE, ONE, one, 6 * one, PACKET * one, one, 3 * 128 * PACKET * one, jnp.zeros(1, jnp.uint32))
    e = jnp.asarray(EVEN)[None]
    sent = e * PACKET
    back = PathFeedback(acked=sent, marked=sent * jnp.asarray([1.0, 0.0, 0.0, 0.0]), trimmed=0 * sent)
    state = law.init(e, sender)
    first = law.step(state, back, e, sender)
    begun = float(first.passed[0, 0, 0, 0])
    assert begun == pytest.approx(0.25 / (0.25 * 128), rel=1e-5)
    for _ in range(200):
        state = law.step(state, back, e, sender)
    share = float(state.bad[0, 0])
    assert share == pytest.approx(1.0, abs=1e-3)
    used = float(3 / (EVEN * np.asarray(jnp.maximum(1 - state.passed.sum((1, 2)), 0.02))[0]).sum())
    then = law.step(state, back, e, sender)
    assert float((then.more - state.more)[0, 0, 0]) < begun * used / (1 + used)
    assert float(state.more[0, 0, 0]) > 0.5


def made(balancer: Any = None, routes: Any = all_paths, ecn: tuple[float, float] = (0.2, 0.8)) -> tuple[Problem, Any]:
    """Half of what four spines can carry, and one of them is slow; buffers and window as packets have them."""
    bdp = 4.4e5
    problem, model = case(FABRIC, FLOWS, routes(FABRIC, FLOWS), window=1.5 * bdp, buffer=bdp * FABRIC.speed, ecn=ecn)
    return problem, replace(model, balancer=balancer)


def run(problem: Problem, model: Model[Any]) -> tuple[Trace, State]:
    """The trace, and the state after MIDDLE steps: one program, part by part."""
    state, parts, middle = begin(problem, model), [], None
    for _ in range(PARTS):
        state, frames = keep_going(problem, model, state, count=MIDDLE, every=1)
        middle = state if middle is None else middle
        parts.append(frames)
    assert middle is not None
    return finish(problem, model, state, jax.tree.map(lambda *x: jnp.concatenate(x), *parts)), middle


def last(trace: Trace) -> float:
    """us."""
    return float(np.asarray(trace.completion).max()) * 1e6


LAWS = {"oblivious": None, "reps": reps(), "bitmap": bitmap(), "mixed": mixed()}


@pytest.fixture(scope="module")
def runs() -> dict[str, tuple[Trace, State]]:
    """Without a balancer, with each, and as switches would choose."""
    return {name: run(*made(law)) for name, law in LAWS.items()} | {"switch": run(*made(None, proportional))}


@pytest.fixture(scope="module")
def traces(runs: dict[str, tuple[Trace, State]]) -> dict[str, Trace]:
    """What came of them."""
    return {name: trace for name, (trace, _) in runs.items()}


def test_a_slow_spine_is_left(traces: dict[str, Trace]) -> None:
    took = {name: last(trace) for name, trace in traces.items()}
    gap = took["oblivious"] - took["switch"]
    for name, part in (("reps", 0.1), ("mixed", 0.4), ("bitmap", 0.45)):
        assert took[name] - took["switch"] < part * gap, took
    trimmed = {name: float(trace.frames.dropped.sum()) for name, trace in traces.items()}
    assert max(trimmed[name] for name in ("reps", "bitmap", "mixed")) < 0.15 * trimmed["oblivious"], trimmed


def test_every_byte_arrives_once(traces: dict[str, Trace]) -> None:
    into = (FABRIC.dst < FABRIC.hosts) & (FABRIC.src >= FABRIC.hosts)
    expected = np.asarray(made()[0].size).sum()
    for name, trace in traces.items():
        assert float(np.asarray(trace.frames.sent)[:, into].sum()) == pytest.approx(expected, rel=1e-5), name


@pytest.mark.parametrize("law", ["reps", "bitmap", "mixed"])
def test_paths_add_up_to_what_the_fluid_has(runs: dict[str, tuple[Trace, State]], law: str) -> None:
    """The last port, lane by lane, is the last port; and shares sum to 1."""
    (problem, model), (_, state) = made(LAWS[law]), runs[law]
    assert state.paths is not None
    assert float(state.waiting.egress[:, 0].sum() + state.moving.egress[:, 0].sum()) > 0
    np.testing.assert_allclose(state.paths.waiting.sum(-1), state.waiting.egress.sum(-1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.paths.moving.sum(-1), state.moving.egress.sum(-1), rtol=1e-4, atol=1e-5)
    ring = np.asarray(state.paths.ring).reshape(problem.ring, 3, -1, problem.flows).sum(2)
    np.testing.assert_allclose(ring[:, :2], np.asarray(state.ring)[:, :2], rtol=1e-4, atol=1e-5)
    assert model.balancer is not None
    split = np.asarray(model.balancer.split(state.balance, model.split.weight))
    np.testing.assert_allclose(split.sum(-1), 1.0, rtol=1e-5)
    assert (split >= 0).all()


def test_a_balancer_that_hears_nothing_is_none_at_all() -> None:
    """Without marks and trims, REPS and bitmap keep the split, and the run is that of no balancer."""
    flat = replace(FABRIC, capacity=np.full(FABRIC.links, RATE), speed=np.ones(FABRIC.links))
    problem, model = case(flat, FLOWS, all_paths(flat, FLOWS), window=3e5, buffer=1e12)
    without, _ = run(problem, model)
    for law in (reps(), bitmap()):
        balanced, _ = run(problem, replace(model, balancer=law))
        np.testing.assert_allclose(balanced.completion, without.completion, rtol=1e-5)


def test_no_balancer_no_trace_of_one() -> None:
    """The program of a model without one carries nothing for it."""
    problem, model = made()
    state = jax.eval_shape(lambda: simulate(problem, model, steps=1, every=1)).state
    assert state.balance is None
    assert state.paths is None
    assert state.waiting.egress.shape[1] == 1  # bytes only: nobody reads marks


def test_what_is_trimmed_by_a_penalty() -> None:
    """The derivative is finite, and that of a difference quotient."""
    problem, model = made(bitmap())

    def trimmed(trim: jax.Array) -> jax.Array:
        """Units in two times MIDDLE steps."""
        own = replace(model, balancer=replace(bitmap(), trim=trim))
        return simulate(problem, own, steps=2 * MIDDLE, every=MIDDLE).frames.dropped.sum() / problem.unit

    quick = {"xla_backend_optimization_level": 0}
    both = jax.jit(lambda trim: jax.value_and_grad(trimmed)(trim), compiler_options=quick)
    _, slope = both(jnp.asarray(4.0))
    high, low = both(jnp.asarray(4.002))[0], both(jnp.asarray(3.998))[0]
    assert float(slope) < 0
    assert float(slope) == pytest.approx(float(high - low) / 0.004, rel=0.02)


SCENARIO = {
    "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4, "rate": "400 Gbps",
               "latency": "1 us", "degraded": [{"link": "leaf*->spine0", "speed": 0.25}]},
    "routing": {"kind": "drawn", "entropies": 64},
    "traffic": [{"kind": "shift", "size": "2 MB", "by": 4}],
    "balancer": {"kind": "bitmap"},
}  # fmt: skip


def test_in_a_scenario() -> None:
    _, model = fabsim.load(SCENARIO).compile()
    law = model.balancer
    assert isinstance(law, Bitmap)
    assert (float(law.mark), float(law.trim), float(law.entropies)) == (1.0, 4.0, 64.0)
    _, model = fabsim.load(SCENARIO, balancer={"kind": "mixed", "echo": 1}).compile()
    assert isinstance(model.balancer, RepsBitmap)
    assert float(model.balancer.echo) == 1.0
    assert fabsim.load(SCENARIO, balancer__kind="oblivious").compile()[1].balancer is None


def test_a_sweep_over_a_penalty() -> None:
    """Penalties are values of one program."""
    sweep = {"grid": {"balancer.mark": [0.5, 1, 4]}, "metrics": ["last_completion"]}
    found = fabsim.sweep(fabsim.load(SCENARIO | {"sweep": sweep}), progress=False)
    values = np.asarray(found["last_completion"], float).reshape(-1)
    alone = fabsim.run(fabsim.load(SCENARIO, balancer__mark=4), progress=False)
    assert values[2] == pytest.approx(alone.completion.max(), rel=1e-4)
    assert len(set(values)) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"routing": {"kind": "ecmp"}}, "has one a flow; give routing: {kind: drawn}"),
        ({"routing": {"kind": "switch_spray"}}, "the switches choose; give routing"),
    ],
)
def test_refused_in_a_sentence(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match="bitmap") as caught:
        fabsim.load(SCENARIO, change).compile()
    assert words in str(caught.value)
