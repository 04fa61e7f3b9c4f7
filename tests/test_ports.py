"""Several ports a host: planes are shared out, and what one has no room for goes by the others."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.engine.problem import Problem, build
from fabsim.engine.simulate import simulate
from fabsim.models.model import Links, Model, Split
from fabsim.models.queue import TrimQueue
from fabsim.models.window import Window
from fabsim.routing import Routes, all_paths
from fabsim.topology import Fabric, leaf_spine
from fabsim.workload import shift

PLANES, RATE, SIZE = 2, 25e9, 2e6
WIRE = SIZE + 64 * np.ceil(SIZE / 4086)


def planes() -> tuple[Fabric, Routes]:
    """Two copies of a non-blocking leaf-spine that share nothing but the hosts, and all paths of a shift over both."""
    one = leaf_spine(2, 4, 4, rate=RATE, latency=1e-6)
    routes = all_paths(one, shift(8, SIZE, by=4))
    switches = len(one.names) - one.hosts

    def second(node: np.ndarray) -> np.ndarray:
        return np.where(node < one.hosts, node, node + switches)

    both = {name: np.concatenate([getattr(one, name)] * 2) for name in ("capacity", "latency", "buffer", "speed")}
    fabric = replace(
        one,
        names=(*one.names, *(f"b-{name}" for name in one.names[one.hosts :])),
        tier=np.concatenate([one.tier, one.tier[one.hosts :]]),
        pod=np.concatenate([one.pod, one.pod[one.hosts :]]),
        src=np.concatenate([one.src, second(one.src)]),
        dst=np.concatenate([one.dst, second(one.dst)]),
        **both,
    )
    path = np.concatenate([routes.path, routes.path + one.links], 1)
    return fabric, Routes(path, np.concatenate([routes.weight] * 2, 1) / PLANES)


def made(fabric: Fabric, routes: Routes) -> tuple[Problem, Model[Window]]:
    one = jnp.ones(fabric.links)
    problem = build(fabric, shift(8, SIZE, by=4), routes)
    model = Model(
        Links(jnp.asarray(fabric.capacity, "float32"), jnp.asarray(fabric.latency, "float32")),
        TrimQueue(4e5 * one, 1e5 * one, 3e5 * one),
        Window(jnp.asarray(6e5)),
        Split(jnp.asarray(routes.weight, "float32")),
    )
    return problem, model


def completion(fabric: Fabric, routes: Routes) -> np.ndarray:
    return np.asarray(simulate(*made(fabric, routes), steps=160).completion)


def zero_load(rate: float) -> float:
    return WIRE / rate + 4e-6 + 3 * 4150 / RATE


def test_a_flow_uses_all_its_ports() -> None:
    fabric, routes = planes()
    problem, _ = made(fabric, routes)
    assert problem.planes == PLANES
    assert completion(fabric, routes) == pytest.approx(zero_load(PLANES * RATE), rel=2e-5)


def test_what_a_slow_port_has_no_room_for_goes_by_the_other() -> None:
    fabric, routes = planes()
    port = int(routes.path[0, 0, 0])
    capacity = fabric.capacity.copy()
    capacity[port] /= 4
    found = completion(replace(fabric, capacity=capacity), routes)
    assert found[0] == pytest.approx(zero_load(1.25 * RATE), rel=2e-3)
    assert found[1:] == pytest.approx(zero_load(PLANES * RATE), rel=2e-5)


def test_a_split_over_one_plane_leaves_the_other_idle() -> None:
    fabric, routes = planes()
    weight = routes.weight * (np.arange(routes.weight.shape[1]) < routes.weight.shape[1] // 2) * PLANES
    assert completion(fabric, Routes(routes.path, weight)) == pytest.approx(zero_load(RATE), rel=2e-5)


def test_gradients_through_ports_are_finite_and_name_the_slow_one() -> None:
    fabric, routes = planes()
    port = int(routes.path[0, 0, 0])
    capacity = fabric.capacity.copy()
    capacity[port] /= 4
    problem, model = made(replace(fabric, capacity=capacity), routes)
    last = jax.grad(lambda m: simulate(problem, m, steps=160).completion.max())
    slope = jax.jit(last, compiler_options={"xla_backend_optimization_level": 0})(model)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(slope))
    assert slope.links.capacity[port] < 0


@pytest.mark.parametrize(
    ("slow", "rate"),
    [
        (["h0->p1.leaf*"], 1.25),
        (["p1.leaf*->h4"], 1.25),
        (["h0->p1.leaf*", "p0.leaf*->h4"], 0.5),
        (["p1.leaf0->p1.spine*"], 1.5),
    ],
)
def test_no_run_beats_the_empty_fabric(slow: list[str], rate: float) -> None:
    """Links at a quarter of their rate, at the sender, the receiver, an end of each plane, or between: each plane has
    the rate of its slowest place. What is trimmed is sent again by both planes."""
    fabric = {"kind": "multi_plane", "planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "rate": "200 Gbps",
              "latency": "500 ns", "degraded": [{"link": link, "speed": 0.25} for link in slow]}  # fmt: skip
    traffic = [{"kind": "flows", "list": [{"src": 0, "dst": 4, "size": "8 MB"}]}]
    window = {"kind": "window", "window": "1.5 BDP"}
    scenario = {"fabric": fabric, "traffic": traffic, "routing": {"kind": "all"}, "transport": window}
    result = fabsim.run(fabsim.load(scenario), progress=False)
    wire = 8e6 + 64 * np.ceil(8e6 / 4086)
    assert result.zero_load[0] == pytest.approx(wire / (rate * RATE), rel=0.03)
    assert 0.999 < result.slowdown[0] < 1.2
