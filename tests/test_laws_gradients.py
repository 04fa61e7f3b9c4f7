"""Every transport is swept and differentiated in one program, by all its parameters at once, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.simulate import simulate
from fabsim.models.dcqcn import Dcqcn
from fabsim.models.dctcp import Dctcp
from fabsim.models.hpcc import Hpcc
from fabsim.models.powertcp import PowerTcp
from fabsim.models.rccc import Rccc
from fabsim.models.rccc_oversubscribed import RcccOversubscribed
from fabsim.models.swift import Swift
from fabsim.models.timely import PatchedTimely, Timely
from fabsim.topology import single_switch
from fabsim.workload import assemble
from tests.small import RATE, case

RTT = 8e-6
PRODUCT = RATE * RTT
STEP = 1e-7
"""Relative, and too small to cross a kink: a port counts as full within 1e-6 of its rate."""

TIMES = {"low": 3e-6, "high": 30e-6, "shortest": 8e-6, "segment": 8e3, "smoothing": 0.7, "least": 1e6}
LAWS: dict[str, Any] = {
    "dctcp": Dctcp(first=0.6 * PRODUCT, largest=3 * PRODUCT, gain=0.2, increase=3.0),
    "swift": Swift(
        first=0.6 * PRODUCT, base=10e-6, per_hop=0.5e-6, hops=1.0, range=9e-6, least=0.1, most=100.0,
        largest=3 * PRODUCT, increase=3.0, beta=0.8, deepest=0.5,
    ),
    "dcqcn": Dcqcn(
        first=0.6 * RATE, strength=0.7, gain=0.1, increase=0.1 * RATE, cut_period=11e-6, gain_period=9e-6,
        raise_period=7e-6, raise_bytes=5e4, recovery=2.0, least=1e6,
    ),
    "timely": Timely(first=0.5 * RATE, increase=0.02 * RATE, beta=0.8, **TIMES),
    "patched_timely": PatchedTimely(first=0.5 * RATE, increase=0.02 * RATE, beta=0.3, **TIMES),
    "hpcc": Hpcc(network_rtt=RTT, rate=RATE, eta=0.95, increase=0.02 * PRODUCT, stages=5.0),
    "rccc": Rccc(first=0.8 * PRODUCT, pace=0.93, turn=4.0),
    "rccc_oversubscribed": RcccOversubscribed(
        first=0.8 * PRODUCT, pace=0.93, turn=4.0, least=0.2, network_rtt=RTT, target=0.1, increase=0.03, decrease=0.6,
        smoothing=0.4,
    ),
    "powertcp": PowerTcp(network_rtt=RTT, rate=RATE, gamma=0.1, beta=0.03 * PRODUCT),
}  # fmt: skip


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """float64, for the tests of this file only."""
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", LAWS)
def test_sweeps_and_differentiates_by_all_its_parameters(name: str) -> None:
    """Three members of a sweep, a little apart: their differences are the gradient of the middle one."""
    flows = assemble([1, 2, 3], 0, 1e8, start=[0, 1.3e-6, 7.1e-6])
    law = jax.tree.map(lambda x: jnp.asarray(x, "float64"), LAWS[name])
    fabric = single_switch(4, rate=RATE, latency=1.97e-6)
    problem, model = case(fabric, flows, transport=law, buffer=4e5, ecn=(0.01, 0.9), dtype="float64")
    leaves, kind = jax.tree.flatten(law)
    way = np.random.default_rng(3).uniform(0.3, 1.0, len(leaves)) * np.where(np.arange(len(leaves)) % 2, -1, 1)

    def queue(by: jax.Array, problem: Any, model: Any) -> jax.Array:
        changed = kind.unflatten([leaf * (1 + by * part) for leaf, part in zip(leaves, way, strict=True)])
        trace = simulate(problem, replace(model, transport=changed), steps=60, every=20, checkpoint=False)
        return trace.frames.queue[1:, problem.at.last[0, 0]].mean() / PRODUCT

    both = jax.vmap(jax.value_and_grad(queue), in_axes=(0, None, None))
    quick = {"xla_backend_optimization_level": 0}  # half the time to compile
    found = jax.jit(both, compiler_options=quick)(jnp.asarray([-STEP, 0, STEP]), problem, model)
    values, slopes = (np.asarray(x) for x in found)
    assert values[1] > 0.01
    assert np.abs(slopes[1]) > 1e-4
    assert (values[2] - values[0]) / (2 * STEP) == pytest.approx(float(slopes[1]), rel=1e-3)
