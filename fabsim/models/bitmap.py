"""Bitmap: entropy values in turn, and a bad one is passed over for some rounds."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import NONE, everything
from fabsim.typing import Array

STAGES = 4
"""Stages of a penalty: with one, values would come back at any time; with very many, all at the same."""

LEAST = 0.02
"""Part of the values of a path that counts as free at least: if all had penalties, no path would have a share."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bitmap:
    """A sender goes through its entropy values in rounds; a mark, a trim or a timeout gives a value a penalty. A value
    with a penalty is passed over in its turn, and loses one; of several that follow each other only the first does.

    The penalty of a mark or a trim falls on a value that was just used, and so had none. With x, y and z the parts of a
    path's values that are passed over for a mark, a trim and a loss, E values of a flow, and e the shares of the paths
    among these, in a step:

        w ~ e g,    g = 1 - x - y - z,    dx = marked / (e E) - freed(x),    dy = trimmed / (e E) - freed(y),
                    dz = g (1 - exp(-missed / (g e E))) - freed(z)

    in packets. Losses are missed in lots (see recovery), some on one value, and penalties do not add up beyond
    the largest. As many packets go as come back, or are missed. Of E values in turn, each packet ends one row of values
    that are passed over, so a value loses one for every E packets: it is free after E times its penalty of them, in the
    mean exactly, and about so each one, since it goes through STAGES stages and leaves each at random (an Erlang
    distribution). At rest w is in proportion to e / (1 + (m mark + n trim + l loss) / f), for the parts m marked, n
    trimmed and l missed of what is sent, and f = sum of e g, the values that are free, if few are missed at a time.
    (The `bitmap` of uet-htsim: 1 for a mark, 4 for a trimmed packet, 15 for a timeout, and 15 at most.)

    Smooth but where next to all values of a path have penalties, and where a timeout more or less fits in.

    Attributes:
        mark, trim: penalties of a marked and of a trimmed packet, in turns; scalars or [F].
        entropies: values of a flow, a scalar or [F].
        loss: penalty of a packet that is missed after a timeout, as `mark`; None: none. Where nothing is lost in
            silence, there is nothing to miss.
    """

    misses: ClassVar[bool] = True
    mark: Array
    trim: Array
    entropies: Array
    loss: Array | None = None

    def init(self, base: Array, sender: Sender) -> Array:
        """[F, N, STAGES, K] parts that are passed over, for each of N reasons (a mark, a trim, a loss): none."""
        reasons = 2 if self.loss is None else 3
        return jnp.zeros((base.shape[0], reasons, STAGES, base.shape[1]), base.dtype)

    def split(self, state: Array, base: Array) -> Array:
        """By the turns that are used."""
        used = base * free(state)
        return used / used.sum(-1, keepdims=True)

    def step(self, state: Array, feedback: PathFeedback, base: Array, sender: Sender) -> Array:
        """New penalties, less those of the turns that were passed over."""
        return self.after(state, feedback, base, sender, everything(feedback))

    def after(self, state: Array, feedback: PathFeedback, base: Array, sender: Sender, sends: Array) -> Array:
        """The same, where penalties run off as in `sends` [F] units that are sent by turns."""
        values = jnp.broadcast_to(self.entropies, sends.shape) * sender.packet
        rounds = sends / values
        penalties = [x for x in (self.mark, self.trim, self.loss) if x is not None]
        turns = jnp.stack([jnp.broadcast_to(x, sends.shape) for x in penalties], -1)
        leaves = state * jnp.minimum(STAGES * rounds[:, None] / turns, 1.0)[:, :, None, None]
        own = (base * values[:, None])[:, None]
        fresh = jnp.stack([feedback.marked, feedback.trimmed], 1)
        fresh = jnp.where(own > 0, fresh / jnp.where(own > 0, own, 1.0), 0.0)
        if self.loss is not None:
            fresh = jnp.concatenate([fresh, self.missed(state, feedback, own)], 1)
        return state - leaves + jnp.concatenate([fresh[:, :, None], leaves[:, :, :-1]], 2)

    def missed(self, state: Array, feedback: PathFeedback, own: Array) -> Array:
        """[F, 1, K] parts of the values that are missed now, of those without a penalty; own: [F, 1, K] units of a
        round."""
        have = jnp.maximum(1.0 - state.sum((1, 2)), 0.0)[:, None]
        lost = jnp.zeros_like(own) if feedback.lost is None else feedback.lost[:, None]
        some = have * own > NONE
        return jnp.where(some, -have * jnp.expm1(-lost / jnp.where(some, have * own, 1.0)), 0.0)


def free(state: Array) -> Array:
    """[F, K] parts of the values of each path that have no penalty."""
    return jnp.maximum(1.0 - state.sum((1, 2)), LEAST)
