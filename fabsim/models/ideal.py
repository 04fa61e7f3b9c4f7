"""The ideal rate: every flow sends at its max-min fair share, known at once. A bound to hold laws against."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Ideal:
    """Rates are the weighted max-min fair shares of the flows that have something to send, for the split in use,
    beside the acknowledgements that links carry the other way, recomputed each step by freezing the flows of local
    bottlenecks (see engine.fair).

    Attributes:
        share: fraction of the fair rate that is used, a scalar or [F]; 1 fills the bottleneck.
    """

    signals: ClassVar[bool] = False
    needs_fair: ClassVar[bool] = True
    telemetry: ClassVar[bool] = False
    share: Array

    def init(self, sender: Sender) -> tuple[()]:
        """There is no state."""
        return ()

    def offer(self, state: tuple[()], sender: Sender) -> Array:
        """The fair rate times one step."""
        assert sender.fair is not None
        return self.share * sender.fair

    def step(self, state: tuple[()], feedback: Feedback, sender: Sender) -> tuple[()]:
        """Nothing changes."""
        return state
