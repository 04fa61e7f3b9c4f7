"""Run a scenario: compile it, let the engine advance it, and keep what came out as tables."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fabsim.collect import Watch, collect
from fabsim.results import Result
from fabsim.scenario.compile import Network, assemble
from fabsim.scenario.ensemble import ensemble
from fabsim.scenario.validity import OutsideWarning, outside
from fabsim.scenario.zero_load import zero_load

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Model
    from fabsim.scenario.scenario import Scenario


def run(scenario: Scenario, *, progress: bool = True, watch: Watch = 32) -> Result:
    """Run one scenario to its end (`until`). Its cases, if any, are left aside: run each of `scenario.variants`.

    With `seeds` the result is that of the first seed, and its `ensemble` has the figures of all. Warns
    (OutsideWarning) where a run lies outside of what has been compared with packets.

    Args:
        progress: show a bar on stderr, where that is a terminal.
        watch: links whose series are kept: how many of the busiest, "all", or names.

    Raises:
        InputError: what contradicts itself, or does not fit the fabric.
        Stopped: the run could not go on or did not end.
    """
    net = scenario.network()
    for text in outside(scenario, net):
        warnings.warn(f"{scenario.name}: {text}", OutsideWarning, stacklevel=2)
    problem, model = assemble(scenario, net)
    result = advance(scenario, net, problem, model, progress=progress, watch=watch)
    return replace(result, ensemble=ensemble(scenario, progress=progress)) if scenario.seeds > 1 else result


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
