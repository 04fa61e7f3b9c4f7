"""Bitmap: entropy values in turn, and a bad one is passed over for some rounds."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import everything
from fabsim.typing import Array

STAGES = 4
"""Stages of a penalty: with one, values would come back at any time; with very many, all at the same."""

LEAST = 0.02
"""Part of the values of a path that counts as free at least: if all had penalties, no path would have a share."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bitmap:
    """A sender goes through its entropy values in rounds; a mark or a trim gives a value a penalty. A value with a
    penalty is passed over in its turn, and loses one; of several that follow each other only the first does.

    A penalty falls on a value that was just used, and so had none. With x and y the parts of a path's values that are
    passed over for a mark and for a trim, E values of a flow, and e the shares of the paths among these, in a step:

        w ~ e (1 - x - y),    dx = marked / (e E) - freed(x),    dy = trimmed / (e E) - freed(y)

    in packets. As many packets go as come back. Of E values in turn, each packet ends one row of values that are passed
    over, so a value loses one for every E packets: it is free after E times its penalty of them, in the mean exactly,
    and about so each one, since it goes through STAGES stages and leaves each at random (an Erlang distribution). At
    rest w is in proportion to e / (1 + (m mark + n trim) / f), for the parts m marked and n trimmed of what comes back,
    and f = sum of e (1 - x - y), the values that are free. (The `bitmap` of uet-htsim: 1 for a mark, 4 for a trimmed
    packet; its 15 for a timeout is left out, since here the sender does not learn which path lost a packet in silence.)

    Smooth but where next to all values of a path have penalties.

    Attributes:
        mark, trim: penalties of a marked and of a trimmed packet, in turns; scalars or [F].
        entropies: values of a flow, a scalar or [F].
    """

    mark: Array
    trim: Array
    entropies: Array

    def init(self, base: Array, sender: Sender) -> Array:
        """[F, 2, STAGES, K] parts that are passed over, for a mark and for a trim: none."""
        return jnp.zeros((base.shape[0], 2, STAGES, base.shape[1]), base.dtype)

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
        turns = jnp.stack([jnp.broadcast_to(x, sends.shape) for x in (self.mark, self.trim)], -1)
        leaves = state * jnp.minimum(STAGES * rounds[:, None] / turns, 1.0)[:, :, None, None]
        own = (base * values[:, None])[:, None]
        fresh = jnp.stack([feedback.marked, feedback.trimmed], 1)
        fresh = jnp.where(own > 0, fresh / jnp.where(own > 0, own, 1.0), 0.0)
        return state - leaves + jnp.concatenate([fresh[:, :, None], leaves[:, :, :-1]], 2)


def free(state: Array) -> Array:
    """[F, K] parts of the values of each path that have no penalty."""
    return jnp.maximum(1.0 - state.sum((1, 2)), LEAST)
