"""From a scenario to arrays: fabric, flows, routes, then the problem and the model.

Where a room below refuses its input, the sentence gets the place of the key that it speaks of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from fabsim.errors import InputError
from fabsim.routing import Routes
from fabsim.scenario.build import build_flows, build_routes
from fabsim.scenario.classes import classes_law, queues_a_port, traffic_class
from fabsim.scenario.contradictions.traffic import traffic_faults
from fabsim.scenario.fabrics import build_fabric
from fabsim.scenario.keys.balancer import Oblivious
from fabsim.scenario.laws import balancer_law, misses, recovery_law, transport_law
from fabsim.scenario.memory import refuse_too_large
from fabsim.scenario.queues import port_law, queues_of
from fabsim.scenario.schedule import schedule
from fabsim.scenario.source import KeyPath, PlacedError
from fabsim.topology import Change, Fabric, degrade
from fabsim.topology.baseline import Baseline, Queues, Scope, baseline
from fabsim.typing import Int
from fabsim.workload import Flows, check, merge

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Links, Model, Split
    from fabsim.scenario.scenario import Scenario


@dataclass(frozen=True)
class Network:
    """A scenario as numpy arrays: what the engine builds its problem from, and the figures derived on the way.

    `entry` [F] is the entry of `traffic` that each flow comes from.
    """

    fabric: Fabric
    flows: Flows
    entry: Int
    routes: Routes
    baseline: Baseline
    queues: Queues

    def scope(self, flows: slice = slice(None)) -> Scope:
        """What the senders of some flows know of the network."""
        return self.baseline.of_flows(self.fabric, self.flows.src[flows], self.flows.dst[flows])

    @property
    def ends(self) -> tuple[int, ...]:
        """For each entry of the traffic, the flow behind its last."""
        return tuple(int(end) for end in np.searchsorted(self.entry, np.unique(self.entry), side="right"))


def network(scenario: Scenario) -> Network:
    """Fabric, flows, routes and derived figures. Raises InputError with the place of each fault."""
    fabric = _fabric(scenario)
    flows, entry = _flows(scenario, fabric)
    with _at(scenario, ("routing",)):
        width = 8 if scenario.precision == "float64" else 4
        lanes = {"ecmp": getattr(scenario.routing, "queue_pairs", 1), "explicit": 1}.get(scenario.routing.kind)
        refuse_too_large(fabric, flows, lanes, width)
        routes = build_routes(scenario, fabric, flows)
    base = baseline(fabric, scenario.packet.mtu, scenario.packet.header)
    return Network(fabric, flows, entry, routes, base, queues_of(scenario, fabric, base))


def compile_scenario(scenario: Scenario) -> tuple[Problem, Model[Any]]:
    """Problem and model. Raises InputError with the place of each fault."""
    return assemble(scenario, network(scenario))


def assemble(scenario: Scenario, net: Network) -> tuple[Problem, Model[Any]]:
    """Problem and model of a network that is built already."""
    import jax
    import jax.numpy as jnp

    problem = problem_of(scenario, net)
    return problem, jax.tree.map(jnp.asarray, model_of(scenario, net, *fixed_of(scenario, net), problem.dt))


def problem_of(scenario: Scenario, net: Network) -> Problem:
    """The problem of a network: all but the parameters."""
    import jax

    from fabsim.engine.problem import build

    if scenario.precision == "float64":
        jax.config.update("jax_enable_x64", True)
    dt = None if scenario.dt == "auto" else float(scenario.dt)
    with _at(scenario, ("dt",)):
        problem = build(
            net.fabric, net.flows, net.routes,
            packet=scenario.packet.sizes, dt=dt, dtype=scenario.precision, seed=scenario.seed,
            traffic_class=traffic_class(scenario, net.entry), classes=queues_a_port(scenario),
        )  # fmt: skip
    return replace(problem, faults=schedule(scenario, net.fabric))


def fixed_of(scenario: Scenario, net: Network) -> tuple[Links, Split]:
    """The parameters that follow from the network alone, as numpy arrays."""
    from fabsim.models.model import Links, Split

    def real(values: Any) -> Any:
        return np.asarray(values, scenario.precision)

    fabric = net.fabric
    loss = None if fabric.loss is None else real(fabric.loss)
    return Links(real(fabric.capacity), real(fabric.latency), loss), Split(real(net.routes.weight))


def model_of(scenario: Scenario, net: Network, links: Links, split: Split, dt: SupportsFloat) -> Model[Any]:
    """All parameters, as numpy arrays: a sweep makes thousands of them. dt: s, the step of the problem."""
    from fabsim.models.model import Model

    def real(values: Any) -> Any:
        return np.asarray(values, scenario.precision)

    ports = port_law(scenario, net, dt, real)
    losing = links.loss is not None or any(event.loss or misses(scenario) for event in scenario.faults)
    silent = losing or not ports.trims
    recovery = recovery_law(scenario, net.scope(), real) if silent else None
    balancer = None if isinstance(scenario.balancer, Oblivious) else balancer_law(scenario, silent, real)
    law, classes = transport_law(scenario, net, real), classes_law(scenario, net, real)
    return Model(links, ports, law, split, recovery, balancer, classes)


def _fabric(scenario: Scenario) -> Fabric:
    with _at(scenario, ("fabric",)):
        fabric = build_fabric(scenario)
    with _at(scenario, ("fabric", "degraded")):
        return degrade(fabric, [Change(**vars(change)) for change in scenario.fabric.degraded], scenario.seed)


def _flows(scenario: Scenario, fabric: Fabric) -> tuple[Flows, Int]:
    """All flows, and the entry that each comes from."""
    faults = traffic_faults(scenario, fabric.hosts)
    if faults:
        raise InputError([scenario.source.sentence(path, text) for path, text in faults])
    parts = []
    for number, entry in enumerate(scenario.traffic):
        with _at(scenario, ("traffic", number)):
            seed = getattr(entry, "seed", None)
            own = scenario.seed + number if seed is None else seed
            parts.append(build_flows(scenario, number, fabric.hosts, own))
    with _at(scenario, ("traffic",)):
        flows = check(merge(parts), fabric.hosts)
    if not flows.count:
        raise InputError(scenario.source.sentence(("traffic",), "there is no flow; a run needs at least one"))
    return flows, np.repeat(np.arange(len(parts)), [part.count for part in parts])


@contextmanager
def _at(scenario: Scenario, path: KeyPath) -> Iterator[None]:
    """Give the sentences of a room below the place and key they speak of, unless they have a place already."""
    try:
        yield
    except PlacedError:
        raise
    except InputError as error:
        lines = [scenario.source.sentence(path, text.removeprefix(f"{path[-1]}: ")) for text in error.sentences]
        raise InputError(lines) from None
