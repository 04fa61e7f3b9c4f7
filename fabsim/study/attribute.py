"""Which number costs what: elasticities of an objective by every leaf of a model, from one backward pass."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fabsim.engine.problem import Problem
from fabsim.models.model import Model
from fabsim.study.objectives import Objective
from fabsim.typing import Array

SMALL = 3e7
"""Hops of subflows, times steps, below which the one pass that is made is shorter than what compiling it with care
takes longer (measured on a CPU: half the time to compile, and four times that of a pass)."""


def elasticities(
    problem: Problem, model: Model[Any], entry: Array, *, objective: Objective, entries: int, sharpness: float
) -> tuple[Array, Model[Any]]:
    """The objective (its weights in SI units; sharpness: see fabsim.study.objectives), and a model of elasticities.

    An elasticity of -0.3 says: 1 % more of this, 0.3 % less of the objective. Where load just equals capacity it is
    that of a *slower* link (fabsim.models.queue.TIE): of several equal links in a row the last one has it, and one of
    them alone, made faster, may do nothing.
    """
    work = problem.route.size * objective.steps
    hurried = work < SMALL and jax.default_backend() == "cpu"
    options: Any = {"xla_backend_optimization_level": 0} if hurried else None
    program = jax.jit(one_pass, static_argnames=("objective", "entries", "sharpness"), compiler_options=options)
    return program(problem, model, entry, objective=objective, entries=entries, sharpness=sharpness)


def one_pass(
    problem: Problem, model: Model[Any], entry: Array, *, objective: Objective, entries: int, sharpness: float
) -> tuple[Array, Model[Any]]:
    """The same, as it is compiled."""

    def value(model: Model[Any]) -> Array:
        figures = objective.figures(objective.see(problem, model, entry, entries), jnp.asarray(sharpness))
        return objective.total(figures, jnp.ones_like(figures))

    total, slope = jax.value_and_grad(value)(model)
    return total, jax.tree.map(lambda g, x: g * x / total, slope, model)
