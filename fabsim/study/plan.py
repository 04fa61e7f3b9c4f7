"""How to descend: an optax rule by name, its schedule, when to stop, and what counts of several cases."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Literal

import optax

from fabsim.errors import InputError
from fabsim.typing import Float

Measure = Literal["mean", "worst", "cvar"]


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


def optimiser(name: str, learning_rate: float, schedule: str, steps: int) -> optax.GradientTransformationExtraArgs:
    """An optax rule by name.

    Raises:
        InputError: none is there of this name, it needs more than a learning rate, or it takes no schedule.
    """
    if not _descends(name):
        able = [other for other in dir(optax) if _descends(other)]
        near = get_close_matches(name, able, 1, 0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(able)}"
        raise InputError(f"optax has no optimiser {name!r} that needs nothing but a learning rate; {hint}")
    if name == "lbfgs":
        return optax.lbfgs()
    make = getattr(optax, name)
    if schedule != "constant" and not _takes_a_schedule(make):
        raise InputError(f"{name} has one learning rate for all steps, and the schedule is {schedule}; "
                         "tune.schedule: constant, or another optimiser, would do")  # fmt: skip
    rate: Any = {
        "constant": learning_rate,
        "cosine": optax.cosine_decay_schedule(learning_rate, steps),
        "exponential": optax.exponential_decay(learning_rate, steps, 0.01),
    }[schedule]
    return optax.with_extra_args_support(make(learning_rate=rate))


def _descends(name: str) -> bool:
    """Whether optax has a rule of descent of this name that needs nothing but a learning rate. What scales a step by
    something (scale_by_rprop) is a part of such rules."""
    rule = getattr(optax, name, None)
    if name.startswith("scale_by_") or not inspect.isfunction(rule):
        return False
    told = inspect.signature(rule)
    rest = [p for p in told.parameters.values() if p.name != "learning_rate"]
    alone = "learning_rate" in told.parameters and all(p.default is not p.empty for p in rest)
    return alone and "Transformation" in str(told.return_annotation)


def _takes_a_schedule(rule: Callable[..., Any]) -> bool:
    """Whether its learning rate may be a function of the step; optax says so in its types."""
    kind = str(inspect.signature(rule).parameters["learning_rate"].annotation)
    return "Callable" in kind or "Schedule" in kind


def settled(history: Float, plan: Plan) -> bool:
    """Whether the best figure has stood still for `patience` steps."""
    if plan.tolerance <= 0 or len(history) <= plan.patience:
        return False
    before, now = history[: -plan.patience].min(), history.min()
    return bool(before - now < plan.tolerance * before)
