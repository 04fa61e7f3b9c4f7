"""Members of a batch that can never end, so that the others need not wait for them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from fabsim.engine import flags
from fabsim.engine.problem import Problem
from fabsim.engine.setup import LATER
from fabsim.engine.state import State
from fabsim.engine.stuck import cut_off_for_good, under_way
from fabsim.models.model import Model
from fabsim.typing import Bool, Int


def hopeless(
    problem: Problem, model: Model[Any], state: State, differs: tuple[Any, Any, Any], left: Bool, now: float
) -> Int:
    """[members] flags.CUT_OFF for those of which all flows under way are cut off for good, and no flow has a start to
    come, else 0.

    Args:
        problem, model, state: with the members on the last axis of the leaves that `differs` (trees of bools) names.
        left: [members] which to look at; each is fetched from the devices.
        now: s.
    """
    bits = np.zeros(len(left), np.int32)
    if problem.faults is None:
        return bits
    for number in np.flatnonzero(left).tolist():
        p, m, its = member((problem, model, state), differs, number)
        begun, starts = under_way(its), np.asarray(its.flow.start_in)
        to_come = (np.asarray(its.flow.begin) >= LATER) & (starts < LATER / 2)
        if begun.any() and not to_come.any() and cut_off_for_good(p, m.split.weight, its, now)[begun].all():
            bits[number] = flags.CUT_OFF
    return bits


def member(whole: Any, differs: Any, number: int) -> Any:
    """One of a batch."""
    return jax.tree.map(lambda x, own: x[..., number] if own else x, whole, differs)
