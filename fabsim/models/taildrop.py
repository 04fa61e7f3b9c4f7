"""Tail drop: what does not fit into the buffer of a port is lost."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from fabsim.models.queue import TrimQueue


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TailDrop(TrimQueue):
    """A TrimQueue whose excess is lost in silence: no header goes on, and the sender misses it after a timeout.

    N senders at line rate C_in send W each into a port of capacity C: at most N W (1 - C / (N C_in)) stands there, and
    what exceeds the buffer is lost. See the model's recovery for what comes back, and when.
    """

    trims: ClassVar[bool] = False
