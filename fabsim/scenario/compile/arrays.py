"""From a network to arrays: the problem that the engine advances, and the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from fabsim.scenario.compile.classes import classes_law, queues_a_port, traffic_class
from fabsim.scenario.compile.laws import balancer_law, loses_in_silence, recovery_law, transport_law
from fabsim.scenario.compile.network import Network, network, placed
from fabsim.scenario.compile.queues import port_law
from fabsim.scenario.compile.schedule import schedule
from fabsim.scenario.keys.balancer import Oblivious

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Links, Model, Split
    from fabsim.scenario.text.document import Document


def compile_scenario(scenario: Document) -> tuple[Problem, Model[Any]]:
    """Problem and model. Raises InputError with the place of each fault."""
    return assemble(scenario, network(scenario))


def assemble(scenario: Document, net: Network) -> tuple[Problem, Model[Any]]:
    """Problem and model of a network that is built already."""
    import jax
    import jax.numpy as jnp

    problem = problem_of(scenario, net)
    model = model_of(scenario, net, *fixed_of(scenario, net), problem.dt)
    return remembering(problem, model), jax.tree.map(jnp.asarray, model)


def problem_of(scenario: Document, net: Network) -> Problem:
    """The problem of a network: all but the parameters."""
    import jax

    from fabsim.engine.problem import build

    if scenario.precision == "float64":
        jax.config.update("jax_enable_x64", True)
    dt = None if scenario.dt == "auto" else float(scenario.dt)
    with placed(scenario, ("dt",)):
        problem = build(
            net.fabric, net.flows, net.routes,
            packet=scenario.packet.sizes, dt=dt, dtype=scenario.precision, seed=scenario.seed,
            traffic_class=traffic_class(scenario, net.entry), classes=queues_a_port(scenario),
        )  # fmt: skip
    return replace(problem, faults=schedule(scenario, net.fabric))


def remembering(problem: Problem, model: Model[Any]) -> Problem:
    """The problem with as many steps behind it as links are late to hear that they are to pause."""
    from fabsim.engine.problem import longer
    from fabsim.models.pfc import PfcQueue

    if not isinstance(model.queue, PfcQueue):
        return problem
    return longer(problem, float(np.max(model.queue.delay)) / float(problem.dt))


def fixed_of(scenario: Document, net: Network) -> tuple[Links, Split]:
    """The parameters that follow from the network alone, as numpy arrays."""
    from fabsim.models.model import Links, Split

    def real(values: Any) -> Any:
        return np.asarray(values, scenario.precision)

    fabric = net.fabric
    loss = None if fabric.loss is None else real(fabric.loss)
    return Links(real(fabric.capacity), real(fabric.latency), loss), Split(real(net.routes.weight))


def model_of(scenario: Document, net: Network, links: Links, split: Split, dt: SupportsFloat) -> Model[Any]:
    """All parameters, as numpy arrays: a sweep makes thousands of them. dt: s, the step of the problem."""
    from fabsim.models.model import Model

    def real(values: Any) -> Any:
        return np.asarray(values, scenario.precision)

    ports = port_law(scenario, net, dt, real)
    silent = loses_in_silence(scenario, links.loss)
    recovery = recovery_law(scenario, net.scope(), real) if silent else None
    balancer = None if isinstance(scenario.balancer, Oblivious) else balancer_law(scenario, silent, real)
    law, classes = transport_law(scenario, net, real), classes_law(scenario, net, real)
    return Model(links, ports, law, split, recovery, balancer, classes)
