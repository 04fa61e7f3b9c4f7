"""Bitmap: entropy values in turn, and a bad one is passed over for some rounds."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import everything
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bitmap:
    """A sender goes through its entropy values in rounds; a mark or a trim gives a value a penalty, and each time that
    a value with a penalty has its turn it is passed over and loses one.

    With x the penalties of a path for each of its values, spread over these at random, exp(-x) of its turns are used.
    A flow of E values that takes V turns in a step, with e the shares of the paths among the values:

        w ~ e exp(-x),    dx = (penalties on the path) / (e E) - (V / E) (1 - exp(-x))

    At rest w is in proportion to e / (1 + m mark + n trim), for the parts m marked and n trimmed of what comes back.
    V is such that what comes back makes as much go. (The `bitmap` of uet-htsim: 1 for a mark, 4 for a trimmed packet;
    its 15 for a timeout is left out, since here the sender does not learn which path lost a packet in silence.)

    Smooth.

    Attributes:
        mark, trim: penalties of a marked and of a trimmed packet, scalars or [F].
        entropies: values of a flow, a scalar or [F].
    """

    mark: Array
    trim: Array
    entropies: Array

    def init(self, base: Array, sender: Sender) -> Array:
        """[F, K] penalties of a path for each of its values (x): none."""
        return jnp.zeros_like(base)

    def split(self, state: Array, base: Array) -> Array:
        """By the turns that are used."""
        used = base * jnp.exp(-state)
        return used / used.sum(-1, keepdims=True)

    def step(self, state: Array, feedback: PathFeedback, base: Array, sender: Sender) -> Array:
        """New penalties, and those of the turns that were passed over."""
        return self.after(state, feedback, base, sender, everything(feedback))

    def after(self, state: Array, feedback: PathFeedback, base: Array, sender: Sender, sends: Array) -> Array:
        """The same, where `sends` [F] units are sent by turns."""
        values = jnp.broadcast_to(self.entropies, sends.shape)[:, None]
        used = jnp.exp(-state)
        turns = (sends / sender.packet / (base * used).sum(-1))[:, None]
        mark, trim = (jnp.broadcast_to(x, sends.shape)[:, None] for x in (self.mark, self.trim))
        fresh = (mark * feedback.marked + trim * feedback.trimmed) / sender.packet[:, None]
        own = base * values
        gained = jnp.where(base > 0, fresh / jnp.where(base > 0, own, 1.0), 0.0)
        return jnp.maximum(state + gained - turns / values * (1.0 - used), 0.0)
