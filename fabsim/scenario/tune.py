"""A tuning from a scenario: equal split, split by capacity and tuned split, side by side."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import InputError
from fabsim.routing import all_paths, proportional
from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Model
    from fabsim.scenario.scenario import Scenario

DIRECTIONS = 4
"""Random directions along which the gradient is checked."""


@dataclass(frozen=True)
class Tuning:
    """What a tuning found. Seconds.

    Attributes:
        objective: its name.
        equal, proportional, tuned: the objective of an equal split, of one by capacity, and of the tuned one.
        history: [steps + 1] the objective on the way.
        weight: [F, K] tuned shares.
        exact, differences: [directions] derivatives of the smooth objective by autodiff and by differences (float64);
            empty where no check was asked for.
    """

    objective: str
    equal: float
    proportional: float
    tuned: float
    history: Float
    weight: Float
    exact: Float
    differences: Float


def tune(scenario: Scenario, *, check: bool = True, progress: bool = True) -> Tuning:
    """Run the `tune:` of a scenario, from an equal split over all paths.

    Args:
        check: compare the gradient with central differences, in float64, first.

    Raises:
        InputError: the scenario has nothing to tune, or its routing leaves no choice.
        Stopped: a flow does not complete.
    """
    from fabsim.study.tune import check_gradient
    from fabsim.study.tune import tune as descend

    plan = scenario.tune
    if plan is None:
        raise InputError(scenario.source.sentence((), "tune: this scenario has none; say what to tune under tune:"))
    base = scenario.single()
    net = base.network()
    equal_split, by_capacity = all_paths(net.fabric, net.flows), proportional(net.fabric, net.flows)
    if ((equal_split.weight > 0).sum(1) < 2).all():
        raise InputError(scenario.source.sentence(("tune",), "every flow has a single path: there is no split to tune"))
    exact = differences = np.zeros(0)
    if check:
        problem, model = compiled(base.change({"precision": "float64"}), equal_split)
        exact, differences = check_gradient(
            problem,
            model,
            last_completion=value(problem, model, "last_completion"),
            objective=plan.objective,
            directions=DIRECTIONS,
            seed=scenario.seed,
        )
    problem, model = compiled(base, equal_split)
    tuned = descend(
        problem,
        model,
        last_completion=value(problem, model, "last_completion"),
        objective=plan.objective,
        steps=plan.steps,
        optimiser=plan.optimiser,
        learning_rate=plan.learning_rate,
        progress=progress,
    )
    return Tuning(
        objective=plan.objective,
        equal=value(problem, model, plan.objective),
        proportional=value(*compiled(base, by_capacity), plan.objective),
        tuned=value(problem, tuned.model, plan.objective),
        history=tuned.history,
        weight=np.asarray(tuned.model.split.weight),
        exact=exact,
        differences=differences,
    )


def compiled(scenario: Scenario, routes: Any) -> tuple[Problem, Model[Any]]:
    """Problem and model of a scenario on other routes."""
    from fabsim.scenario.compile import assemble

    return assemble(scenario, dataclasses.replace(scenario.network(), routes=routes))


def value(problem: Problem, model: Model[Any], objective: Any) -> float:
    """The objective of a model, by a run to its end."""
    from fabsim.engine.run import run
    from fabsim.study.tune import true_value

    return float(true_value(run(problem, model, progress=False).trace.completion, objective))


def as_text(tuning: Tuning) -> str:
    """The outcome as a table."""
    name = tuning.objective.replace("_", " ")
    rows = [("equal split", tuning.equal), ("split by capacity", tuning.proportional), ("tuned split", tuning.tuned)]
    lines = [f"{'':18}  {name} (us)  against equal"]
    lines += [f"{text:18}  {x * 1e6:{len(name) + 5}.3f}  {100 * (x / tuning.equal - 1):+11.2f} %" for text, x in rows]
    if len(tuning.exact):
        worst = np.max(np.abs(tuning.exact / tuning.differences - 1))
        lines.append(f"gradient against central differences in float64: {worst:.1e} off at most, relative")
    return "\n".join(lines)
