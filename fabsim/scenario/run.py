"""Run a scenario: compile it, let the engine advance it, and keep what came out as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.collect import Watch, collect
from fabsim.results import Result
from fabsim.scenario.compile import Network, assemble
from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Model
    from fabsim.scenario.scenario import Scenario


def run(scenario: Scenario, *, progress: bool = True, watch: Watch = 32) -> Result:
    """Run one scenario to its end (`until`). Its cases, if any, are left aside: run each of `scenario.variants`.

    Args:
        progress: show a bar on stderr, where that is a terminal.
        watch: links whose series are kept: how many of the busiest, "all", or names.

    Raises:
        InputError: what contradicts itself, or does not fit the fabric.
        Stopped: the run could not go on or did not end.
    """
    net = scenario.network()
    problem, model = assemble(scenario, net)
    return advance(scenario, net, problem, model, progress=progress, watch=watch)


def advance(
    scenario: Scenario,
    net: Network,
    problem: Problem,
    model: Model[Any],
    *,
    name: str | None = None,
    progress: bool = True,
    watch: Watch = 32,
) -> Result:
    """Run a problem with a model that need not be the scenario's own (a tuned one); `name` it, if it is not."""
    from fabsim.engine.run import run as advance_engine

    every = max(1, round(scenario.every / float(problem.dt)))
    until = None if scenario.until == "done" else float(scenario.until)
    done = advance_engine(problem, model, until=until, every=every, progress=progress)
    return collect(
        done,
        net.fabric,
        net.flows,
        name=name or scenario.name,
        scenario=scenario.resolved(),
        seed=scenario.seed,
        zero_load=zero_load(scenario, net),
        buffer=net.queues.buffer,
        watch=watch,
    )


def zero_load(scenario: Scenario, net: Network) -> Float:
    """[F] s: each flow alone in the empty fabric, on the routes it has, from its start to its last byte's arrival.

    Bytes on the wire at the rate of the narrowest link for the share that it gets, then the propagation and one packet
    of store and forward at each link but the first, along the fastest path in use.
    """
    packet, path, weight = scenario.packet, net.routes.path, net.routes.weight
    wire = net.flows.size + packet.header * np.ceil(net.flows.size / (packet.mtu - packet.header))
    on_link = path >= 0
    flow = np.broadcast_to(np.arange(net.flows.count)[:, None, None], path.shape)[on_link]
    link = path[on_link]
    share = np.broadcast_to(weight[:, :, None], path.shape)[on_link]
    pairs, row = np.unique(flow.astype(np.int64) * net.fabric.links + link, return_inverse=True)
    load = np.bincount(row, weights=share)
    owner, at = np.divmod(pairs, net.fabric.links)
    seconds_per_byte = np.zeros(net.flows.count)
    capacity = net.fabric.capacity[at]
    np.maximum.at(seconds_per_byte, owner, np.divide(load, capacity, out=np.zeros_like(load), where=load > 0))
    slowness = np.where(on_link, 1.0 / np.maximum(net.fabric.capacity[path], 1e-300), 0.0)
    first = np.take_along_axis(slowness, on_link.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    forward = np.minimum(packet.mtu, wire)[:, None] * (slowness.sum(axis=2) - first)
    latency = np.where(on_link, net.fabric.latency[path], 0.0).sum(axis=2) + forward
    return wire * seconds_per_byte + np.where(weight > 0, latency, np.inf).min(axis=1)
