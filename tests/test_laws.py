"""Laws that every run keeps, whatever the fabric, the load and the faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fabsim.engine.problem import Packet, Problem
from fabsim.engine.run import run
from fabsim.engine.setup import prepare
from fabsim.engine.simulate import begin, keep_going
from fabsim.engine.state import Part, State
from fabsim.models.model import Model
from fabsim.models.queue import TIE
from fabsim.routing.choose import all_paths
from fabsim.topology import Change, Fabric, Tier, degrade, fat_tree3, leaf_spine, single_switch
from fabsim.workload import assemble
from tests.small import RATE, case

STEPS = 40
"""Steps of one chunk, each a frame."""

TIER = Tier(RATE, 0.7e-6, 0.1e-6)
FABRICS = {
    "two tiers": leaf_spine(2, 2, 2, rate=RATE, latency=1e-6),
    "three tiers": fat_tree3(
        pods=2, leaves_per_pod=1, hosts_per_leaf=2, leaf_uplinks=2, agg_uplinks=1, tiers=(TIER, TIER, TIER)
    ),
}
SOURCES = [0, 0, 1, 2, 3, 3]


@st.composite
def loads(draw: st.DrawFn) -> dict[str, Any]:
    """Six flows of four hosts over a fabric with faults; shapes are the same for all that come from one fabric."""
    kind = draw(st.sampled_from(sorted(FABRICS)))
    shift = [draw(st.sampled_from([1, 2, 3])) for _ in SOURCES[1:]]
    sizes = st.sampled_from([0.0, 1.0, 4086.0, 4087.0, 3e4, 4e5, 2.5e6])
    return {
        "kind": kind,
        "to": [3, *((src + by) % 4 for src, by in zip(SOURCES[1:], shift, strict=True))],
        "size": [draw(sizes) for _ in SOURCES],
        "start": [draw(st.floats(0, 60e-6)) for _ in SOURCES],
        "dead": draw(st.booleans()),
        "slow": draw(st.sampled_from([0.02, 0.25, 0.5, 1.0])),
        "slow_host": draw(st.sampled_from([0.1, 1.0])),
        "buffer": draw(st.sampled_from([0.0, 1e3, 2e4, 1e5, 1e7])),
        "window": draw(st.sampled_from([1e3, 1e5, 4e5])),
    }


def made(load: dict[str, Any], dtype: str) -> tuple[Problem, Model[Any], Fabric]:
    """Problem and model of a drawn load."""
    fabric = FABRICS[load["kind"]]
    up, down = ("leaf0->spine0", "spine1->leaf1") if load["kind"] == "two tiers" else ("leaf0->agg0", "agg3->leaf1")
    changes = [Change(up, speed=0)] if load["dead"] else []
    changes += [Change(down, speed=load["slow"]), Change("leaf1->h3", speed=load["slow_host"])]
    fabric = degrade(fabric, changes)
    flows = assemble(SOURCES, load["to"], load["size"], start=load["start"])
    problem, model = case(
        fabric, flows, window=load["window"], buffer=load["buffer"], dtype=dtype, share_rows=False, ring=64
    )
    assert problem.ring == 64
    return problem, model, fabric


def walk(problem: Problem, model: Model[Any], chunks: int) -> Iterator[tuple[State, Any]]:
    """State and frames (of one step each) after every chunk, as numpy in float64."""
    state = begin(problem, model)
    for _ in range(chunks):
        state, seen = keep_going(problem, model, state, count=STEPS, every=1)
        yield jax.tree.map(np.asarray, state), jax.tree.map(lambda x: np.asarray(x, np.float64), seen)


def unheard(state: State, delay: np.ndarray) -> np.ndarray:
    """[C, F] what reached the receivers and has not come back: the feedback of a step is interpolated between two."""
    ring, now = state.ring.astype(np.float64), int(state.step)
    depth = ring.shape[0]
    total = np.zeros(ring.shape[1:])
    for flow, steps in enumerate(delay):
        whole = int(np.floor(steps))
        for age in range(1, min(whole, now) + 1):
            total[:, flow] += ring[(now - age) % depth, :, flow]
        if whole < now:
            total[:, flow] += (steps - whole) * ring[(now - whole - 1) % depth, :, flow]
    return total


def in_network(state: State) -> tuple[np.ndarray, np.ndarray]:
    """[F] data, and [F] trimmed bytes on their way, but for what will be refused."""
    return on_the_way(state, 1 if state.layers is None else state.layers.held.shape[-1])


def on_the_way(state: State | Part, layers: int) -> tuple[np.ndarray, np.ndarray]:
    """The same, of a fluid that stands in so many layers."""
    moving, waiting = (
        [np.asarray(x, np.float64) for x in (fluid.fabric, fluid.egress)]
        for fluid in (state.moving, state.waiting.data(layers))
    )
    data, trimmed = (moving[0][:, :, c].sum((0, 2)) + moving[1][:, c].sum(-1) for c in (0, 1))
    data = data + waiting[0][:, :, 0].sum((0, 2)) + waiting[1][:, 0].sum(-1)
    if isinstance(state, Part) or state.behind is None:
        return data, trimmed
    refused = on_the_way(state.behind, layers)
    return data - refused[0], trimmed - refused[1]


def check_conserved(
    load: dict[str, Any], dtype: str, tolerance: float, change: Any = None, events: Any = None
) -> float:
    """Every byte is somewhere, and nothing is negative or above what a link can do. Gives the units lost in silence.

    change: what else is done to the model, which must not let a link to a receiver lose anything; events: faults on
    the way.
    """
    problem, model, fabric = made(load, dtype)
    problem = replace(problem, faults=events)
    model = model if change is None else change(model)
    s = jax.jit(prepare)(problem, model)
    delay = np.asarray(s.beyond_mean + s.back)
    size, capacity = np.asarray(s.size, np.float64), np.asarray(s.capacity, np.float64)[:-1]
    buffer = np.asarray(s.queue.buffer, np.float64)[:-1]
    into = np.stack([fabric.dst[np.asarray(problem.at.last)[:, 0]] == host for host in range(4)])
    arrived = np.zeros(fabric.links)
    moved = np.zeros(fabric.links)
    silent = 0.0
    for state, seen in walk(problem, model, 4):
        flow = jax.tree.map(lambda x: x.astype(np.float64), state.flow)
        data, trimmed = in_network(state)
        back = unheard(state, delay)
        gone = 0.0 if state.recovery is None else state.recovery.gone.astype(np.float64).sum(-1)
        silent += np.sum(gone)
        scale = max(1.0, size.max(), moved.max())
        under_way = data + trimmed + back[:2].sum(0) + gone
        np.testing.assert_allclose(flow.in_flight, under_way, atol=tolerance * scale, rtol=0)
        np.testing.assert_allclose(flow.lost, trimmed + back[1] + gone, atol=tolerance * scale, rtol=0)
        arrived += seen.sent.sum(0)
        moved = np.maximum(arrived, moved)
        delivered = size - flow.held - flow.credit - data - trimmed - back[1] - gone
        for host in range(4):
            down = np.flatnonzero(fabric.dst == host)
            off = delivered[into[host]].sum() - arrived[down].sum()
            refuses = model.recovery is not None and model.recovery.ordered
            assert (off if refuses else abs(off)) <= tolerance * max(scale, size[into[host]].sum()), (host, off)
        assert state.flags == 0
        least = -tolerance * scale
        for leaf in jax.tree.leaves((state.waiting, state.moving, state.ports, state.ring, flow.credit, flow.held)):
            assert leaf.min(initial=0) >= least
        assert flow.in_flight.min() >= least
        assert (seen.queue >= 0).all()
        assert (seen.dropped >= 0).all()
        assert (seen.sent <= capacity * (1 + tolerance)).all()
        assert events is not None or (seen.queue <= buffer * (1 + tolerance) + tolerance * scale).all()
    return silent


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(loads())
@example(
    {
        "kind": "two tiers", "to": [3, 3, 3, 3, 0, 1], "size": [2.5e6] * 6, "start": [0.0] * 6, "dead": True,
        "slow": 0.02, "slow_host": 0.1, "buffer": 2e4, "window": 4e5,
    }
)  # fmt: skip
def test_conservation_in_float32(load: dict[str, Any]) -> None:
    check_conserved(load, "float32", 1e-6)


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(loads())
def test_conservation_in_float64(load: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        check_conserved(load, "float64", 1e-12)


def shuffled(fabric: Fabric, order: list[int], hosts: list[int], dead: str) -> np.ndarray:
    """Completions of five flows that fill buffers, put back in order: flow order[i] comes i-th, host h is hosts[h].
    What is drawn for a flow goes with it."""
    src, dst, size = np.array([0, 1, 2, 3, 0]), np.array([3, 3, 1, 0, 2]), np.array([4e5, 5e5, 3e5, 2e5, 1e5])
    number = np.array(hosts)
    flows = assemble(number[src][order], number[dst][order], size[order], start=np.array([0, 0, 1e-6, 2e-6, 0])[order])
    problem, model = case(degrade(fabric, [Change(dead, speed=0.5)]), flows, window=3e5, buffer=5e4, share_rows=False)
    problem = replace(problem, dice=problem.dice[np.array(order)])
    got = np.empty(5)
    got[order] = run(problem, model, progress=False).trace.completion
    return got


def test_names_do_not_matter() -> None:
    """Flows in another order, and hosts and leaves that change places, give the same times."""
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)
    want = shuffled(fabric, [0, 1, 2, 3, 4], [0, 1, 2, 3], "leaf0->spine1")
    np.testing.assert_allclose(shuffled(fabric, [3, 1, 4, 0, 2], [0, 1, 2, 3], "leaf0->spine1"), want, rtol=2e-6)
    np.testing.assert_allclose(shuffled(fabric, [0, 1, 2, 3, 4], [3, 2, 0, 1], "leaf1->spine1"), want, rtol=2e-6)
    assert len(np.unique(want.round(9))) == 5


@pytest.mark.parametrize(("bytes_by", "time_by"), [(3.0, 1.0), (1.0, 0.7), (0.4, 0.5)])
def test_units_scale(bytes_by: float, time_by: float) -> None:
    """a times all bytes and a/b times all rates, with all latencies b times, takes b times as long."""
    a, b = bytes_by, time_by
    packet = Packet(4096 * a, 64 * a, 64 * a)
    fabric = leaf_spine(2, 2, 2, rate=RATE * a / b, latency=1e-6 * b)
    fabric = degrade(fabric, [Change("leaf0->spine1", speed=0.5)])
    sizes = np.array([5, 60, 100, 50, 20.5]) * 4032 * a
    flows = assemble([0, 1, 2, 3, 0], [3, 3, 1, 0, 2], sizes, start=np.array([0, 0, 1e-6, 2e-6, 0]) * b)
    made = case(fabric, flows, window=3e5 * a, buffer=1e4 * a, share_rows=False, packet=packet, dt=1e-6 * b)
    got = run(*made, progress=False).trace
    plain = case(
        degrade(leaf_spine(2, 2, 2, rate=RATE, latency=1e-6), [Change("leaf0->spine1", speed=0.5)]),
        replace(flows, size=sizes / a, start=flows.start / b),
        window=3e5, buffer=1e4, share_rows=False, packet=Packet(4096, 64, 64), dt=1e-6,
    )  # fmt: skip
    want = run(*plain, progress=False).trace
    assert want.frames.dropped.sum() > 1e4
    np.testing.assert_allclose(got.completion, want.completion * b, rtol=5e-6)
    np.testing.assert_allclose(got.frames.dropped.sum(), want.frames.dropped.sum() * a, rtol=1e-3)


def test_a_finer_step_changes_little() -> None:
    """Completions of twelve flows that queue at each other, with a window, at dt, dt/2 and dt/4: differences of at most
    1.1 and 0.4 steps, 0.2 and 0.08 on average, two queues on the way (of completions of 6 to 70 us)."""
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)
    fabric = degrade(fabric, [Change("leaf0->spine1", speed=0.5)])
    src = np.arange(12) % 4
    flows = assemble(src, (src + 1 + np.arange(12) // 4) % 4, np.linspace(2e5, 1.3e6, 12), start=np.arange(12) * 3.3e-6)
    by_dt = []
    for part in (1, 2, 4):
        problem, model = case(fabric, flows, window=4e5, dt=1e-6 / part, share_rows=False)
        by_dt.append(run(problem, model, progress=False).trace.completion)
    first, second = abs(by_dt[1] - by_dt[0]) * 1e6, abs(by_dt[2] - by_dt[1]) * 1e6
    assert second.mean() < 0.75 * first.mean()
    assert first.max() < 1.5
    assert second.max() < 0.75


@pytest.mark.parametrize("slow", [0.3, 0.75])
@pytest.mark.parametrize("window", [1e5, 2.5e5, 6e5])
def test_standing_queue_of_a_lone_window(slow: float, window: float) -> None:
    """A lone flow keeps max(0, window - bandwidth-delay product) bytes in front of its slowest link."""
    fabric = degrade(single_switch(2, rate=RATE, latency=1.3e-6), [Change("leaf0->h1", speed=slow)])
    flows = assemble([0], [1], 1e8)
    problem, model = case(fabric, flows, all_paths(fabric, flows), window=window)
    link = 3
    assert fabric.link_name(link) == "leaf0->h1"
    rtt = 4 * 1.3e-6 + 4150 / RATE + 64 / RATE + 64 / (slow * RATE)
    got = run(problem, model, until=200e-6, progress=False).trace.frames
    want = max(0.0, window - slow * RATE * rtt)
    assert got.queue[-1, link] == pytest.approx(want, abs=2e-3 * window)
    want_sent = min(slow * RATE * (1 - TIE), window / rtt) * 10 * problem.dt
    assert got.sent[-1, link] == pytest.approx(float(want_sent), rel=2e-3)
