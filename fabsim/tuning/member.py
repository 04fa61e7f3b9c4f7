"""What a tuning looks at: one of its scenarios with its arrays, and how a parameter is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabsim.errors import InputError
from fabsim.scenario.compile.network import Network
from fabsim.scenario.keys.tune import Tuned
from fabsim.typing import Int

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Model
    from fabsim.scenario.scenario import Scenario

OTHERS = "split.weight, queue.buffer, what queue.links may say, links.capacity, traffic.start or a number of the "
OTHERS += "transport"
"""What can be tuned."""

Refuse = Callable[[str, str], InputError]
"""From a key of the parameter and a text to the error with its place."""


@dataclass(frozen=True)
class Member:
    """One of the scenarios that a tuning must be good for, with its arrays; routes are those that are tuned.

    `entry` is the traffic entry of each flow [F].
    """

    scenario: Scenario
    net: Network
    problem: Problem
    model: Model[Any]
    entry: Int


def own(entry: Tuned, allowed: Sequence[str], refuse: Refuse) -> str:
    """What has a value of its own; the first of `allowed` where nothing is said."""
    if entry.per is not None and entry.per not in allowed:
        raise refuse("per", f"{entry.key} has no value for each {entry.per}; use {' or '.join(allowed)}")
    return entry.per or allowed[0]
