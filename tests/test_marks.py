"""Where congestion marks are set: when a byte leaves, or when it joins; at which ports."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.simulate import simulate
from fabsim.models.protocol import Feedback, Sender
from fabsim.models.window import Window
from fabsim.scenario import load
from fabsim.scenario.compile.arrays import compile_scenario
from fabsim.topology import Change, degrade, single_switch
from fabsim.typing import Array
from fabsim.workload import assemble
from tests.small import RATE, case


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Counting(Window):
    """A window that counts what is acknowledged, and how much of it was marked."""

    signals = True

    def init(self, sender: Sender) -> Any:
        return jnp.zeros((2, *sender.rate.shape))

    def offer(self, state: Any, sender: Sender) -> Array:
        return super().offer((), sender)

    def step(self, state: Any, feedback: Feedback, sender: Sender) -> Any:
        return state + jnp.stack([feedback.acked, feedback.marked])


def test_marks_at_enqueue_wait_with_their_bytes() -> None:
    """A lone window marks the same share m = Q / H of a standing queue Q wherever it is sampled. At enqueue the marked
    bytes of the queue, Q m, are late; while it filled, Q m / 2 more had joined marked than left so."""
    fabric = degrade(single_switch(2, rate=RATE, latency=1e-6), [Change("leaf0->h1", speed=0.5)])
    problem, model = case(
        fabric, assemble([0], [1], 1e8), transport=Counting(jnp.float32(4e5)), buffer=1e6, ecn=(0.0, 0.6), dt=2e-7
    )
    seen = {}
    for at_enqueue in (False, True):
        made = replace(model, queue=replace(model.queue, at_enqueue=at_enqueue))
        trace = simulate(problem, made, steps=800, every=100)
        queue, mark = float(trace.frames.queue[-1, 3]), float(trace.frames.queue[-1, 3]) / 6e5
        assert 0.4 < mark < 0.6
        assert trace.frames.marked[-1, 3] / trace.frames.sent[-1, 3] == pytest.approx(mark, rel=1e-3)
        seen[at_enqueue] = np.asarray(trace.state.law)[:, 0] * float(problem.unit), queue * mark
    (acked, leaving), _ = seen[False]
    (same, joining), waiting = seen[True]
    assert same == acked
    assert leaving - joining == pytest.approx(0.5 * waiting, rel=0.03)


def test_marks_in_a_scenario() -> None:
    text: dict[str, Any] = {
        "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "rate": "400 Gbps",
                   "latency": "1 us"},
        "traffic": [{"kind": "incast", "senders": 3, "size": "1 MB"}],
        "queue": {"kind": "trim", "ecn_at": "enqueue", "ecn_last_hop": False},
    }  # fmt: skip
    scenario = load(text)
    fabric = scenario.network().fabric
    queue = compile_scenario(scenario)[1].queue
    assert queue.at_enqueue
    never = np.asarray(queue.ecn_low) > 1e12
    assert (never == (fabric.dst < fabric.hosts)).all()
    assert not compile_scenario(load(text, {"queue.ecn_at": "dequeue"}))[1].queue.at_enqueue
