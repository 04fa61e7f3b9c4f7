"""REPS: entropy values that came back clean are used again."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fabsim.models.protocol import PathFeedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Reps:
    """A packet that comes back unmarked gives its path to the next one; else the next one draws a path anew.

    With w the shares of the paths among what came back, m the part of each that was marked or trimmed, a the part of
    the clean packets that acknowledgements name, and e the shares of a draw:

        w' = a w (1 - m) + M e,    M = 1 - a (1 - sum of w m)

    At rest w is in proportion to e / (1 - a (1 - m)); if all are named (a = 1), to e / m, and all goes where nothing is
    marked. The values that are kept are the last `memory` packets: w' comes into the split by 1 - exp(-packets /
    memory). All else that a flow remembers is on the wire. (Bonato et al., REPS, arXiv:2407.21625, with 8 values kept;
    the equation is its mean.)

    A draw is one of a packet, not of a round of all values: its packets come to a port at random, which wants a queue
    of its own (see GranularQueue). Smooth. Its freezing after a timeout is left out.

    Attributes:
        memory: packets, a scalar or [F].
        echo: part of the clean packets that are named (a), a scalar or [F].
    """

    memory: Array
    echo: Array

    def init(self, base: Array, sender: Sender) -> Array:
        """[F, K] the split: a draw."""
        return base

    def split(self, state: Array, base: Array) -> Array:
        """As it stands."""
        return state

    def step(self, state: Array, feedback: PathFeedback, base: Array, sender: Sender) -> Array:
        """The clean ones again, the others drawn anew."""
        again, heard = clean(feedback, self.echo), everything(feedback)
        return towards(state, recycled(again, heard, base), heard / sender.packet, self.memory)


def clean(feedback: PathFeedback, echo: Array) -> Array:
    """[F, K] units that came back without a mark, and whose paths are named."""
    named = jnp.broadcast_to(echo, feedback.acked.shape[:1])[:, None]
    return named * jnp.maximum(feedback.acked - feedback.marked, 0.0)


def everything(feedback: PathFeedback) -> Array:
    """[F] units that came back."""
    return jnp.maximum(feedback.acked + feedback.trimmed, 0.0).sum(-1)


def recycled(again: Array, heard: Array, other: Array) -> Array:
    """[F, K] shares of what is sent for `heard` [F]: `again` [F, K] on its own paths, the rest as `other` says."""
    some = heard > 1e-9
    shares = again / jnp.where(some, heard, 1.0)[:, None]
    return shares + jnp.maximum(1.0 - shares.sum(-1, keepdims=True), 0.0) * other


def towards(state: Array, split: Array, packets: Array, memory: Array) -> Array:
    """[F, K] the split after so many packets [F] of another one."""
    weight = -jnp.expm1(-packets / memory)[:, None]
    after = state + weight * (split - state)
    return after / after.sum(-1, keepdims=True)
