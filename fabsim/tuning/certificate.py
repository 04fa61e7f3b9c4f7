"""How good a tuning is: figures of equal split, split by capacity, tuned and best split, and what no split can beat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fabsim.routing import Routes, all_paths, proportional, utilisation
from fabsim.scenario.compile.ports import moved_along
from fabsim.tuning.member import Member
from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.cases import Batch
    from fabsim.study.objectives import Objective
    from fabsim.study.parameters import Parameter
    from fabsim.study.plan import Plan
    from fabsim.study.tune import Tuned


@dataclass(frozen=True)
class Row:
    """One way to set the parameters, and its figures: SI units, NaN where a figure was not asked for.

    Attributes:
        name: what it is.
        busy: line-rate seconds of the busiest link.
        terms: of the objective, and the last completion.
    """

    name: str
    busy: float
    terms: dict[str, float]


@dataclass(frozen=True)
class Tuning:
    """What a tuning found.

    Attributes:
        name: of the scenario.
        rows: start or equal split, split by capacity, tuned, optimum of the linear program, with their figures.
        optimum: line-rate seconds of the busiest link below which no split goes, with the capacities as tuned.
        parameters: what was tuned, as in `base`.
        tuned: raw numbers, history.
        levels: by key, values at the start and tuned, SI units: [G] levels or [G, K] shares.
        base: the scenario as it stood, with its arrays.
        busy: [2, L] line-rate seconds of each link, at the start and tuned.
        objective: what was made small.
        count: scenarios that it was tuned over.
        along: what becomes of ports that have levels of their own, in words.
        seconds: what descending took, compilation included.
    """

    name: str
    rows: list[Row]
    optimum: float
    parameters: tuple[Parameter, ...]
    tuned: Tuned
    levels: dict[str, tuple[Float, Float]]
    base: Member
    busy: Float
    objective: Objective
    count: int
    along: list[str]
    seconds: float


@dataclass(frozen=True)
class Task:
    """A tuning before its first step."""

    plan: Plan
    objective: Objective
    scales: Float
    base: Member
    members: list[Member]
    parameters: list[tuple[Parameter, ...]]
    batches: list[Batch]
    progress: bool


def figures(one: Member, objective: Objective, model: Any = None, problem: Any = None) -> dict[str, float]:
    """The terms of an objective, and the last completion, of a run to its end; true ones, SI units."""
    import jax.numpy as jnp

    from fabsim.engine.run import run
    from fabsim.study.objectives import Seen, busy_seconds, true_figures

    model, problem = one.model if model is None else model, one.problem if problem is None else problem
    trace = run(problem, model, progress=False).trace
    busy = busy_seconds(problem, model)
    completion, start = jnp.asarray(trace.completion), jnp.asarray(trace.start)
    peak, dropped = jnp.asarray(trace.frames.peak.max(0)), jnp.asarray(trace.frames.dropped.sum(0))
    seen = Seen(int(one.entry.max()) + 1, completion, start, peak, dropped, jnp.asarray(one.entry), busy)
    names = tuple(dict.fromkeys([name for name, _ in objective.weights] + ["last_completion"]))
    return dict(zip(names, np.asarray(true_figures(seen, names), float).tolist(), strict=True))


def report(scenario: Scenario, task: Task, tuned: Tuned, seconds: float) -> Tuning:
    """The rows, from runs to the end and from the linear program."""
    from fabsim.study.parameters import Shares, values_of

    split = any(isinstance(parameter, Shares) for parameter in task.parameters[0])
    ends = [ended(one, row, tuned.raw) for one, row in zip(task.members, task.parameters, strict=True)]
    at = [np.asarray(model.links.capacity, float) for _, model in ends]
    other = [paths(one) for one in task.members]
    best = [bound(one, routes, capacity) for one, (routes, _), capacity in zip(task.members, other, at, strict=True)]
    rows = []
    if not split:
        rows.append(row("as it stands", task, [one.model for one in task.members]))
        rows.append(idle("equal split", task, [routes for routes, _ in other], at))
        rows.append(idle("split by capacity", task, [routes for _, routes in other], at))
    else:
        rows.append(row("equal split", task, [one.model for one in task.members]))
        by_capacity = zip(task.members, other, strict=True)
        rows.append(
            row("split by capacity", task, [shared(one.model, routes.weight) for one, (_, routes) in by_capacity])
        )
    rows.append(row("tuned", task, [model for _, model in ends], [problem for problem, _ in ends]))
    lanes = [Routes(routes.path, one.split) for (routes, _), one in zip(other, best, strict=True)]
    if split:
        models = [shared(model, routes.weight) for (_, model), routes in zip(ends, lanes, strict=True)]
        rows.append(row("best split (LP)", task, models, [problem for problem, _ in ends]))
    else:
        rows.append(idle("best split (LP)", task, lanes, at))
    first = tuple(parameter.begin() for parameter in task.parameters[0])
    values = {
        parameter.name: (np.asarray(values_of(parameter, a), float), np.asarray(values_of(parameter, b), float))
        for parameter, a, b in zip(task.parameters[0], first, tuned.raw, strict=True)
    }
    busy = np.stack([seconds_of(task.members[0], model) for model in (task.members[0].model, ends[0][1])])
    optimum = over_members([one.certificate for one in best], task.plan)
    return Tuning(scenario.name, rows, optimum, task.parameters[0], tuned, values, task.base, busy, task.objective,
                  len(task.members), moved_along(scenario), seconds)  # fmt: skip


def ended(one: Member, row: Sequence[Parameter], raw: Any) -> Any:
    """Problem and model with the tuned values."""
    from fabsim.study.parameters import put_all

    return put_all(tuple(row), (one.problem, one.model), raw)


def paths(one: Member) -> tuple[Routes, Routes]:
    """All shortest paths in equal parts, and by capacity."""
    return all_paths(one.net.fabric, one.net.flows), proportional(one.net.fabric, one.net.flows)


def bound(one: Member, routes: Routes, capacity: Float) -> Any:
    """The optimum over all splits of the shortest paths."""
    from fabsim.study.bounds import min_max_utilisation

    return min_max_utilisation(routes, np.asarray(one.problem.size, float), capacity)


def shared(model: Any, weight: Float) -> Any:
    """The model with another split of the same lanes."""
    import jax.numpy as jnp

    return replace(model, split=replace(model.split, weight=jnp.asarray(weight, model.split.weight.dtype)))


def row(name: str, task: Task, models: Sequence[Any], problems: Sequence[Any] | None = None) -> Row:
    """Figures by runs to the end."""
    problems = [one.problem for one in task.members] if problems is None else problems
    runs = list(zip(task.members, models, problems, strict=True))
    bar = tqdm(runs, unit="run", desc=name, disable=None if task.progress else True, leave=False)
    each = [figures(one, task.objective, model, problem) for one, model, problem in bar]
    busy = [seconds_of(one, model).max() for one, model in zip(task.members, models, strict=True)]
    terms = {term: over_members([one[term] for one in each], task.plan) for term in each[0]}
    return Row(name, over_members(busy, task.plan), terms)


def idle(name: str, task: Task, routes: Sequence[Routes], capacity: Sequence[Float]) -> Row:
    """A row without runs: other paths than the scenario's."""
    busy = [
        utilisation(way, np.asarray(one.problem.size, float), rate).max()
        for one, way, rate in zip(task.members, routes, capacity, strict=True)
    ]
    return Row(name, over_members(busy, task.plan), {})


def seconds_of(one: Member, model: Any) -> Float:
    """[L] line-rate seconds of each link."""
    routes = Routes(one.net.routes.path, np.asarray(model.split.weight, float))
    return utilisation(routes, np.asarray(one.problem.size, float), np.asarray(model.links.capacity, float))


def over_members(values: Sequence[float], plan: Plan) -> float:
    """One number of all scenarios, as the plan measures them."""
    ordered = np.sort(np.asarray(values, float))
    worst = {"mean": len(ordered), "worst": 1, "cvar": max(math.ceil(plan.share * len(ordered)), 1)}
    return float(ordered[-worst[plan.measure] :].mean())
