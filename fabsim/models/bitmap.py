"""Bitmap: entropy values in turn, and a bad one is passed over for some rounds."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import NONE, everything, ratio
from fabsim.typing import Array

STAGES = 4
"""Stages of a penalty: with one, values would come back at any time; with very many, all at the same."""

LEAST = 0.02
"""Part of the values of a path that counts as free at least: if all had penalties, no path would have a share."""

MOST = 15.0
"""Turns that a value is passed over at most, however often it was bad (uet-htsim)."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BitmapState:
    """What a sender remembers of its values.

    Attributes:
        passed: [F, N, STAGES, K] parts of each path's values that are passed over, for each of N reasons (a mark, a
            trim, a loss).
        more: [F, 2, K] marks and trims of these that count when the penalties they have are over.
        bad: [F, K] share of a path's packets that came back marked or trimmed, about a round trip ago.
    """

    passed: Array
    more: Array
    bad: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bitmap:
    """A sender goes through its entropy values in rounds; a mark, a trim or a timeout gives a value a penalty. A value
    with a penalty is passed over in its turn, and loses one; of several that follow each other only the first does.

    With x, y and z the parts of a path's values that are passed over for a mark, a trim and a loss, E values of a flow,
    and e the shares of the paths among these, in a step:

        w ~ e g,    g = 1 - x - y - z,    dx = marked / (e E) - freed(x),    dy = trimmed / (e E) - freed(y),
                    dz = g (1 - exp(-missed / (g e E))) - freed(z)

    in packets. Of E values in turn, each packet ends one row of values that are passed over, so a value loses one for
    every E packets: it is free after E times its penalty of them, in the mean exactly, and about so each one, since it
    goes through STAGES stages and leaves each at random (an Erlang distribution).

    A value that comes back bad for the first time has been used n = in flight / (E sum of e g) times more meanwhile,
    and a share h of these comes back bad, too: 1 / (1 + n h) of what is marked or trimmed begins a penalty (h: of a
    round trip ago, when the first ones came), and the rest of it waits until the value has served what it has, as far
    as all of it is no more than MOST turns. Losses are missed in lots (see recovery), some on one value, and do not
    add up.

    As many packets go as come back, or are missed. At rest w is in proportion to e / (1 + (m mark + n trim + l loss) /
    f), for the parts m marked, n trimmed and l missed of what is sent, and f = sum of e g, the values that are free, if
    few are missed at a time. (The `bitmap` of uet-htsim: 1 for a mark, 4 for a trimmed packet, 15 for a timeout.)

    Smooth but where next to all values of a path have penalties, or as many as they may, and where a timeout more or
    less fits in.

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

    def init(self, base: Array, sender: Sender) -> BitmapState:
        """No value has a penalty."""
        flows, lanes = base.shape
        reasons, real = 2 if self.loss is None else 3, base.dtype
        return BitmapState(
            jnp.zeros((flows, reasons, STAGES, lanes), real), jnp.zeros((flows, 2, lanes), real), jnp.zeros_like(base)
        )

    def split(self, state: BitmapState, base: Array) -> Array:
        """By the turns that are used."""
        used = base * free(state.passed)
        return used / used.sum(-1, keepdims=True)

    def step(self, state: BitmapState, feedback: PathFeedback, base: Array, sender: Sender) -> BitmapState:
        """New penalties, less those of the turns that were passed over."""
        return self.after(state, feedback, base, sender, everything(feedback))

    def after(
        self, state: BitmapState, feedback: PathFeedback, base: Array, sender: Sender, sends: Array
    ) -> BitmapState:
        """The same, where penalties run off as in `sends` [F] units that are sent by turns."""
        passed, values = state.passed, jnp.broadcast_to(self.entropies, sends.shape) * sender.packet
        own = (base * values[:, None])[:, None]
        came = jnp.stack([feedback.marked, feedback.trimmed], 1)
        fresh = ratio(came, own)
        used = sender.in_flight * ratio(sends, everything(feedback)) / (values * (base * free(passed)).sum(-1))
        begins = 1.0 / (1.0 + used[:, None] * state.bad)[:, None]
        leaves = served(passed, sends / values, self.turns(sends))
        over = leaves[:, :, -1].sum(1, keepdims=True)
        again = state.more * jnp.minimum(ratio(over, passed.sum((1, 2))[:, None]), 1.0)
        more = self.at_most(state.more - again + fresh * (1.0 - begins), passed)
        new = fresh * begins + again
        if self.loss is not None:
            new = jnp.concatenate([new, self.missed(passed, feedback, own)], 1)
        back = feedback.acked + feedback.trimmed
        weight = jnp.where(back > NONE, jnp.minimum(1.0 / sender.rtt, 1.0)[:, None], 0.0)
        bad = state.bad + weight * (jnp.minimum(ratio(came.sum(1), back), 1.0) - state.bad)
        return BitmapState(onward(passed, leaves, new), more, bad)

    def turns(self, like: Array) -> Array:
        """[F, N] turns of a penalty."""
        penalties = [x for x in (self.mark, self.trim, self.loss) if x is not None]
        return jnp.stack([jnp.broadcast_to(x, like.shape) for x in penalties], -1)

    def at_most(self, more: Array, passed: Array) -> Array:
        """[F, 2, K] what waits behind the penalties of the values that have one: no more than there is room for."""
        turns = self.turns(more[:, 0, 0])[:, :2, None]
        room = jnp.maximum(MOST - turns.max(1), 0.0) * passed.sum((1, 2))
        return more * jnp.minimum(ratio(room, (turns * more).sum(1), 1.0), 1.0)[:, None]

    def missed(self, passed: Array, feedback: PathFeedback, own: Array) -> Array:
        """[F, 1, K] parts of the values that are missed now, of those without a penalty; own: [F, 1, K] units of a
        round."""
        have = jnp.maximum(1.0 - passed.sum((1, 2)), 0.0)[:, None]
        lost = jnp.zeros_like(own) if feedback.lost is None else feedback.lost[:, None]
        some = have * own > NONE
        return jnp.where(some, -have * jnp.expm1(-lost / jnp.where(some, have * own, 1.0)), 0.0)


def served(passed: Array, rounds: Array, turns: Array) -> Array:
    """[F, N, STAGES, K] what leaves each stage of penalties of so many `turns` [F, N] in so many `rounds` [F]."""
    return passed * jnp.minimum(STAGES * rounds[:, None] / turns, 1.0)[:, :, None, None]


def onward(passed: Array, leaves: Array, new: Array) -> Array:
    """[F, N, STAGES, K] the stages, with `new` [F, N, K] in the first."""
    return passed - leaves + jnp.concatenate([new[:, :, None], leaves[:, :, :-1]], 2)


def free(passed: Array) -> Array:
    """[F, K] parts of the values of each path that have no penalty."""
    return jnp.maximum(1.0 - passed.sum((1, 2)), LEAST)
