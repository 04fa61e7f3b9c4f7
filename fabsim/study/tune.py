"""Tuning: descent through the simulator with optax, over any parameters, for one case or many at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm import tqdm

from fabsim.engine.problem import Problem
from fabsim.errors import InputError, Stopped
from fabsim.study.cases import Batch, Raw, each, value
from fabsim.study.descents import Descents
from fabsim.study.objectives import SHARPNESS, Objective
from fabsim.study.parameters import Parameter
from fabsim.study.plan import Plan, optimiser, settled
from fabsim.typing import Array, Float

SPARE = 1.5
"""A descent simulates this much longer than its starting point needs, so that worse points on the way still finish."""

ANNEAL = 10.0
"""From its first step to its last a descent sharpens its maxima by this factor, around SHARPNESS: smooth ones are
easier to follow, sharp ones are what is wanted."""

SPREAD = 1.0
"""Standard deviation of the raw numbers with which a restart begins."""


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What a descent found. R descents, M cases in their order of batches.

    Attributes:
        raw: raw numbers of the best point met, by the true objective.
        figures: [M, terms] true figures there, SI units.
        history: [steps + 1, R] the true objective, the starting point first; each term is 1, times its weight, at the
            start of the first descent, on average over the cases.
        smooth: [steps + 1, R] what was descended.
        terms: [steps + 1, R, terms] true figures on the way, on average over the cases.
    """

    raw: Raw
    figures: Float
    history: Float
    smooth: Float
    terms: Float


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
    log = Descents.open(journal, stamp, {"raw": raw, "state": state, "best": raw})
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


def steps_for(problem: Problem, last_completion: float) -> int:
    """Steps that a descent simulates, from the last completion of its starting point."""
    return int(np.ceil(last_completion * SPARE / float(problem.dt))) + problem.ring
