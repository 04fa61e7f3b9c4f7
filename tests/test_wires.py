"""Long wires: bytes, last bytes and what comes back arrive a propagation time later, and none is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine import flags
from fabsim.engine.batch import batch
from fabsim.engine.crossing import after
from fabsim.engine.faults import faults
from fabsim.engine.line import held, put, take
from fabsim.engine.problem import Problem
from fabsim.engine.run import run
from fabsim.engine.setup import prepare
from fabsim.engine.simulate import begin, keep_going, simulate
from fabsim.engine.wires import CELLS
from fabsim.models.hpcc import Hpcc
from fabsim.models.model import Model
from fabsim.models.nscc import nscc
from fabsim.models.reps_bitmap import RepsBitmap
from fabsim.study.advance import run_batch
from fabsim.topology import Change, Fabric, degrade, find_links, leaf_spine, single_switch
from fabsim.workload import assemble
from tests.small import RATE, case, slopes, wire
from tests.test_batch import alike
from tests.test_laws import in_network, unheard
from tests.test_oracles import MTU, first_in_first_out


def stretched(latency: float, *, spines: int = 1) -> Fabric:
    """Two leaves of four hosts; the cables of leaf 0 to the spines are long."""
    fabric = leaf_spine(2, spines, 4, rate=RATE, latency=1e-6)
    return degrade(fabric, [Change("leaf0<->spine*", latency=latency)])


# A line


@pytest.mark.parametrize("stride", [1, 4, 32])
def test_a_line_gives_what_it_got(stride: int) -> None:
    """All of it, later by the delay on average; what is still on it is what is missing."""
    rng, cells = np.random.default_rng(0), 12
    late = np.array([stride - 0.75, stride + 0.25, 5.5 * stride, 10.0 * stride])
    put_in = np.repeat(rng.uniform(0, 1, (40, 4, 2)) * (np.arange(40) < 20)[:, None, None], stride, 0)

    def step(line: jax.Array, x: Any) -> tuple[jax.Array, Any]:
        number, entering = x
        strides = jnp.full(4, stride)
        line = put(line, number, strides, entering)
        return line, (take(line, number, strides, delay), held(line, number + 1, strides, delay))

    with jax.enable_x64(True):
        delay = jnp.asarray(late)
        found = jax.lax.scan(step, jnp.zeros((cells, 4, 2)), (jnp.arange(40 * stride), jnp.asarray(put_in)))
        out, on_it = (np.asarray(x) for x in found[1])
    np.testing.assert_allclose(out.sum(0), put_in.sum(0), rtol=1e-12)
    np.testing.assert_allclose(out.cumsum(0) + on_it, put_in.cumsum(0), rtol=1e-12, atol=1e-12)
    time = np.arange(40 * stride)[:, None, None]
    later = (out * time).sum(0) / out.sum(0) - (put_in * time).sum(0) / put_in.sum(0)
    np.testing.assert_allclose(later, np.broadcast_to(late[:, None], later.shape), rtol=1e-12)


# Lone flows


@pytest.mark.parametrize("latency", [8e-6, 250.3e-6, 5.5003e-3])
@pytest.mark.parametrize("size", [1, 1_000_001, 64e6])
def test_a_lone_flow_takes_the_closed_form_over_a_long_wire(latency: float, size: float) -> None:
    """wire/C + (L - 1) packets/C + propagation; the sender knows after the way back."""
    problem, model = case(stretched(latency), assemble([0], [4], [size]))
    assert problem.wires is not None
    trace = run(problem, model, progress=False).trace
    packet = min(MTU, wire(size))
    want = wire(size) / RATE + 3 * packet / RATE + latency + 3e-6
    assert trace.completion[0] == pytest.approx(want, rel=2e-6)
    knows = trace.completion[0] + latency + 3e-6 + 4 * 64 / RATE
    assert trace.sender_completion[0] == pytest.approx(knows, rel=2e-6)


def test_short_wires_have_no_lines() -> None:
    assert case(stretched(7.9e-6), assemble([0], [4], [1e6]))[0].wires is None


def test_links_shorter_than_a_step_borrow_from_the_long_one() -> None:
    """Steps of 5 us: four links, of which three have 1 us."""
    problem, model = case(stretched(100e-6), assemble([0], [4], [1e6]), dt=5e-6)
    trace = run(problem, model, progress=False).trace
    assert trace.completion[0] == pytest.approx(wire(1e6) / RATE + 3 * MTU / RATE + 103e-6, rel=1e-5)


# Near and far senders


@pytest.mark.parametrize("latency", [30e-6, 77.7e-6, 300e-6])
def test_near_and_far_meet_at_the_right_time(latency: float) -> None:
    """First in, first out, packet by packet, with arrivals later by each sender's own wire: a NIC's is long here."""
    star = single_switch(5, rate=RATE, latency=1e-6)
    fabric = degrade(star, [Change(f"h{host}->leaf0", latency=latency) for host in (3, 4)])
    rng = np.random.default_rng(1)
    sizes, starts = np.round(rng.uniform(5e5, 3e6, 4)), np.array([0.0, latency, 3e-6, 20e-6])
    flows = assemble([1, 2, 3, 4], 0, sizes, start=starts)
    made = run(*case(fabric, flows), progress=False)
    wires = np.array([1e-6, 1e-6, latency, latency])
    want = first_in_first_out(sizes, starts + wires - 1e-6)
    smear = 2 * made.dt * (4 if latency > 2e-4 else 1)  # cells of two steps there
    np.testing.assert_allclose(made.trace.completion, want, atol=smear, rtol=0)


def test_what_is_trimmed_behind_a_wire_is_known_a_round_trip_later() -> None:
    """Two far senders at line rate into a port of ten packets."""
    latency = 100e-6
    flows = assemble([0, 1], 4, [4e6, 4e6])
    problem, model = case(stretched(latency), flows, buffer=10 * MTU)
    _, seen = keep_going(problem, model, begin(problem, model), count=300, every=1)
    dropped, again = np.asarray(seen.dropped).sum(1), np.asarray(seen.again).sum(1)
    uplink = find_links(stretched(latency), "leaf0->spine0")
    assert np.flatnonzero(dropped)[0] == pytest.approx(2, abs=2)  # at the port in front of the wire
    assert np.asarray(seen.dropped)[:, uplink].sum() == pytest.approx(dropped.sum())
    assert np.flatnonzero(again > 0)[0] == pytest.approx(2 + 2 * 102, abs=4)


# Every byte is somewhere


def loaded(dtype: str, law: Any = None, balancer: Any = None, latency: float = 41.3e-6) -> tuple[Problem, Model[Any]]:
    """Four near and four far senders into two hosts, with trims."""
    fabric = stretched(latency, spines=2)
    flows = assemble([0, 1, 2, 3, 5, 6, 7, 2], [4, 4, 4, 5, 4, 4, 1, 0], 6e5, start=np.linspace(0, 9e-6, 8))
    problem, model = case(fabric, flows, window=3e5, buffer=6e4, dtype=dtype, transport=law, share_rows=False, ring=128)
    return problem, replace(model, balancer=balancer)


@pytest.mark.parametrize(("dtype", "tolerance", "dies"), [("float32", 1e-6, False), ("float64", 1e-12, True)])
def test_conservation(dtype: str, tolerance: float, dies: bool) -> None:
    """Of data and trims, on wires and on their way back, also where the wire in front dies for a while."""
    with jax.enable_x64(dtype == "float64"):
        problem, model = loaded(dtype)
        if dies:
            links = find_links(stretched(1e-5, spines=2), "leaf0->spine0")
            down = faults([links], problem.links, begin=20e-6, end=50e-6, speed=0.0, react=10e-6, dtype=dtype)
            problem = replace(problem, faults=down)
        s = jax.jit(prepare)(problem, model)
        wires, scale, state = s.wires, float(np.asarray(s.size).max()), begin(problem, model)
        assert wires is not None
        for _ in range(6):
            state, seen = keep_going(problem, model, state, count=25, every=1)
            now = jax.tree.map(np.asarray, state)
            data, trimmed = in_network(now)
            ahead = np.asarray(held(state.lines.ahead, state.step, wires.stride, wires.delay))
            ahead = ahead.reshape(*wires.long.shape, -1).sum(1)
            np.add.at(data, np.asarray(problem.wires.flow), ahead[:, 0])
            np.add.at(trimmed, np.asarray(problem.wires.flow), ahead[:, 1])
            back = unheard(now, np.asarray(s.beyond_mean + s.near_back))
            home = np.asarray(held(state.lines.back, state.step, wires.back_stride, wires.back))
            back[:, np.asarray(problem.wires.far)] += home.T
            np.testing.assert_allclose(now.flow.in_flight, data + trimmed + back.sum(0), atol=tolerance * scale)
            np.testing.assert_allclose(now.flow.lost, trimmed + back[1], atol=tolerance * scale)
            assert now.flags == 0
        assert ahead.sum() + home.sum() > 0
        assert np.asarray(seen.dropped).sum() >= 0


# Laws that look along the path


def real(x: Any) -> jax.Array:
    """In the precision of most tests."""
    return jnp.asarray(x, "float32")


LAWS = {
    "window": (None, None),
    "nscc": (nscc(120e-6, RATE, 4086.0, chance=0.0, knows_rtt=1.0), None),
    "hpcc": (Hpcc(*map(real, (120e-6, RATE, 0.95, 4e3, 5.0))), None),
    "balanced": (None, RepsBitmap(*map(real, (1.0, 4.0, 64.0, 8.0, 0.25)))),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_and_balancers_hear_over_long_wires(name: str) -> None:
    """Marks, in-band telemetry and what comes back by path, with trims; near flows are heard of at once."""
    law, balancer = LAWS[name]
    problem, model = loaded("float32", law, balancer)
    trace = run(problem, model, progress=False).trace
    assert trace.frames.dropped.sum() > 0
    far = np.isin(np.arange(8), [0, 1, 2, 3, 6])
    assert (trace.sender_completion - trace.completion)[far].min() > 41e-6
    assert (trace.sender_completion - trace.completion)[~far].max() < 6e-6


def test_telemetry_is_as_old_as_the_way_home() -> None:
    """From a port in front of the wire it is a round trip less the NIC's step; from one behind, less the wire."""
    problem, model = case(stretched(60e-6), assemble([0], [4], [1e6]))
    s = prepare(problem, model)
    assert s.wires is not None
    steps = np.arange(3)[::-1] + np.asarray(s.beyond_mean + s.back + after(s.wires, s.share)[:, 0])
    wire = np.asarray(s.wires.ahead).max()
    np.testing.assert_allclose(steps, float(s.round_trip[0]) - np.array([1, 2 + wire, 3 + wire]), rtol=1e-6)


# Gradients, batches, memory


def test_slopes_by_the_latency_of_a_long_wire() -> None:
    """Of flows that cross it, and of near ones that they delay or let go first."""
    with jax.enable_x64(True):
        fabric = degrade(stretched(33.37e-6), [Change("h5->leaf1", rate=0.9 * RATE)])
        flows = assemble([0, 1, 5, 6], [4, 4, 4, 7], [7.1e5, 3e5, 9.3e5, 1e5], start=[0, 2.1e-6, 30.7e-6, 0])
        problem, model = case(fabric, flows, buffer=1e9, dtype="float64", share_rows=False)

        def done(number: int) -> Any:
            return lambda problem, model: simulate(problem, model, steps=120, every=20).completion[number] * 1e6

        leaves = {"latency": lambda m: m.links.latency, "capacity": lambda m: m.links.capacity}
        for number, least in ((0, 1.0), (2, 0.05)):
            _, found = slopes(done(number), problem, model, leaves)
            for name, (got, want) in found.items():
                assert got == pytest.approx(want, rel=2e-5, abs=1e-6), (number, name)
            assert abs(found["latency"][0]) > least


def test_members_of_a_batch_have_wires_of_their_own_length() -> None:
    """One program: other strides and delays are numbers."""
    flows = assemble([0, 1, 5, 6], [4, 4, 4, 7], [7e5, 3e5, 9e5, 1e5])
    pairs = [case(stretched(latency), flows, share_rows=False, buffer=2e5) for latency in (20e-6, 90e-6, 400e-6)]
    problems, models = [problem for problem, _ in pairs], [model for _, model in pairs]
    many = batch(problems, models)
    assert many.same_paths
    alike(run_batch(many), problems, models)


def test_memory_does_not_grow_with_the_distance() -> None:
    """4,000 flows, round trips of 11 ms, steps of 1 us, under a law that reads signals: bytes of the whole state."""
    hosts = 1000
    fabric = degrade(leaf_spine(2, 1, hosts, rate=RATE, latency=1e-6), [Change("leaf0<->spine0", latency=5.5e-3)])
    src = np.repeat(np.arange(hosts), 4)
    problem, model = case(
        fabric, assemble(src, hosts + (src * 7 + np.tile(np.arange(4), hosts)) % hosts, 1e8),
        transport=nscc(11e-3, RATE, 4086.0),
    )  # fmt: skip
    assert problem.dt == pytest.approx(1e-6)
    state = jax.eval_shape(begin, problem, model)
    size = sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(state))
    assert size < 2.2 * 4000 * 4 * 4 * CELLS


def test_a_wire_that_outgrows_its_line_is_told() -> None:
    problem, model = case(stretched(100e-6), assemble([0], [4], [1e6]))
    longer = replace(model, links=replace(model.links, latency=model.links.latency * 3))
    assert int(simulate(problem, longer, steps=10).flags) & flags.RING_SHORT
