"""A fixed window: the simplest transport, and the packet simulators' constant congestion control."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Window:
    """At most `window` bytes in flight; nothing reacts to congestion. What is trimmed is sent again (selective repeat).

    Oracle: a lone flow keeps max(0, window - bandwidth-delay product) bytes in the queue of its slowest link.

    Attributes:
        window: bytes on the wire, a scalar or [F]. The reference packet simulator's constant law uses 1.5 times the
            bandwidth-delay product of the longest path.
    """

    signals: ClassVar[bool] = False
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    window: Array

    def init(self, sender: Sender) -> tuple[()]:
        """There is no state."""
        return ()

    def offer(self, state: tuple[()], sender: Sender) -> Array:
        """What the window leaves free."""
        return jnp.maximum(self.window / sender.unit - sender.in_flight, 0.0)

    def step(self, state: tuple[()], feedback: Feedback, sender: Sender) -> tuple[()]:
        """Nothing changes."""
        return state
