"""Bitmap: entropy values in turn, and a bad one is passed over for some rounds."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import everything
from fabsim.typing import Array

LEAST = 0.02
"""Part of the values of a path that counts as free at least: if all had penalties, no path would have a share."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bitmap:
    """A sender goes through its entropy values in rounds; a mark or a trim gives a value a penalty, and each time that
    a value with a penalty has its turn it is passed over and loses one.

    A penalty falls on a value that was just used, and so had none. With x and y the parts of a path's values that are
    passed over for a mark and for a trim, E values of a flow, e the shares of the paths among these, and r rounds in a
    step:

        w ~ e (1 - x - y),    dx = marked / (e E) - r x / mark,    dy = trimmed / (e E) - r y / trim

    in packets. At rest w is in proportion to e / (1 + m mark + n trim), for the parts m marked and n trimmed of what
    comes back. There are as many rounds as make what comes back go again. (The `bitmap` of uet-htsim: 1 for a mark, 4
    for a trimmed packet; its 15 for a timeout is left out, since here the sender does not learn which path lost a
    packet in silence.)

    Smooth but where next to all values of a path have penalties.

    Attributes:
        mark, trim: penalties of a marked and of a trimmed packet, in turns; scalars or [F].
        entropies: values of a flow, a scalar or [F].
    """

    mark: Array
    trim: Array
    entropies: Array

    def init(self, base: Array, sender: Sender) -> tuple[Array, Array]:
        """[F, K] parts that are passed over for a mark, and for a trim: none."""
        return jnp.zeros_like(base), jnp.zeros_like(base)

    def split(self, state: tuple[Array, Array], base: Array) -> Array:
        """By the turns that are used."""
        used = base * free(state)
        return used / used.sum(-1, keepdims=True)

    def step(
        self, state: tuple[Array, Array], feedback: PathFeedback, base: Array, sender: Sender
    ) -> tuple[Array, Array]:
        """New penalties, less those of the turns that were passed over."""
        return self.after(state, feedback, base, sender, everything(feedback))

    def after(
        self, state: tuple[Array, Array], feedback: PathFeedback, base: Array, sender: Sender, sends: Array
    ) -> tuple[Array, Array]:
        """The same, where `sends` [F] units are sent by turns."""
        values = jnp.broadcast_to(self.entropies, sends.shape) * sender.packet
        rounds = sends / values / (base * free(state)).sum(-1)
        own = base * values[:, None]
        scale = jnp.where(own > 0, 1.0 / jnp.where(own > 0, own, 1.0), 0.0)

        def moved(part: Array, fresh: Array, turns: Array) -> Array:
            half = jnp.exp(-0.5 * rounds / turns)[:, None]  # fresh ones come in the middle of the step, as it were
            return (part * half + fresh * scale) * half

        marked, trimmed = state
        return moved(marked, feedback.marked, self.mark), moved(trimmed, feedback.trimmed, self.trim)


def free(state: tuple[Array, Array]) -> Array:
    """[F, K] parts of the values of each path that have no penalty."""
    marked, trimmed = state
    return jnp.maximum(1.0 - marked - trimmed, LEAST)
