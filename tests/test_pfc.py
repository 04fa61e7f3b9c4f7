"""Priority flow control: its limit cycle, its headroom, and whom else it silences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.engine.problem import Problem
from fabsim.engine.run import run
from fabsim.engine.simulate import Trace, simulate
from fabsim.errors import InputError, Stopped
from fabsim.models.model import Model
from fabsim.models.pfc import PfcQueue
from fabsim.models.recovery import SelectiveRepeat
from fabsim.tables import busiest_links
from fabsim.topology import Change, Fabric, degrade, find_links, leaf_spine, single_switch, torus
from fabsim.typing import Array
from fabsim.workload import assemble
from tests.small import RATE, case, slopes, wire
from tests.test_laws import check_conserved
from tests.test_taildrop import LOAD

XOFF, XON, DELAY = 1e5, 8e4, 1.5e-6


def pausing(model: Model[Any], *, xoff: float = XOFF, headroom: float = 1e9, delay: float = DELAY) -> Model[Any]:
    """The same model with pauses."""
    one = jnp.ones_like(model.links.capacity)
    bounds = {"xoff": xoff * one, "xon": 0.8 * xoff * one, "headroom": headroom * one, "delay": delay * one}
    recovery = SelectiveRepeat(*(x * one[0] for x in (3e-5, 2.0, 64.0)))
    return replace(model, queue=PfcQueue(**vars(model.queue), **bounds), recovery=recovery)


def link(fabric: Fabric, name: str) -> int:
    """The number of a link."""
    return int(find_links(fabric, name)[0])


def cycle(senders: int, headroom: float = 1e9, steps: int = 1500) -> tuple[Trace, Problem]:
    """Senders at line rate into one port of the same rate."""
    fabric = single_switch(9, rate=RATE, latency=1e-6)
    size = np.where(np.arange(8) < senders, 1e9, 0.0)
    problem, model = case(fabric, assemble(np.arange(1, 9), 0, size), dt=1e-7)
    return simulate(problem, pausing(model, headroom=headroom), steps=steps, every=1), problem


@pytest.mark.parametrize(
    ("n", "high", "low", "period"), [(2, 137.5e3, 42.5e3, 7.60e-6), (8, 165.6e3, 70.6e3, 17.37e-6)]
)
def test_the_limit_cycle(n: int, high: float, low: float, period: float) -> None:
    """Xoff + (C - C/n) t, Xon - (C/n) t, and the way from one to the other and back; the port is never idle."""
    assert high == pytest.approx(XOFF + (RATE - RATE / n) * DELAY, rel=1e-3)
    assert low == pytest.approx(XON - RATE / n * DELAY, rel=1e-3)
    trace, problem = cycle(n)
    port = link(single_switch(9, rate=RATE, latency=1e-6), "leaf0->h0")
    held = np.asarray(trace.frames.peak[500:, port]) / n
    assert held.max() == pytest.approx(high, rel=0.01)
    assert held.min() == pytest.approx(low, rel=0.01)
    apart = held - held.mean()
    rises = np.flatnonzero((apart[:-1] < 0) & (apart[1:] >= 0))
    at = rises + apart[rises] / (apart[rises] - apart[rises + 1])
    assert np.diff(at).mean() * float(problem.dt) == pytest.approx(period, rel=0.01)
    assert trace.frames.sent[500:, port].min() > (1 - 1e-5) * RATE * float(problem.dt)
    paused = np.asarray(trace.frames.paused[500:, link(single_switch(9, rate=RATE, latency=1e-6), "h1->leaf0")])
    assert paused.mean() / float(problem.dt) == pytest.approx(1 - 1 / n, rel=0.02)


def test_headroom_is_what_comes_within_the_delay() -> None:
    """(C - C/n) t suffices, and of what a smaller one lacks all is lost, once a cycle."""
    for n in (2, 8):
        needed = (RATE - RATE / n) * DELAY
        assert cycle(n, 1.02 * needed)[0].frames.dropped.sum() == 0
        lost = np.asarray(cycle(n, 0.8 * needed)[0].frames.dropped)
        assert (lost.sum(0) > 0).sum() == n
        assert lost[:100].sum(0).max() == pytest.approx(0.2 * needed, rel=0.05)


VICTIM = leaf_spine(2, 1, 3, rate=RATE, latency=1e-6)


def test_a_victim_stands_in_line_behind_others() -> None:
    """A flow to an idle host shares the spine with one to a host at a quarter of the rate. It gets half a link; with
    pauses a quarter: in the one line of the spine's port it is as fast as the other."""
    fabric = degrade(VICTIM, [Change("leaf1->h3", speed=0.25)])
    flows = assemble([0, 1, 2, 4], [3, 4, 5, 5], [1e9, 1e9, 0, 0])
    problem, model = case(fabric, flows, dt=2e-7)
    rate, into = {}, link(VICTIM, "leaf1->h4")
    for name, made in (("without", model), ("with", pausing(model))):
        seen = simulate(problem, made, steps=2000, every=200).frames
        rate[name] = float(seen.sent[5:, into].sum() / (5 * 200 * problem.dt))
        assert seen.queue[:, into].max() < 100.0
    assert rate["without"] == pytest.approx(RATE / 2, rel=0.01)
    assert rate["with"] == pytest.approx(RATE / 4, rel=0.01)
    for name in ("spine0->leaf1", "leaf0->spine0", "h0->leaf0", "h1->leaf0"):
        assert seen.paused[5:, link(VICTIM, name)].sum() > 2e-5, name
    for name in ("leaf1->h3", "leaf1->h4", "h2->leaf0", "h4->leaf1"):
        assert seen.paused[:, link(VICTIM, name)].sum() == 0


def test_nothing_is_lost_and_the_port_is_never_idle() -> None:
    """An incast over pauses takes as long as one into a buffer without end; each last byte stays where it is paused."""
    flows = assemble([0, 1, 4, 5], 3, [9e5, 7e5, 8e5, 6e5])
    problem, model = case(VICTIM, flows)
    free = run(problem, model, progress=False).trace
    held = run(problem, pausing(model), progress=False).trace
    assert held.frames.dropped.sum() == 0
    last = float(wire([9e5, 7e5, 8e5, 6e5]).sum()) / RATE
    assert held.completion.max() == pytest.approx(float(free.completion.max()), abs=3e-6)
    assert last < held.completion.max() < last + 8e-6
    assert held.frames.peak.max() < 4 * (XOFF + RATE * DELAY) < 0.6 * free.frames.peak.max()


def test_a_spray_counts_where_its_bytes_came_from() -> None:
    """Two lanes meet at the last port, one of them at half the rate: what links carry within the delay is headroom
    enough, and each is paused for its own bytes."""
    fabric = degrade(leaf_spine(2, 2, 3, rate=RATE, latency=1e-6), [Change("spine1->leaf1", speed=0.5)])
    problem, model = case(fabric, assemble([0, 1, 2, 4], 3, [1e6, 8e5, 6e5, 7e5]))
    done = run(problem, pausing(model, headroom=RATE * 2e-6), progress=False).trace
    assert done.frames.dropped.sum() < 1.0
    fast, slow = (done.frames.paused[:, link(fabric, name)].sum() for name in ("spine0->leaf1", "spine1->leaf1"))
    assert fast > 1.2 * slow > 0


def test_pauses_in_a_circle_stop_all() -> None:
    """Four routers in a ring of one direction, each flow over two of its links: each link waits for the next."""
    back = [Change(f"r{i}->r{(i - 1) % 4}", speed=0) for i in range(4)]
    fabric = degrade(torus((4,), rate=RATE, latency=1e-6), back)
    problem, model = case(fabric, assemble([0, 1, 2, 3], [2, 3, 0, 1], 2e6))
    assert run(problem, model, progress=False).trace.completion.max() < 1e-4
    with pytest.raises(Stopped, match=r"flows 1, 2, 3 \(4 in all\); \d+ links are paused, for each other in a circle"):
        run(problem, pausing(model), progress=False)


def test_no_byte_is_forgotten() -> None:
    """Paused in front of too little headroom: what is lost is missed in time."""
    assert check_conserved(LOAD, "float32", 1e-6, lambda model: pausing(model, xoff=5e4, headroom=2e4)) > 1


def total(problem: Problem, model: Model[Any]) -> Array:
    """Of the queue of the port, in MB us."""
    return simulate(problem, model, steps=96, every=32).frames.queue.sum() * 1e-6 * 32 * 0.2


LEAVES: dict[str, Callable[[Any], Any]] = {
    "xoff": lambda m: m.queue.xoff,
    "xon": lambda m: m.queue.xon,
    "delay": lambda m: m.queue.delay,
}


def test_gradients_and_sweeps() -> None:
    """Slopes by thresholds and delay are central differences, all from one sweep."""
    with jax.enable_x64(True):
        fabric = single_switch(3, rate=RATE, latency=1e-6)
        problem, model = case(fabric, assemble([1, 2], 0, 1e9), dtype="float64", dt=2e-7)
        model = pausing(model, xoff=1.017e5, delay=1.53e-6)
        _, found = slopes(total, problem, model, LEAVES)
    for leaf, (got, want) in found.items():
        assert abs(want) > 0.01, leaf
        assert got == pytest.approx(want, rel=1e-4), leaf


SCENARIO: dict[str, Any] = {
    "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "rate": "400 Gbps",
               "latency": "1 us"},
    "traffic": [{"kind": "incast", "senders": 3, "size": "1 MB"}],
    "queue": {"kind": "pfc", "xoff": "100 kB", "xon": "80 kB"},
}  # fmt: skip


def test_what_a_flow_leaves_behind_spoils_no_slope() -> None:
    """In float32. A flow ends while others go on in its port: what is left of it shrinks by a factor a step, and is in
    the end all that leaves the link to its receiver."""
    problem, model = case(VICTIM, assemble([0, 1, 2], [3, 4, 5], [2e5, 6e6, 6e6]), window=4e5)

    def sent(model: Model[Any]) -> Any:
        return simulate(problem, model, steps=200, every=20).frames.sent.sum()

    found = jax.jit(jax.grad(sent), compiler_options={"xla_backend_optimization_level": 0})(pausing(model))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


def test_no_slope_where_nothing_is_crossed() -> None:
    """What a head holds says when in a step it crosses a threshold: to first order (xoff - before) / (after - before).
    Where it does not, it says nothing, however little it changes."""
    _, model = case(VICTIM, assemble([0], [3], [1e5]))
    queue = pausing(model, xoff=10.0).queue
    assert isinstance(queue, PfcQueue)

    def silent(before: Array, after: Array) -> Any:
        state = replace(queue.quiet(queue.xoff, 2), held=jnp.full_like(queue.xoff, before))
        return queue.watch(state, jnp.full_like(queue.xoff, after), jnp.int32(0)).ring[0, 0]

    slopes_of = jax.grad(silent, argnums=(0, 1))
    assert slopes_of(jnp.float32(1e-26), jnp.float32(2e-26)) == (0.0, 0.0)
    assert silent(jnp.float32(9.0), jnp.float32(13.0)) == pytest.approx(3 / 4)
    assert slopes_of(jnp.float32(9.0), jnp.float32(13.0)) == (pytest.approx(3 / 16), pytest.approx(1 / 16))


def test_in_a_scenario() -> None:
    """Pauses stand in the table of links, and the headroom that is derived loses nothing."""
    scenario = fabsim.load(SCENARIO, {"transport.window": "8 BDP"})
    result = fabsim.run(scenario, progress=False)
    assert result.dropped.sum() == 0
    assert result.paused[list(result.link).index("h1->leaf0")] > 5e-6
    assert "paused" in busiest_links(result)
    assert np.isnan(result.buffer).all()
    with pytest.raises(InputError, match="xon: above xoff"):
        fabsim.load(SCENARIO, {"queue.xon": "1 BDP"}).network()


@pytest.mark.parametrize("queue", [{"kind": "pfc"}, {"kind": "pfc", "delay": "40 us"}])
def test_pauses_are_heard_however_late(queue: dict[str, Any]) -> None:
    """Over a slow link, where a packet takes long, and where it is said: alone and in a sweep over the delay."""
    fabric = {"kind": "single_switch", "hosts": 8, "rate": "100 Gbps", "latency": "300 ns"}
    slow = {"degraded": [{"link": "h0->*", "speed": 0.1}]}
    traffic = [{"kind": "incast", "senders": [0, 2, 3], "receiver": 1, "size": "500 kB"}]
    scenario = fabsim.load({"fabric": fabric | slow, "traffic": traffic, "queue": queue})
    found = fabsim.run(scenario, progress=False)
    assert found.last > 1.5e6 / 12.5e9
    delays = ["1 us", "20 us", "60 us"]
    swept = fabsim.sweep(scenario.change({"sweep": {"grid": {"queue.delay": delays}}}), progress=False)
    alone = [fabsim.run(scenario.change({"queue.delay": delay}), progress=False).last for delay in delays]
    np.testing.assert_allclose(swept.last_completion, alone, rtol=1e-5)
