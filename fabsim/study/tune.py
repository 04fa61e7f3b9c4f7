"""Tuning: descent through the simulator with optax, over any parameters, for one case or many at once."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm import tqdm

from fabsim.engine.problem import Problem
from fabsim.errors import InputError, Stopped
from fabsim.models.model import Model
from fabsim.study.batch import shape_of, stack, widen
from fabsim.study.journal import Journal
from fabsim.study.objectives import SHARPNESS, Objective
from fabsim.study.parameters import Parameter, put_all
from fabsim.typing import Array, Float, Int

Measure = Literal["mean", "worst", "cvar"]
Raw = tuple[Array, ...]

SPARE = 1.5
"""A descent simulates this much longer than its starting point needs, so that worse points on the way still finish."""

ANNEAL = 10.0
"""From its first step to its last a descent sharpens its maxima by this factor, around SHARPNESS: smooth ones are
easier to follow, sharp ones are what is wanted."""

SPREAD = 1.0
"""Standard deviation of the raw numbers with which a restart begins."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """Cases of one shape, with a leading axis M on everything.

    Attributes:
        count, entries: M, and traffic entries of a case.
        problem, model: the cases as they stand.
        parameters: what is tuned, as each case has it (a group may be another set of flows in each).
        entry: [M, F] traffic entry of each flow.
    """

    count: int = dataclasses.field(metadata={"static": True})
    entries: int = dataclasses.field(metadata={"static": True})
    problem: Problem
    model: Model[Any]
    parameters: tuple[Parameter, ...]
    entry: Array


@dataclasses.dataclass(frozen=True)
class Plan:
    """How to descend.

    Attributes:
        optimiser: the name of an optax optimiser that needs nothing but a learning rate; "lbfgs" searches along a line.
        learning_rate: of the first step, in raw numbers.
        schedule: how it goes on: "constant", "cosine" (to 0) or "exponential" (to a hundredth) over all steps.
        steps: at most.
        restarts: descents from other points beside the first.
        tolerance, patience: stop when the best figure has not improved by this part in so many steps; 0 never stops.
        measure, share: what counts of several cases: the mean, the worst, or the mean of the worst `share`.
        seed: of the restarts.
    """

    optimiser: str = "adam"
    learning_rate: float = 0.1
    schedule: Literal["constant", "cosine", "exponential"] = "constant"
    steps: int = 60
    restarts: int = 0
    tolerance: float = 0.0
    patience: int = 20
    measure: Measure = "mean"
    share: float = 0.1
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What a descent found. R descents, M cases in their order of batches.

    Attributes:
        raw: raw numbers of the best point met, by the true objective.
        figures: [M, terms] true figures there, SI units.
        history: [steps + 1, R] the true objective, the starting point first; 1 is where the first descent began.
        smooth: [steps + 1, R] what was descended.
        terms: [steps + 1, R, terms] true figures on the way, on average over the cases.
    """

    raw: Raw
    figures: Float
    history: Float
    smooth: Float
    terms: Float


def batches(
    cases: Sequence[tuple[Problem, Model[Any]]], parameters: Sequence[tuple[Parameter, ...]], entries: Sequence[Int]
) -> list[Batch]:
    """Cases by shape: each batch is one program."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, (problem, model) in enumerate(cases):
        groups.setdefault((*shape_of(problem, model), int(entries[number].max())), []).append(number)
    return [
        Batch(
            count=len(members),
            entries=int(entries[members[0]].max()) + 1,
            problem=stack(widen([cases[i][0] for i in members])),
            model=stack([cases[i][1] for i in members]),
            parameters=stack([parameters[i] for i in members]),
            entry=stack([entries[i] for i in members]),
        )
        for members in groups.values()
    ]


def each(work: Callable[..., Any], count: int, *trees: Any) -> Any:
    """`work` for each entry of the leading axis, at once. On two CPU cores eight gradients at once take 0.56 of the
    time of one after the other for 8 hosts, 0.95 for 128: the cost of a step is in the number of its operations."""
    if count == 1:
        done = work(*jax.tree.map(lambda x: x[0], trees))
        return jax.tree.map(lambda x: x[None], done)
    return jax.vmap(work)(*trees)


def look(objective: Objective, some: Sequence[Batch], raw: Raw, sharpness: Array) -> tuple[Array, Array]:
    """[M, terms] smooth figures and true figures of all cases."""

    def one(batch: Batch) -> tuple[Array, Array]:
        case = put_all(batch.parameters, (batch.problem, batch.model), raw)
        seen = objective.see(*case, batch.entry, batch.entries)
        return objective.figures(seen, sharpness), objective.figures(seen, jnp.inf * sharpness)

    smooth, true = zip(*(each(one, batch.count, batch) for batch in some), strict=True)
    return jnp.concatenate(smooth), jnp.concatenate(true)


def over_cases(values: Array, plan: Plan, sharpness: Array) -> Array:
    """One number of the cases' [M]: their mean, the worst, or the mean of the worst share (conditional value at risk:
    Rockafellar and Uryasev, J. Risk 2(3), 2000)."""
    if plan.measure == "mean":
        return values.mean()
    if plan.measure == "cvar":
        worst = max(int(np.ceil(plan.share * values.size)), 1)
        return jnp.sort(values)[-worst:].mean()
    width = values.max() / jnp.where(jnp.isfinite(sharpness), sharpness, SHARPNESS)
    smooth = width * (jax.nn.logsumexp(values / width) - jnp.log(values.size))
    return jnp.where(jnp.isfinite(sharpness), smooth, values.max())


def value(
    objective: Objective, plan: Plan, raw: Raw, some: Sequence[Batch], scales: Array, sharpness: Array
) -> tuple[Array, tuple[Array, Array]]:
    """What is descended; the true objective and the true figures [M, terms] beside it."""
    smooth, true = look(objective, some, raw, sharpness)
    descended = over_cases(objective.total(smooth, scales), plan, sharpness)
    return descended, (over_cases(objective.total(true, scales), plan, jnp.inf * sharpness), true)


def optimiser(name: str, learning_rate: float, schedule: str, steps: int) -> optax.GradientTransformationExtraArgs:
    """An optax rule by name. Raises InputError for one that is not there or needs more than a learning rate."""
    make = getattr(optax, name, None)
    wanted = inspect.signature(make).parameters if inspect.isfunction(make) else {}
    alone = all(p.default is not p.empty or p.name == "learning_rate" for p in wanted.values())
    if make is None or "learning_rate" not in wanted or not alone:
        able = [n for n in dir(optax) if inspect.isfunction(rule := getattr(optax, n)) and _needs_only_a_rate(rule)]
        near = get_close_matches(name, able, 1, 0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(able)}"
        raise InputError(f"optax has no optimiser {name!r} that needs nothing but a learning rate; {hint}")
    if name == "lbfgs":
        return optax.lbfgs()
    rate: Any = {
        "constant": learning_rate,
        "cosine": optax.cosine_decay_schedule(learning_rate, steps),
        "exponential": optax.exponential_decay(learning_rate, steps, 0.01),
    }[schedule]
    return optax.with_extra_args_support(make(learning_rate=rate))


def _needs_only_a_rate(rule: Callable[..., Any]) -> bool:
    wanted = inspect.signature(rule).parameters
    rest = [p for p in wanted.values() if p.name != "learning_rate"]
    returns = str(inspect.signature(rule).return_annotation)
    return "learning_rate" in wanted and all(p.default is not p.empty for p in rest) and "Transformation" in returns


def starts(parameters: Sequence[Parameter], plan: Plan) -> Raw:
    """[R, ...] where each descent begins: the first as the parameters say, the others scattered around it."""
    random = np.random.default_rng(plan.seed)
    first = [np.asarray(parameter.begin()) for parameter in parameters]
    noise = [random.normal(0, SPREAD, (plan.restarts + 1, *raw.shape)) for raw in first]
    return tuple(
        jnp.asarray(raw + np.where(np.arange(len(extra)).reshape(-1, *[1] * raw.ndim) == 0, 0, extra), raw.dtype)
        for raw, extra in zip(first, noise, strict=True)
    )


def tune(
    some: Sequence[Batch],
    objective: Objective,
    plan: Plan,
    scales: Float,
    *,
    journal: Path | None = None,
    stamp: str = "",
    progress: bool = True,
) -> Tuned:
    """Descend from the start that the parameters of the first batch say, and scattered points beside it.

    All of a step, the optimiser's rule included, is one compiled program. After each step its outcome is written to
    `journal`, whole or not at all; a journal with the same `stamp` is gone on from.

    Args:
        scales: [terms] what each term is measured by, SI units: its value at the start.

    Raises:
        InputError: no such optimiser.
        Inert: a parameter whose gradient is exactly zero.
        Stopped: an objective that is not finite in every descent (a flow did not complete), with the step.
    """
    rule = optimiser(plan.optimiser, plan.learning_rate, plan.schedule, plan.steps)
    parameters = jax.tree.map(lambda x: x[0], some[0].parameters)
    raw = starts(parameters, plan)

    def one(raw: Raw, state: Any, some: Sequence[Batch], scales: Array, sharpness: Array) -> Any:
        def descended(raw: Raw) -> tuple[Array, tuple[Array, Array]]:
            return value(objective, plan, raw, some, scales, sharpness)

        (smooth, (true, figures)), slope = jax.value_and_grad(descended, has_aux=True)(raw)
        updates, state = rule.update(
            slope, state, raw, value=smooth, grad=slope, value_fn=lambda raw: descended(raw)[0]
        )
        felt = jnp.stack([jnp.abs(part).max() for part in slope])
        return optax.apply_updates(raw, updates), state, smooth, true, figures, felt

    @jax.jit
    def advance(raw: Raw, state: Any, some: Sequence[Batch], scales: Array, sharpness: Array) -> Any:
        return each(lambda raw, state: one(raw, state, some, scales, sharpness), plan.restarts + 1, raw, state)

    state = jax.vmap(rule.init)(raw)
    log = Journal.open(journal, stamp, {"raw": raw, "state": state, "best": raw})
    with tqdm(total=plan.steps, initial=min(log.steps, plan.steps), unit="step", leave=False,
              disable=None if progress else True) as bar:  # fmt: skip
        while log.steps <= plan.steps and not settled(log.history, plan):
            sharp = SHARPNESS * ANNEAL ** (log.steps / max(plan.steps, 1) - 0.5)
            at = log.tree["raw"]
            after, state, smooth, true, figures, felt = advance(
                at, log.tree["state"], some, jnp.asarray(scales), jnp.asarray(sharp)
            )
            true = np.where(np.isfinite(np.asarray(true)), np.asarray(true), np.inf)
            if not np.isfinite(true).any():
                raise Stopped(f"tuning step {log.steps}: a flow does not complete any more; a smaller learning_rate "
                              "would do")  # fmt: skip
            if not log.steps:
                refuse_inert(parameters, np.asarray(felt).max(0))
            best = log.tree["best"]
            if true.min() < log.history.min(initial=np.inf):
                best = jax.tree.map(lambda x: jnp.broadcast_to(x[int(true.argmin())], x.shape), at)  # noqa: B023
            log = log.add({"raw": after, "state": state, "best": best}, true, np.asarray(smooth), np.asarray(figures))
            bar.update(int(log.steps > 1))
            bar.set_postfix_str(objective.shown(log.figures[-1, true.argmin()].mean(0)))
    place = np.unravel_index(log.history.argmin(), log.history.shape)
    return Tuned(
        raw=jax.tree.map(lambda x: x[0], log.tree["best"]),
        figures=log.figures[place],
        history=log.history,
        smooth=log.smooth,
        terms=log.figures.mean(2),
    )


class Inert(InputError):
    """Parameters whose gradient is exactly zero, by name."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            [f"{name}: its gradient is exactly zero: the objective does not depend on it" for name in names]
        )
        self.names = names


def refuse_inert(parameters: Sequence[Parameter], felt: Float) -> None:
    """Raises Inert for parameters whose gradient is exactly zero at all starts: nothing would ever move them."""
    names = [one.name for one, slope in zip(parameters, felt, strict=True) if slope == 0]
    if names:
        raise Inert(names)


def settled(history: Float, plan: Plan) -> bool:
    """Whether the best figure has stood still for `patience` steps."""
    if plan.tolerance <= 0 or len(history) <= plan.patience:
        return False
    before, now = history[: -plan.patience].min(), history.min()
    return bool(before - now < plan.tolerance * before)


def steps_for(problem: Problem, last_completion: float) -> int:
    """Steps that a descent simulates, from the last completion of its starting point."""
    return int(np.ceil(last_completion * SPARE / float(problem.dt))) + problem.ring
