"""Run a scenario: compile it, let the engine advance it, and keep what came out as tables."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fabsim.collect import Watch, collect, watched_links
from fabsim.errors import InputError, InputWarning
from fabsim.results import Result
from fabsim.scenario.compile.arrays import assemble
from fabsim.scenario.compile.classes import traffic_class
from fabsim.scenario.compile.collectives import collectives
from fabsim.scenario.compile.memory import refuse_too_large_for
from fabsim.scenario.compile.network import Network
from fabsim.scenario.compile.zero_load import zero_load
from fabsim.scenario.ensemble import ensemble
from fabsim.scenario.inert import inert
from fabsim.scenario.keys.transport import Mixed
from fabsim.scenario.keys.window import Credit
from fabsim.scenario.length import refuse_too_long
from fabsim.scenario.scenario import refuse_unloaded
from fabsim.scenario.validity import OutsideWarning, outside

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from fabsim.engine.problem import Problem
    from fabsim.models.model import Model
    from fabsim.scenario.scenario import Scenario


def run(scenario: Scenario, *, progress: bool = True, watch: Watch = 32, devices: int = 1) -> Result:
    """Run one scenario to its end (`until`). Its cases, if any, are left aside: run each of `scenario.variants`.

    With `seeds` the result is that of the first seed, and its `ensemble` has the figures of all. Warns
    (OutsideWarning) where a run lies outside of what has been compared with packets, and (InputWarning) of keys that
    change nothing, and of faults that befall no flow.

    Args:
        progress: show a bar on stderr, where that is a terminal.
        watch: links whose series are kept: how many of the busiest, "all", a name or names, or numbers. Names are those
            of `Result.link`, and patterns ("leaf0->*", "leaf0<->spine3", "spine0"), as in `sweep: watch:`.
        devices: over so many the flows are spread (the first ones of the kind in use).

    Raises:
        InputError: what contradicts itself, does not fit the fabric, or cannot be spread; more devices than there are;
            links to watch that are not there.
        Stopped: the run could not go on or did not end.
    """
    refuse_unloaded(scenario, "run")
    net = scenario.network()
    for text in outside(scenario, net):
        warnings.warn(f"{scenario.name}: {text}", OutsideWarning, stacklevel=2)
    if devices != 1:
        return spread_out(scenario, net, devices, progress=progress, watch=watch)
    problem, model = assemble(scenario, net)
    warn_of_inert(scenario, net, model)
    result = advance(scenario, net, problem, model, progress=progress, watch=watch)
    return replace(result, ensemble=ensemble(scenario, progress=progress)) if scenario.seeds > 1 else result


def spread_out(scenario: Scenario, net: Network, count: int, **options: Any) -> Result:
    """Run with the flows spread over `count` devices."""
    import jax

    from fabsim.engine.spread import first, in_host_memory, over

    if scenario.seeds > 1:
        text = f"{scenario.seeds} given, which run at once on one device; 1 seed, or 1 device, would do"
        raise InputError(scenario.source.sentence(("seeds",), text))
    if isinstance(scenario.transport, Credit | Mixed):
        text = f"{scenario.transport.kind} looks at the flows of other senders, which may be on other devices"
        raise InputError(scenario.source.sentence(("transport",), f"{text}; another transport, or 1 device, would do"))
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    there = jax.devices(chosen.platform if isinstance(chosen, jax.Device) else chosen)
    devices = first(count, there)
    refuse_too_large_for(devices, net.routes.path, 8 if scenario.precision == "float64" else 4)
    with in_host_memory():
        problem, model = assemble(scenario, net)
        warn_of_inert(scenario, net, model)
    return advance(scenario, net, problem, model, mesh=over(devices), **options)


def warn_of_inert(scenario: Scenario, net: Network, model: Model[Any]) -> None:
    """A warning for each key that changes nothing, and for each fault that befalls no flow."""
    for text in inert(scenario, net, model):
        warnings.warn(f"{scenario.name}: no effect: {text}", InputWarning, stacklevel=3)


def advance(
    scenario: Scenario,
    net: Network,
    problem: Problem,
    model: Model[Any],
    *,
    name: str | None = None,
    progress: bool = True,
    watch: Watch = 32,
    mesh: Mesh | None = None,
) -> Result:
    """Run a problem with a model that need not be the scenario's own (a tuned one); `name` it, if it is not."""
    from fabsim.engine.run import run as advance_engine

    links = watched_links(watch, net.fabric)
    refuse_too_long(scenario, net, float(problem.dt))
    every = scenario.steps_of_frame(float(problem.dt))
    until = None if scenario.until == "done" else float(scenario.until)
    done = advance_engine(problem, model, until=until, every=every, progress=progress, mesh=mesh)
    return collect(
        done,
        net.fabric,
        net.flows,
        name=name or scenario.name,
        scenario=scenario.resolved(),
        seed=scenario.seed,
        zero_load=zero_load(scenario, net),
        buffer=net.queues.buffer,
        watch=links,
        classes=[own.name for own in scenario.queue.classes] or ["all"],
        traffic_class=traffic_class(scenario, net.entry),
        collectives=collectives(scenario, net),
        entries=[f"traffic.{number}: {one.kind}" for number, one in enumerate(scenario.traffic)],
        entry=net.entry,
    )
