"""The ideal split: no path is busier than it must be, known at once. A bound to hold balancers against."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from fabsim.models.protocol import PathFeedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class IdealSplit:
    """All flows at once are split so that the busiest links between switches are as idle as they can be, for what
    their two ends let them send now; the engine finds it from step to step (see engine.even).

    Each class of traffic looks at what of a link those that are served before it leave, and those beside it by weight;
    it does not make room for those behind it.

    Nothing is heard and nothing is late: also faults are known when they happen. Smooth almost everywhere: a path's
    busiest link may become another one.
    """

    evens: ClassVar[bool] = True

    def init(self, base: Array, sender: Sender) -> Array:
        """[F, K] the split: that of the routing."""
        return base

    def split(self, state: Array, base: Array) -> Array:
        """As it stands."""
        return state

    def step(self, state: Array, feedback: PathFeedback, base: Array, sender: Sender) -> Array:
        """What the engine has found."""
        assert feedback.even is not None
        return feedback.even
