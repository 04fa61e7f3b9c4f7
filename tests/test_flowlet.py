"""Flowlets: how often a flow changes its path, and to which."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.cli import main
from fabsim.engine.problem import Problem
from fabsim.engine.run import run
from fabsim.engine.simulate import Trace, begin, keep_going, simulate
from fabsim.models.chance import dice
from fabsim.models.flowlet import Flowlet, draw
from fabsim.models.protocol import PathFeedback, Sender
from fabsim.routing import all_paths
from fabsim.topology import leaf_spine
from fabsim.workload import shift
from tests.small import RATE, case, slopes

FLOWS, SPINES = 512, 4
EVEN = jnp.full((FLOWS, SPINES), 1.0 / SPINES)
ONE = jnp.asarray(1.0)


def changes(packets: np.ndarray, timeout: float, base: jax.Array = EVEN) -> np.ndarray:
    """[F] how often each of many flows draws a path, if they send so many packets in each step. A draw may give the
    path that it has: dice tell."""
    law, each = Flowlet(jnp.asarray(timeout)), jnp.ones(FLOWS)
    none = PathFeedback(*(jnp.zeros_like(base) for _ in range(3)))
    sender = Sender(ONE, ONE, each, each, each, each, 0 * each, jnp.asarray(dice(1, FLOWS)))

    def step(carry: tuple[Any, jax.Array, jax.Array], sent: jax.Array) -> tuple[Any, None]:
        state, in_flight, count = carry
        told = replace(sender, in_flight=in_flight + sent)
        after = law.step(state, none, base, told)
        return (after, told.in_flight, count + (after.dice != state.dice)), None

    start = (law.init(base, sender), 0 * each, jnp.zeros(FLOWS, int))
    return np.asarray(jax.lax.scan(step, start, jnp.asarray(packets, "float32"))[0][2])


@pytest.mark.parametrize(("rate", "timeout"), [(0.25, 8.0), (0.25, 16.0), (0.1, 40.0)])
def test_a_steady_flow_has_as_many_gaps_as_random_packets(rate: float, timeout: float) -> None:
    """r exp(-r T) a step: Poisson arrivals."""
    steps = 4000
    found = changes(np.full(steps, rate), timeout).mean() / steps
    assert found == pytest.approx(rate * math.exp(-rate * timeout), rel=0.03)


def test_a_burst_and_silence_are_one_gap() -> None:
    """Whatever the burst; and silence that is shorter than the timeout is none."""
    bursts = np.tile(np.repeat([12.0, 0.0], [5, 60]), 40)
    assert changes(bursts, 50.0).mean() == pytest.approx(40, abs=0.6)
    assert changes(bursts, 70.0).mean() < 0.01
    assert changes(np.tile(np.repeat([1.0, 0.0], [20, 60]), 40), 50.0).mean() == pytest.approx(40, abs=0.6)


def test_paths_are_drawn_with_the_chances_of_the_routing() -> None:
    base = jnp.tile(jnp.asarray([0.5, 0.0, 0.3, 0.2]), (20000, 1))
    share = np.bincount(np.asarray(draw(base, jnp.asarray(dice(3, 20000)))), minlength=4) / 20000
    assert share == pytest.approx([0.5, 0.0, 0.3, 0.2], abs=0.015)


FABRIC = leaf_spine(2, 8, 4, rate=RATE, latency=1e-6)
BDP = 4.4e5


def made(window: float, timeout: float, size: float = 2e6, **more: Any) -> tuple[Problem, Any]:
    """Eight flows through eight spines; window in bandwidth-delay products."""
    flows = shift(8, size, by=4)
    problem, model = case(FABRIC, flows, all_paths(FABRIC, flows), window=window * BDP, **more)
    law = Flowlet(jnp.asarray(timeout, model.links.capacity.dtype))
    return problem, replace(model, balancer=law)


def lanes(problem: Problem, model: Any, count: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """[T, F] the path of each flow, and [T, F] what it has still to send, in packets."""
    state, paths, left = begin(problem, model), [], []
    for _ in range(count // 5):
        state, _ = keep_going(problem, model, state, count=1, every=5)
        paths.append(np.asarray(state.balance.lane))
        left.append(np.asarray(state.flow.credit / problem.packet * problem.unit))
    return np.stack(paths), np.stack(left)


def test_a_continuous_flow_stays_on_its_path() -> None:
    """Flowlets do nothing for RDMA, whose packets leave no gap: it stays on a path drawn at random."""
    paths, left = lanes(*made(1.5, 10e-6))
    assert (left > 0).sum() > 60
    assert (paths == paths[0])[left > 0].all()
    assert len(set(paths[0])) < 8  # and some have one in common


def test_a_flow_that_waits_for_its_window_moves_once_a_round_trip() -> None:
    """A tenth of a bandwidth-delay product is sent in 0.9 us, and then nothing for 8 us."""
    problem, model = made(0.1, 3e-6, size=1.2e6)
    paths, left = lanes(problem, model)
    moved = (paths[1:] != paths[:-1]) & (left[1:] > 0)
    round_trips = (left > 0).sum(0) * 5 / 9
    assert (0.5 * round_trips < moved.sum(0) * 8 / 7).all()
    assert (moved.sum(0) < 1.2 * round_trips).all()


def sent_to_hosts(trace: Trace) -> float:
    """Bytes over the last hops."""
    into = (FABRIC.dst < FABRIC.hosts) & (FABRIC.src >= FABRIC.hosts)
    return float(np.asarray(trace.frames.sent)[:, into].sum())


def test_every_byte_arrives_once() -> None:
    problem, model = made(0.1, 3e-6, size=4e5)
    trace = simulate(problem, model, steps=200)
    assert np.isfinite(trace.completion).all()
    assert sent_to_hosts(trace) == pytest.approx(float(problem.size.sum()), rel=1e-5)


def test_another_seed_is_another_draw() -> None:
    def first(seed: int) -> np.ndarray:
        problem, model = made(1.5, 10e-6, seed=seed)
        return np.asarray(begin(problem, model).balance.lane)

    assert (first(1) == first(1)).all()
    assert (first(1) != first(2)).any()


def test_slopes_are_those_of_the_paths_as_they_are() -> None:
    def mean(problem: Problem, model: Any) -> jax.Array:
        return simulate(problem, model, steps=60).completion.mean()

    leaves = {"rate": lambda m: m.links.capacity, "time": lambda m: m.balancer.timeout}
    with jax.enable_x64(True):
        _, found = slopes(mean, *made(0.3, 3e-6, size=4e5, dtype="float64"), leaves)
    got, want = found["rate"]
    assert got == pytest.approx(want, rel=1e-4)
    assert found["time"][0] == 0.0


SCENARIO = {
    "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4, "rate": "400 Gbps",
               "latency": "1 us"},
    "routing": {"kind": "all"},
    "traffic": [{"kind": "shift", "size": "1 MB", "by": 4}],
    "transport": {"kind": "window", "window": "0.1 BDP"},
    "balancer": {"kind": "flowlet"},
}  # fmt: skip


def test_a_sweep_over_the_timeout(tmp_path: Path) -> None:
    """Timeouts are values of one program; short ones spread a flow that has gaps over all paths."""
    assert float(fabsim.load(SCENARIO).compile()[1].balancer.timeout) == pytest.approx(500e-6)
    sweep = {"grid": {"balancer.timeout": ["2 us", "3 us", "1 ms"]}, "metrics": ["last_completion"]}
    found = fabsim.sweep(fabsim.load(SCENARIO | {"sweep": sweep}), progress=False)
    values = np.asarray(found["last_completion"], float).reshape(-1)
    alone = fabsim.run(fabsim.load(SCENARIO, balancer__timeout="2 us"), progress=False)
    assert values[0] == pytest.approx(alone.completion.max(), rel=1e-4)
    assert np.isfinite(values).all()


def test_a_flow_on_a_path_that_dies_takes_another_one() -> None:
    """Told so, at once; else by the gap before its timeout, which is not there if the flowlet's is longer."""

    def last(**changes: Any) -> float:
        scenario = fabsim.load(SCENARIO, traffic=[{"kind": "shift", "size": "4 MB", "by": 4}], **changes)
        problem, model = scenario.compile()
        return float(run(problem, model, progress=False).trace.completion.max())

    dead = {
        "transport": {"kind": "window", "window": "1.5 BDP"},
        "balancer": {"kind": "flowlet", "timeout": "20 us"},
        "faults": [{"link": "spine1", "at": "20 us", "speed": 0}],
        "recovery": {"kind": "selective_repeat", "timeout": "100 us"},
    }
    told, silent = last(**dead, react="10 us"), last(**dead, react="1 s")
    assert last(**dead | {"faults": []}) < told < silent < 2e-3
    balancer = {"kind": "flowlet", "timeout": "500 us"}
    assert last(**dead | {"balancer": balancer}, react="1 s") > 100e-6 + 200e-6 + 400e-6 + 800e-6  # four timeouts


@pytest.mark.parametrize("plane", range(4))
def test_a_flow_whose_own_port_dies_takes_another_port(plane: int) -> None:
    """Whichever it was on; the sender sees its own ports at once, and draws none that is dead."""
    scenario = fabsim.load({
        "fabric": {"kind": "multi_plane", "planes": 4, "leaves": 2, "spines": 2, "hosts_per_leaf": 2,
                   "rate": "400 Gbps", "latency": "1 us"},
        "routing": {"kind": "all"}, "balancer": {"kind": "flowlet", "timeout": "20 us"},
        "transport": {"kind": "window", "window": "1.5 BDP"},
        "traffic": [{"kind": "shift", "size": "4 MB", "by": 2}],
        "faults": [{"link": f"h0->p{plane}.leaf0", "at": "20 us", "speed": 0}], "react": "10 us",
    })  # fmt: skip
    for seed in range(3):
        problem, model = scenario.change({"seed": seed}).compile()
        assert float(run(problem, model, progress=False).trace.completion.max()) < 3e-3


def test_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("balancer: {kind: flowlet, timeout: 50}\n")
    assert main(["check", str(file)]) == 2
    assert "balancer.timeout" in capsys.readouterr().err
