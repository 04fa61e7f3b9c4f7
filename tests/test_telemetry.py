"""In-band telemetry: a law reads the queues and loads of its path as they were when its packets passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.setup import prepare
from fabsim.engine.simulate import simulate
from fabsim.models.protocol import Feedback, Sender
from fabsim.routing import ecmp
from fabsim.topology import Change, degrade, leaf_spine
from fabsim.workload import assemble
from tests.small import RATE, case


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Reader:
    """Sends at line rate and keeps what it read last."""

    signals: ClassVar[bool] = False
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = True
    shape: jax.Array

    def init(self, sender: Sender) -> tuple[Any, ...]:
        return (self.shape,) * 4

    def offer(self, state: tuple[Any, ...], sender: Sender) -> jax.Array:
        return sender.rate

    def step(self, state: tuple[Any, ...], feedback: Feedback, sender: Sender) -> tuple[Any, ...]:
        path = feedback.path
        assert path is not None
        return path.queue, path.grown, path.sent, path.capacity


def test_a_law_reads_each_port_of_each_path_as_late_as_its_packets_are() -> None:
    """Two flows over two spines of unequal speed, and one below its own leaf: against the frames of single steps."""
    fabric = degrade(leaf_spine(2, 2, 2, rate=RATE, latency=1.13e-6), [Change("leaf0->spine1", speed=0.3)])
    flows = assemble([0, 1, 3], [2, 2, 2], 1e8, start=[0, 2e-6, 3e-6])
    steps, law = 40, Reader(jnp.zeros((3, 3, 2), "float32"))
    problem, model = case(fabric, flows, transport=law, dt=1e-6)
    assert problem.route.shape == (3, 3, 2)  # hops behind the NIC, flows, paths
    trace = simulate(problem, model, steps=steps, every=1)
    s = prepare(problem, model)
    route, unit = np.asarray(problem.route), float(problem.unit)
    queue = np.pad(np.asarray(trace.frames.queue), ((0, 0), (0, 1))) / unit
    sent = np.pad(np.asarray(trace.frames.sent), ((0, 0), (0, 1))) / unit
    seen, grown, load, capacity = (np.asarray(x) for x in trace.state.law)
    checked = 0
    for hop, flow, lane in np.ndindex(route.shape):
        link = route[hop, flow, lane]
        if link == fabric.links:
            continue
        late = steps - 1 - (2 - hop) - float(s.beyond_mean[flow] + s.back[flow])
        at, part = int(np.floor(late)), late - np.floor(late)
        assert seen[hop, flow, lane] == pytest.approx(
            (1 - part) * queue[at, link] + part * queue[at + 1, link], rel=1e-4
        )
        assert grown[hop, flow, lane] == pytest.approx(queue[at + 1, link] - queue[at, link], abs=1e-4)
        assert load[hop, flow, lane] == pytest.approx((1 - part) * sent[at, link] + part * sent[at + 1, link], rel=1e-4)
        assert capacity[hop, flow, lane] == pytest.approx(fabric.capacity[link] * 1e-6 / unit)
        checked += queue[at, link] > 0
    assert checked >= 4


def test_others_remember_no_steps() -> None:
    """But flows of several lanes, whose last packets on some met the queues of a while ago, a running mean of these."""
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=1.13e-6)
    flows = assemble([0, 1], [2, 3], 1e6)
    problem, model = case(fabric, flows)
    state = simulate(problem, model, steps=10).state
    assert state.links is None
    assert state.past is not None
    assert state.past.shape == state.ports.queue.shape
    one, model = case(fabric, flows, ecmp(fabric, flows, seed=1))
    assert simulate(one, model, steps=10).state.past is None
