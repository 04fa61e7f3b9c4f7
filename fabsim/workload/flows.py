"""Flows: who sends how much to whom, when, and after whom."""

from __future__ import annotations

from dataclasses import dataclass

from fabsim.typing import Float, Int


@dataclass(frozen=True)
class Flows:
    """What the hosts send. Shapes: F flows. SI units.

    A flow starts at `start`, or, where `trigger` is not -1, `start` seconds after its trigger has been activated
    `need` times. The completion of a flow activates each of its `fires` once. That one rule says all of: one flow after
    another (need 1), a barrier (need = number of predecessors), a window of w flows (the w-th next waits for need
    1, 2, 3, ...).

    A flow with `leader` = p >= 0 is coupled to flow p, as the flows of a ring all-reduce are: it may send its first
    `head` bytes at once, and then only what p has delivered, released in grains of `grain` bytes
    (0: as a perfect stream): sent <= head + grain floor(delivered_p / grain).

    Attributes:
        src, dst: [F] host numbers.
        size: [F] payload bytes (float64 whole numbers; above 2^31 is fine).
        start: [F] seconds.
        trigger: [F] trigger that this flow waits for, -1 for none.
        need: [F] activations of that trigger that are needed.
        fires: [F, E] triggers that the completion of this flow activates, -1 for none.
        fires_at_sender: [F] bool: the activations happen when the sender knows (last acknowledgement), not when the
            receiver has the last byte.
        leader: [F] flow to which this one is coupled, -1 for none.
        head, grain: [F] payload bytes; 0 where not coupled.
    """

    src: Int
    dst: Int
    size: Float
    start: Float
    trigger: Int
    need: Int
    fires: Int
    fires_at_sender: Int
    leader: Int
    head: Float
    grain: Float

    @property
    def count(self) -> int:
        """Number of flows."""
        return len(self.src)
