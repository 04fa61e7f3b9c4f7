"""Silent losses: ports that drop, links that lose, and what brings the bytes back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.faults import faults
from fabsim.engine.problem import Problem
from fabsim.engine.run import run
from fabsim.engine.simulate import Trace, simulate
from fabsim.errors import InputError
from fabsim.models.go_back import GoBackN
from fabsim.models.model import Model
from fabsim.models.protocol import Feedback, Sender
from fabsim.models.recovery import SelectiveRepeat
from fabsim.models.taildrop import TailDrop
from fabsim.models.window import Window
from fabsim.scenario import load
from fabsim.scenario.check import report
from fabsim.scenario.compile.arrays import compile_scenario
from fabsim.scenario.compile.network import network
from fabsim.topology import Change, degrade, find_links, single_switch
from fabsim.typing import Array
from fabsim.workload import assemble
from tests.small import RATE, case, slopes
from tests.test_laws import STEPS, check_conserved, walk

MTU = 4150.0
PAIR = degrade(single_switch(2, rate=RATE, latency=1e-6), [Change("leaf0->h1", speed=0.5)])
STAR = single_switch(9, rate=RATE, latency=1e-6)
LOAD: dict[str, Any] = {
    "kind": "two tiers", "to": [3, 3, 3, 3, 0, 1], "size": [2.5e6] * 6, "start": [0.0] * 6, "dead": False,
    "slow": 0.5, "slow_host": 1.0, "buffer": 2e4, "window": 4e5,
}  # fmt: skip


def losing(
    made: tuple[Problem, Model[Any]],
    law: type[SelectiveRepeat] = SelectiveRepeat,
    *,
    timeout: float = 50e-6,
    loss: Any = None,
    most: float = 64.0,
) -> tuple[Problem, Model[Any]]:
    """Ports that drop, and links that lose."""
    problem, model = made
    real = lambda x: jnp.asarray(np.asarray(x), model.links.capacity.dtype)  # noqa: E731
    links = model.links if loss is None else replace(model.links, loss=real(loss))
    recovery = law(real(timeout), real(2.0), real(most))
    return problem, replace(model, queue=TailDrop(**vars(model.queue)), links=links, recovery=recovery)


def at_the_end(share: float) -> np.ndarray:
    """[L] a loss on the link to host 1 of PAIR."""
    return np.array([0.0, 0.0, 0.0, share])


@pytest.mark.parametrize("law", [SelectiveRepeat, GoBackN])
@pytest.mark.parametrize(("p", "packets"), [(1e-3, 256), (1e-2, 256), (1e-2, 64)])
def test_goodput_under_random_loss(law: type[SelectiveRepeat], p: float, packets: int) -> None:
    """For each byte sent: 1 - p where only losses are repeated, (1 - p) / (1 - p + p W) where all behind them is."""
    problem, model = losing(case(PAIR, assemble([0], [1], 2e8), window=packets * MTU), law, loss=at_the_end(p))
    done = run(problem, model, every=100, progress=False).trace
    assert done.frames.headers is None
    goodput = float(problem.size[0]) / done.frames.sent[:, 0].sum(dtype=float)
    assert goodput == pytest.approx(1 - p if law is SelectiveRepeat else (1 - p) / (1 - p + p * packets), rel=0.01)
    assert goodput > 0.9 or done.completion[0] * RATE * 0.5 > 1.1 * float(problem.size[0])


@pytest.mark.parametrize("always", [True, False], ids=["links", "events"])
def test_each_flow_has_its_own_luck_on_a_lossy_link(always: bool) -> None:
    """Of n packets n p^(k + 1) are missing on average after k timeouts, and none of so many with probability exp(-n
    p^(k + 1)): ten packets, of which a tenth is lost, are there at once for 37 % of the flows, for 90 % after one
    timeout, and for 99 % after two. Flows that meet no such link are all there at once."""
    fabric = single_switch(8, rate=RATE, latency=1e-6)
    lossy = find_links(fabric, "h[0-6]->leaf0")
    flows = assemble(np.arange(800) % 8, (np.arange(800) + 1) % 8, 10 * (MTU - 64))
    loss = np.zeros(fabric.links)
    loss[lossy] = 0.1
    problem, model = losing(case(fabric, flows), timeout=200e-6, loss=loss if always else None)
    if not always:
        problem = replace(problem, faults=faults([lossy], fabric.links, begin=0.0, loss=0.1, react=1.0))
    took = np.asarray(simulate(problem, model, steps=600, every=600).completion)
    risky = np.arange(800) % 8 < 7
    assert took[~risky].max() < 150e-6
    for timeouts, within in enumerate((0.04, 0.03, 0.01)):
        there = (took[risky] < 150e-6 + timeouts * 200e-6).mean()
        assert there == pytest.approx(np.exp(-10 * 0.1 ** (timeouts + 1)), abs=within)


def overflow(senders: int, packets: float, buffer: float = 150 * MTU) -> tuple[Problem, Model[Any]]:
    """So many packets from each of some senders into one port, with windows of 100."""
    made = case(STAR, assemble(np.arange(1, senders + 1), 0, packets * 4086.0), window=100 * MTU, buffer=buffer)
    return losing(made, GoBackN, timeout=83.37e-6)


@pytest.mark.parametrize(("senders", "packets"), [(4, 245), (4, 980), (8, 245)])
def test_go_back_takes_what_is_ahead_of_the_hole(senders: int, packets: int) -> None:
    """N senders at line rate fill a port once N A packets are in, N A (1 - 1 / N) = 150, and each has a hole behind its
    A: 50 of a window of 100 for 4 of them. All behind it is refused, and so they get A on with each timeout. With 245
    packets 4 senders need 4 of these, and end after 371 us; an independent packet simulator has 371."""
    problem, model = overflow(senders, packets)
    each, packet = 150 / (senders - 1), MTU / RATE
    rounds = (packets - 1) // each
    want = rounds * (83.37e-6 + 1e-6 + each * packet) + 2e-6 + (packets - rounds * each) * senders * packet
    found = run(problem, model, progress=False).trace.completion
    np.testing.assert_allclose(found[:senders], want, rtol=0.01)
    assert want == pytest.approx(371e-6, rel=0.01) or (senders, packets) != (4, 245)


def test_slopes_of_holes_are_numbers() -> None:
    """Where all flows have one at once: a longer timeout costs time, and room saves some."""
    problem, model = overflow(4, 245)

    def value(model: Model[Any]) -> Any:
        return simulate(problem, model, steps=420).completion[0]

    found = jax.jit(jax.grad(value))(model)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))
    assert float(found.recovery.timeout) > 1
    assert float(found.queue.buffer.sum()) < 0


@pytest.mark.parametrize(("ends", "error"), [((1, 0), 0.002), ((0, 1), 0.002), ((1, 1), 0.06)])
def test_go_back_wherever_packets_are_lost(ends: tuple[int, int], error: float) -> None:
    """One in a hundred on the first link, where all that is under way is ahead of it, on the last, where most is behind
    it, and on both, where the first to be missing may be the last to be lost: goodput knows no difference."""
    loss = 0.01 * np.array([ends[0], 0, 0, ends[1]])
    problem, model = losing(case(PAIR, assemble([0], [1], 1e8), window=64 * MTU), GoBackN, loss=loss)
    done = run(problem, model, every=100, progress=False).trace
    p = 1 - 0.99 ** sum(ends)
    goodput = float(problem.size[0]) / done.frames.sent[:, 0].sum(dtype=float)
    assert goodput == pytest.approx((1 - p) / (1 - p + 64 * p), rel=error)


@pytest.mark.parametrize(("size", "way"), [(1e4, 2), (1e5, 5)])
def test_timeouts_grow_until_something_is_heard(size: float, way: int) -> None:
    """All is lost on the link, in one lot or several: sent again 20, 40, 80 and then 100 us after the loss, which is
    some steps on the `way` after the sending."""
    made = case(PAIR, assemble([0], [1], size), window=1e6)
    problem, model = losing(made, timeout=20e-6, most=5.0, loss=at_the_end(1.0))
    again = np.asarray(simulate(problem, model, steps=400, every=1).frames.again[:, 0])
    when = np.flatnonzero(again)
    first = when[np.diff(when, prepend=-100) > 10]
    np.testing.assert_allclose(np.add.reduceat(again, first), float(problem.size[0]), rtol=1e-6)
    np.testing.assert_allclose(np.diff(first), [40, 80, 100, 100], atol=way)


@pytest.mark.parametrize("timeout", [120e-6, 40e-6, 20e-6, 13e-6])
def test_steady_losses_are_missed_a_timeout_after_each(timeout: float) -> None:
    """By Little's law: what is lost and not missed yet is the rate of loss times the timeout, which grows at the end. A
    message that is sent sooner than that waits for its last losses (by its luck: a third of a packet is one)."""
    made = case(PAIR, assemble([0], [1], 2e6), window=2e6, seed=1)
    problem, model = losing(made, timeout=timeout, loss=at_the_end(0.01))
    lost, waiting = 0.0, 0.0
    for state, seen in walk(problem, model, 150):
        assert state.recovery is not None
        waiting += STEPS * float(np.sum(state.recovery.gone, dtype=float))
        lost += float(np.sum(seen.again))
    took = float(state.flow.completion[0]) * float(problem.dt)
    assert float(problem.dt) * waiting / lost == pytest.approx(timeout, rel=0.06, abs=float(problem.dt))
    assert took > 2e6 / (0.5 * RATE) + 0.5 * timeout


@pytest.mark.parametrize("apart", [7, 8, 9, 13, 20])
def test_a_loss_now_and_then_is_missed_a_timeout_after(apart: int) -> None:
    """However far apart losses are: on average a timeout of 100 steps, and none sooner or later than half a lot."""
    law = SelectiveRepeat(*(jnp.asarray(x, "float32") for x in (100.0, 2.0, 64.0)))

    def one(state: Any, step: Array) -> tuple[Any, Any]:
        state, lots, _ = law.expire(state, jnp.ones(1, bool))
        lost = jnp.where(step % apart == 0, 1.0, 0.0)[None]
        return law.lose(state, lost)[0], (lost[0], lots.sum())

    lost, missed = jax.lax.scan(one, law.init(jnp.zeros(1)), jnp.arange(3000))[1]
    lost, missed = np.asarray(lost, float), np.asarray(missed, float)
    steps, lot = np.arange(3000), 100 / 6
    until = lost.cumsum() <= missed.sum() + 1e-3
    assert (steps * missed).sum() / missed.sum() - steps[until] @ lost[until] / lost[until].sum() == pytest.approx(
        101, abs=2
    )
    soon, late = (
        np.append(0, lost.cumsum())[np.clip(steps - 100 + int(x), 0, 3000)] for x in (lot / 2 + 1, -lot / 2 - 1)
    )
    assert (missed.cumsum() <= soon + 1e-3).all()
    assert (missed.cumsum() >= late - 1e-3).all()


@pytest.mark.parametrize(("count", "packets", "want"), [(3, 150, 357.7e-6), (4, 100, 438.9e-6), (5, 100, 529.0e-6)])
def test_overflows_come_back_over_the_time_that_they_took(count: int, packets: int, want: float) -> None:
    """Flows with fixed windows from leaf to leaf over one uplink, against an independent packet simulator (the mean
    of four runs, which are 1.5 us apart at most). Lots that come back at once, where a seventh of a timeout brings 143
    packets, are up to a fifth late."""
    pairs = [{"src": 9 + i, "dst": i, "size": "4 MB"} for i in range(count)] + [{"src": 8, "dst": 17, "size": "4 MB"}]
    scenario = {
        "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 9, "rate": "400 Gbps",
                   "latency": "1 us"},
        "traffic": [{"kind": "flows", "list": pairs}],
        "transport": {"kind": "window", "window": f"{packets * MTU} B"},
        "queue": {"kind": "tail_drop", "buffer": f"{100 * MTU} B"},
    }  # fmt: skip
    found = run(*compile_scenario(load(scenario)), progress=False).trace.completion
    assert found.max() == pytest.approx(want, rel=0.02)


def incast(senders: int, window: float, buffer: float, slow: float = 1.0) -> Trace:
    """Senders that send one window each at once, into one port."""
    fabric = degrade(STAR, [Change("leaf0->h0", speed=slow)])
    size = np.where(np.arange(8) < senders, window, 0.0)
    problem, model = case(fabric, assemble(np.arange(1, 9), 0, size), window=1e9, buffer=buffer)
    sized = replace(problem, size=jnp.asarray(size, "float32"))
    return run(*losing((sized, model), timeout=200e-6), progress=False).trace


@pytest.mark.parametrize("law", [SelectiveRepeat, GoBackN])
def test_slopes_long_after_the_end_are_numbers(law: type[SelectiveRepeat]) -> None:
    """In float32: of each loss a part is lost again, and so on, until one over its square is no number any more."""
    made = case(PAIR, assemble([0, 0], [1, 1], [3e6, 1e5]), window=2e5)
    problem, model = losing(made, law, timeout=10.3e-6, loss=at_the_end(0.01))

    def value(model: Model[Any]) -> Any:
        return simulate(problem, model, steps=600).completion.mean()

    found = jax.jit(jax.grad(value))(model)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))
    assert float(found.recovery.timeout) != 0


@pytest.mark.parametrize(("senders", "slow"), [(4, 1.0), (8, 1.0), (8, 0.6)])
def test_an_incast_overflows_from_its_peak_on(senders: int, slow: float) -> None:
    """N windows meet: overflow if and only if the buffer is below N W (1 - C / (N C_in)); (N - 1) W for equal links."""
    window = 3.5e5  # whole steps: the peak is at the end of one
    peak = senders * window * (1 - slow / senders)
    kept, lost = incast(senders, window, 1.003 * peak, slow), incast(senders, window, 0.95 * peak, slow)
    assert kept.frames.dropped.sum() == 0
    assert kept.frames.peak.max() == pytest.approx(peak, rel=0.003)
    assert lost.frames.dropped.sum() == pytest.approx(0.05 * peak, rel=0.05)
    assert kept.completion.max() < 100e-6 < 200e-6 < lost.completion.max()
    assert lost.frames.again.sum() == pytest.approx(float(lost.frames.dropped.sum()), rel=1e-4)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Listening(Window):
    """A window that adds up how long its bytes have waited."""

    signals = True

    def init(self, sender: Sender) -> Any:
        return jnp.zeros_like(sender.rate)

    def offer(self, state: Any, sender: Sender) -> Array:
        return super().offer((), sender)

    def step(self, state: Any, feedback: Feedback, sender: Sender) -> Any:
        return state + feedback.delay * feedback.acked


def test_littles_law() -> None:
    """All waits together are the integral of the queue."""
    flows = assemble(np.arange(1, 9), 0, np.linspace(1e5, 8e5, 8), start=np.linspace(0, 2e-5, 8))
    problem, model = case(STAR, flows, transport=Listening(jnp.float32(3e5)))
    seen = simulate(problem, model, steps=160)
    waits = float(seen.state.law.sum()) * float(problem.unit * problem.dt)
    queue = float(seen.frames.queue.sum(dtype=float)) * 10 * float(problem.dt)
    assert np.isfinite(seen.completion).all()
    assert waits == pytest.approx(queue, rel=0.002)
    assert waits / float(problem.size.sum()) > 5e-6


@pytest.mark.parametrize("kind", ["drop", "trim", "go back"])
def test_no_byte_is_forgotten(kind: str) -> None:
    """Lost at ports and on links, data and headers, or refused: each is where it can be found."""
    loss = np.zeros(16)
    loss[[0, 8, 9, 10, 11]] = 0.3  # the first host's link, and those between leaves and spines

    def change(model: Model[Any]) -> Model[Any]:
        law = GoBackN if kind == "go back" else SelectiveRepeat
        _, made = losing((None, model), law, loss=loss, timeout=20e-6)  # type: ignore[arg-type]
        return replace(made, queue=model.queue) if kind == "trim" else made

    assert check_conserved(LOAD, "float32", 1e-6, change) > 10


def total(problem: Problem, model: Model[Any]) -> Array:
    """Of all completions, in us."""
    return simulate(problem, model, steps=160, every=40).completion.sum() * 1e6


LEAVES: dict[str, Callable[[Any], Any]] = {
    "buffer": lambda m: m.queue.buffer,
    "timeout": lambda m: m.recovery.timeout,
    "loss": lambda m: m.links.loss,
}


def test_gradients_and_sweeps() -> None:
    """Slopes by buffer, timeout and loss are central differences, all from one sweep."""
    with jax.enable_x64(True):
        fabric = single_switch(5, rate=RATE, latency=1e-6)
        flows = assemble([1, 2, 3, 4], 0, [3e5, 2.6e5, 2.2e5, 1.7e5], start=[0.0, 0.3e-6, 0.7e-6, 1e-6])
        loss = np.where(np.arange(fabric.links) < 5, 0.002, 0.0)
        made = case(fabric, flows, buffer=1.2e5, window=1.9e5, dtype="float64")
        problem, model = losing(made, GoBackN, timeout=10.3e-6, loss=loss)
        values, found = slopes(total, problem, model, LEAVES)
    assert np.isfinite(values).all()
    for leaf, (got, want) in found.items():
        assert abs(want) > 0.1, leaf
        assert got == pytest.approx(want, rel=1e-4), leaf


SCENARIO = """
fabric:
  kind: leaf_spine
  leaves: 2
  spines: 2
  hosts_per_leaf: 2
  rate: 400 Gbps
  latency: 1 us
  degraded: [{link: "leaf0->spine1", loss: 0.25}]
traffic: [{kind: incast, senders: 3, size: 1 MB}]
queue: {kind: tail_drop, buffer: 100 kB}
recovery: {kind: go_back_n, timeout: 40 us}
"""


def test_in_a_scenario(tmp_path: Any) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    _, model = compile_scenario(load(file))
    assert isinstance(model.queue, TailDrop)
    assert type(model.recovery) is GoBackN
    assert float(model.recovery.timeout) == pytest.approx(40e-6)
    assert model.links.loss is not None
    lossy = np.flatnonzero(model.links.loss)
    assert network(load(file)).fabric.link_name(int(lossy[0])) == "leaf0->spine1"
    assert np.asarray(model.links.loss)[lossy] == pytest.approx([0.25])
    file.write_text(SCENARIO.replace("loss: 0.25", "speed: 0.5").replace("tail_drop", "trim"))
    assert compile_scenario(load(file))[1].recovery is None
    assert "recovery: a queue of kind trim and links without loss lose nothing" in report(load(file))
    file.write_text(SCENARIO.replace("loss: 0.25", "loss: 1.5"))
    with pytest.raises(InputError, match="loss"):
        load(file)


def test_losses_need_a_recovery() -> None:
    problem, model = losing(case(PAIR, assemble([0], [1], 1e5)))
    with pytest.raises(InputError, match="recovery"):
        simulate(problem, replace(model, recovery=None), steps=10)
