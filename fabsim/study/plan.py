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


def settled(history: Float, plan: Plan) -> bool:
    """Whether the best figure has stood still for `patience` steps."""
    if plan.tolerance <= 0 or len(history) <= plan.patience:
        return False
    before, now = history[: -plan.patience].min(), history.min()
    return bool(before - now < plan.tolerance * before)
