"""The two drivers: equal to the bit, few compilations, and stops that say why; laws written by users."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.flags import RING_SHORT, STEP_LONG
from fabsim.engine.problem import Problem
from fabsim.engine.run import go_on, run
from fabsim.engine.simulate import Trace, begin, keep_going, simulate
from fabsim.errors import InputError, Stopped
from fabsim.models.model import Model
from fabsim.models.protocol import Feedback, Sender
from fabsim.topology import leaf_spine
from fabsim.workload import assemble
from tests.small import RATE, case

FABRIC = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)


def made(size: float = 4e5, **options: Any) -> tuple[Problem, Model[Any]]:
    """Five flows, three of them into one host, with trims and a chain; one shape for all tests of this file."""
    wiring = {"trigger": [-1, -1, -1, 0, 1], "need": [0, 0, 0, 1, 1], "fires": [0, 1, -1, -1, -1]} | {
        key: options.pop(key) for key in ("trigger", "need", "fires", "start") if key in options
    }
    flows = assemble([0, 1, 2, 3, 0], [3, 3, 3, 0, 1], size, **wiring)
    return case(FABRIC, flows, share_rows=False, **{"window": 3e5, "buffer": 5e4, "ring": 16} | options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_drivers_agree_to_the_bit(dtype: str) -> None:
    with jax.enable_x64(True) if dtype == "float64" else nullcontext():
        problem, model = made(dtype=dtype)
        pure = jax.device_get(simulate(problem, model, steps=400, every=10))
        host = run(problem, model, until=400e-6, every=10, progress=False)
        ended = run(problem, model, every=10, progress=False)
    assert host.steps == 400
    assert pure.completion.dtype == dtype
    assert np.isfinite(pure.completion).all()
    for one, other in zip(jax.tree.leaves(pure), jax.tree.leaves(host.trace), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(ended.trace.completion, pure.completion)
    kept = len(ended.time)
    assert kept < 40
    np.testing.assert_array_equal(ended.trace.frames.sent, pure.frames.sent[:kept])
    assert not pure.frames.sent[kept:].any()


def test_another_problem_of_the_same_shape_compiles_nothing() -> None:
    run(*made(), progress=False)
    simulate(*made(), steps=400, every=10)
    before = begin._cache_size(), keep_going._cache_size(), go_on._cache_size()  # type: ignore[attr-defined]
    for options in ({"size": 7e5}, {"window": 2e5}, {"buffer": 9e4}, {"start": 2e-6}, {"fires": [1, 0, -1, -1, -1]}):
        run(*made(**options), progress=False)
        simulate(*made(**options), steps=400, every=10)
    assert before == (begin._cache_size(), keep_going._cache_size(), go_on._cache_size())  # type: ignore[attr-defined]


def test_a_deadlock_names_who_waits_for_whom() -> None:
    """Flow 4 waits for a trigger that nobody fires, flow 5 for a second completion that never comes."""
    with pytest.raises(Stopped) as stop:
        run(*made(trigger=[-1, -1, -1, 1, 0], need=[0, 0, 0, 1, 2], fires=[0, -1, -1, -1, -1]), progress=False)
    text = str(stop.value)
    assert "no progress" in text
    assert "flow 4 waits for completion 1 of no flow at all (0 seen)" in text
    assert "flow 5 waits for completion 2 of 1 (1 seen)" in text
    assert "\n" not in text


def test_a_circle_of_flows_is_a_deadlock() -> None:
    with pytest.raises(Stopped, match=r"flow 4 waits for completion 1 of 5 .*flow 5 waits for completion 1 of 4"):
        run(*made(trigger=[-1, -1, -1, 0, 1], need=[0, 0, 0, 1, 1], fires=[-1, -1, -1, 1, 0]), progress=False)


def test_a_window_of_nothing_is_no_progress() -> None:
    with pytest.raises(Stopped, match=r"no progress at .* us: .*flows 1, 2, 3"):
        run(*made(window=0.0), progress=False)


def test_a_late_start_is_no_deadlock() -> None:
    """Nothing moves for ten chunks, and then it goes on."""
    late = run(*made(start=[0, 0, 0, 2e-3, 0]), progress=False).trace
    assert late.start[3] == pytest.approx(late.completion[0] + 2e-3, rel=1e-6)
    assert np.isfinite(late.completion).all()


def test_not_a_number_names_time_and_place() -> None:
    problem, model = made()
    buffer = model.queue.buffer.at[7].set(jnp.nan)
    with pytest.raises(Stopped, match=r"not a number before 200\.000 us, first in the queue of link 7"):
        run(problem, replace(model, queue=replace(model.queue, buffer=buffer)), progress=False)
    with pytest.raises(Stopped, match=r"not a number before 200\.000 us, first (in the queue of link|at flow) \d"):
        run(*made(window=float("nan")), progress=False)


def test_the_horizon_counts_unfinished_flows() -> None:
    with pytest.raises(Stopped, match=r"2 of 5 flows are unfinished at the horizon of 0.0004 s"):
        run(*made(start=[0, 0, 0, 1e-3, 1e-3]), horizon=400e-6, progress=False)


def test_latencies_must_fit_the_problem() -> None:
    """A model may have other latencies than the problem was built for; not longer than its memory, nor too short."""
    problem, model = made()
    longer = replace(model, links=replace(model.links, latency=model.links.latency * 10))
    with pytest.raises(Stopped, match=r"longer than the problem was built for; build it with a larger ring"):
        run(problem, longer, progress=False)
    assert int(simulate(problem, longer, steps=400, every=10).flags) == RING_SHORT
    shorter = replace(model, links=replace(model.links, latency=model.links.latency * 0.1))
    with pytest.raises(Stopped, match=r"shorter than one step a link; build the problem with a smaller dt"):
        run(problem, shorter, progress=False)
    assert int(simulate(problem, shorter, steps=400, every=10).flags) == STEP_LONG
    with pytest.raises(InputError, match=r"dt: 2 us is longer than this fabric allows; 1.0415 us or less would do"):
        made(dt=2e-6)


def test_steps_and_frames_are_whole_and_some() -> None:
    wrong: list[Any] = [0, -3, 40.0, None, "40"]
    for count in wrong:
        with pytest.raises(InputError, match=f"^steps: {count} given; a whole number of 1 or more would do"):
            simulate(*made(), steps=count)
        with pytest.raises(InputError, match=f"^every: {count} given; a whole number of 1 or more would do"):
            simulate(*made(), steps=40, every=count)
    few = simulate(*made(), steps=np.int64(10))
    assert np.isinf(few.completion).all()
    assert int(few.flags) == 0


def test_numbers_wider_than_the_problem_are_named() -> None:
    """After JAX was switched to 64 bits; inside of jit, grad and vmap, too. Narrower ones and plain numbers do."""
    problem, model = made()
    with jax.enable_x64(True):
        wide = jnp.asarray(np.asarray(model.split.weight), "float64")

        def last(weight: jax.Array) -> jax.Array:
            return simulate(problem, replace(model, split=replace(model.split, weight=weight)), steps=40).completion[0]

        for see in (last, jax.jit(last), jax.grad(last), lambda weight: jax.vmap(last)(weight[None])):
            with pytest.raises(
                InputError, match=r"^model.split.weight: is float64, and the problem is float32; .astyp"
            ):
                see(wide)
        assert last(wide.astype("float32")).dtype == "float32"
        plain = replace(model, queue=replace(model.queue, ecn_max=1.0))
        assert simulate(problem, plain, steps=40).completion.dtype == "float32"
        double, _ = made(dtype="float64")
        assert simulate(double, model, steps=40).completion.dtype == "float64"


def test_until_a_time_gives_what_is_not_done_as_inf() -> None:
    host = run(*made(start=[0, 0, 0, 1e-3, 0]), until=200e-6, progress=False)
    assert np.isinf(host.trace.completion[3])
    assert np.isinf(host.trace.start[3])
    assert np.isfinite(host.trace.completion[:3]).all()
    assert host.time[-1] == pytest.approx(200e-6)


# A law that a user writes


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Dctcp:
    """A window that shrinks by half the marked share, averaged with `gain`, and grows by a packet a round trip."""

    signals: ClassVar[bool] = True
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    gain: jax.Array
    window: jax.Array

    def init(self, sender: Sender) -> tuple[jax.Array, jax.Array, jax.Array]:
        full = jnp.broadcast_to(self.window / sender.unit, sender.rate.shape)
        return full, jnp.zeros_like(full), jnp.zeros_like(full)

    def offer(self, state: tuple[jax.Array, jax.Array, jax.Array], sender: Sender) -> jax.Array:
        return jnp.maximum(state[0] - sender.in_flight, 0.0)

    def step(self, state: Any, feedback: Feedback, sender: Sender) -> tuple[jax.Array, jax.Array, jax.Array]:
        window, share, waited = state
        some = feedback.acked > 0
        seen = jnp.where(some, feedback.marked / jnp.where(some, feedback.acked, 1.0), 0.0)
        round_trips = feedback.acked / window
        share = share + self.gain * round_trips * (seen - share)
        window = window + sender.packet * round_trips - 0.5 * share * feedback.marked
        return jnp.maximum(window, sender.packet), share, waited + feedback.delay * feedback.acked


LONG = assemble([0, 1, 2, 3, 0], [3, 3, 3, 0, 1], [3e6, 3e6, 3e6, 1e6, 1e6])


def by_gain(gain: Any) -> Trace:
    """The trace of a run under the user's law."""
    law = Dctcp(gain, jnp.asarray(3e5, gain.dtype))
    made = case(
        FABRIC, LONG, transport=law, buffer=2e5, share_rows=False, ring=16, ecn=(0.1, 0.5), dtype=str(gain.dtype)
    )
    return simulate(*made, steps=260, every=20)


@pytest.fixture(scope="module")
def swept() -> tuple[np.ndarray, Trace]:
    """The user's law for three gains at once."""
    gains = np.array([0.01, 0.1, 0.7], "float32")
    return gains, jax.device_get(jax.jit(jax.vmap(by_gain))(jnp.asarray(gains)))


def test_a_users_law_holds_the_queue_between_its_thresholds(swept: tuple[np.ndarray, Trace]) -> None:
    """Three senders under the law: the port stays busy with a queue near the ramp, and loses little."""
    trace = jax.tree.map(lambda x: x[1], swept[1])
    port = int(np.argmax(trace.frames.sent.sum(0)))
    middle, settled = slice(2, 8), slice(5, 8)
    assert FABRIC.link_name(port) == "leaf1->h3"
    np.testing.assert_allclose(trace.frames.sent[middle, port], RATE * 20e-6, rtol=0.02)
    assert (trace.frames.queue[settled, port] > 0.1 * 2e5).all()
    assert (trace.frames.queue[settled, port] < 0.5 * 2e5).all()
    assert trace.frames.marked[:, port].sum() > 1e5
    waited = float(trace.state.law[2][:3].sum()) * 1e-6 * RATE * 1e-6
    stood = float(trace.frames.queue[:, port].sum()) * 20e-6
    assert waited == pytest.approx(stood, rel=0.05)  # delays, byte by byte, are the queue over time (Little)


def test_a_users_law_sweeps_over_its_gain(swept: tuple[np.ndarray, Trace]) -> None:
    gains, together = swept
    assert np.isfinite(together.completion).all()
    assert np.ptp(together.completion[:, 0]) > 1e-7
    alone = by_gain(jnp.asarray(gains[2]))
    np.testing.assert_allclose(together.completion[2], alone.completion, rtol=1e-4)


def test_a_users_law_differentiates_by_its_gain() -> None:
    with jax.enable_x64(True):
        last = jax.jit(
            jax.value_and_grad(lambda gain: by_gain(gain).completion[:3].sum() * 1e6),
            compiler_options={"xla_backend_optimization_level": 0},  # half the time to compile
        )
        _, slope = last(jnp.float64(0.1))
        ends = [last(jnp.float64(0.1 + h))[0] for h in (1e-7, -1e-7)]
    assert abs(float(slope)) > 1e-3
    assert float(slope) == pytest.approx(float(ends[0] - ends[1]) / 2e-7, rel=1e-4)
