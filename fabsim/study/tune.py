"""Tuning: descent through the simulator with optax, from where the scenario stands."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm import tqdm

from fabsim.engine.problem import Problem
from fabsim.engine.simulate import simulate
from fabsim.errors import Stopped
from fabsim.models.model import Model, Split
from fabsim.typing import Array, Float

Objective = Literal["last_completion", "mean_completion"]

SHARPNESS = 100.0
"""The smooth maximum weighs a flow down by e for each percent that it is faster than the slowest: log-sum-exp of
completions over their largest value / SHARPNESS."""

SPARE = 1.5
"""The tuner simulates this much longer than its starting point needs, so that worse splits on the way still finish."""


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What a tuning found.

    Attributes:
        model: the best model met, by the true objective.
        history: [steps + 1] true objective in seconds, the starting point first.
        smooth: [steps + 1] the objective that was descended.
    """

    model: Model[Any]
    history: Float
    smooth: Float


def with_logits(model: Model[Any], logits: Array) -> Model[Any]:
    """The model split by the softmax of [F, K] logits over the lanes in use: rows sum to 1 by construction."""
    used = model.split.weight > 0
    weight = jax.nn.softmax(jnp.where(used, logits, -jnp.inf), axis=-1)
    return dataclasses.replace(model, split=Split(weight))


def logits_of(model: Model[Any]) -> Array:
    """The logits that give the model's own split."""
    weight = model.split.weight
    return jnp.where(weight > 0, jnp.log(jnp.where(weight > 0, weight, 1.0)), 0.0)


def true_value(completion: Array, objective: Objective) -> Array:
    """The objective as reported, in seconds."""
    return completion.max() if objective == "last_completion" else completion.mean()


def smooth_value(completion: Array, objective: Objective) -> Array:
    """The objective as descended: the last completion is a smooth maximum, else only the slowest flow would move."""
    if objective == "mean_completion":
        return completion.mean()
    width = completion.max() / SHARPNESS
    return width * jax.nn.logsumexp(completion / width) - width * jnp.log(completion.size)


def objective_of(
    problem: Problem, model: Model[Any], steps: int, objective: Objective
) -> Callable[[Array], tuple[Array, Array]]:
    """logits -> (smooth objective, true objective), through the simulator."""

    def value(logits: Array) -> tuple[Array, Array]:
        completion = simulate(problem, with_logits(model, logits), steps=steps).completion
        return smooth_value(completion, objective), true_value(completion, objective)

    return value


def steps_for(problem: Problem, last_completion: float) -> int:
    """Steps that a descent simulates, from the last completion of its starting point."""
    return int(np.ceil(last_completion * SPARE / float(problem.dt))) + problem.ring


def tune(
    problem: Problem,
    model: Model[Any],
    *,
    last_completion: float,
    objective: Objective = "last_completion",
    steps: int = 60,
    optimiser: str = "adam",
    learning_rate: float = 0.1,
    progress: bool = True,
) -> Tuned:
    """Descend over the split weights of every flow.

    Args:
        last_completion: of the model as it is, in seconds (from a run).
        steps: of the optimiser.
        optimiser: the name of an optax optimiser that takes a learning rate.

    Raises:
        Stopped: an objective that is not finite (a flow did not complete), with the step of the optimiser.
    """
    compute = jax.jit(
        jax.value_and_grad(objective_of(problem, model, steps_for(problem, last_completion), objective), has_aux=True)
    )
    rule = getattr(optax, optimiser)(learning_rate)
    logits = logits_of(model)
    state = rule.init(logits)
    history, smooth, best = [], [], (np.inf, logits)
    with tqdm(total=steps, unit="step", disable=None if progress else True, leave=False) as bar:
        for step in range(steps + 1):
            (descended, true), slope = compute(logits)
            if not np.isfinite(float(true)):
                raise Stopped(
                    f"tuning step {step}: a flow does not complete any more; a smaller learning rate would do"
                )
            history.append(float(true))
            smooth.append(float(descended))
            best = min(best, (float(true), logits), key=lambda pair: pair[0])
            bar.set_postfix_str(f"{float(true) * 1e6:.3f} us")
            if step < steps:
                bar.update()
                updates, state = rule.update(slope, state, logits)
                logits = jnp.asarray(optax.apply_updates(logits, updates))
    return Tuned(with_logits(model, best[1]), np.array(history), np.array(smooth))


def check_gradient(
    problem: Problem, model: Model[Any], *, last_completion: float, objective: Objective, directions: int, seed: int
) -> tuple[Float, Float]:
    """Directional derivatives by autodiff and by central differences, at a point a little off the model's own split.

    Off, because an even split over equal links is a tie: at a kink the two one-sided differences differ, and no
    central difference is a derivative. Give a problem in float64.
    """
    random = np.random.default_rng(seed)
    value = objective_of(problem, model, steps_for(problem, last_completion), objective)
    smooth = jax.jit(lambda logits: value(logits)[0])
    shape = model.split.weight.shape
    point = logits_of(model) + jnp.asarray(random.normal(0, 0.05, shape), model.split.weight.dtype)
    slope = jax.jit(jax.grad(smooth))(point)
    exact, differences = [], []
    for _ in range(directions):
        way = jnp.asarray(random.normal(0, 1, shape), point.dtype)
        h = 1e-6
        exact.append(float((slope * way).sum()))
        differences.append(float((smooth(point + h * way) - smooth(point - h * way)) / (2 * h)))
    return np.array(exact), np.array(differences)
