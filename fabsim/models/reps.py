"""REPS: entropy values that came back clean are used again; after a timeout nothing but these."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import PathFeedback, Sender
from fabsim.typing import Array

NONE = 1e-9
"""Units that count as nothing."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RepsState:
    """What a sender remembers.

    Attributes:
        split: [F, K] shares of the paths.
        frozen: [F] steps until the freezing ends, 0 where there is none; None where no sender ever freezes.
        drawn: [F] packets that draw their paths, whatever is remembered, after a freezing; None as `frozen`.
    """

    split: Array
    frozen: Array | None = None
    drawn: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Reps:
    """A packet that comes back unmarked gives its path to the next one; else the next one draws a path anew.

    With w the shares of the paths among what came back or is missed, m the part of each that was marked, trimmed or
    lost, a the part of the clean packets that acknowledgements name, and e the shares of a draw:

        w' = a w (1 - m) + M e,    M = 1 - a (1 - sum of w m)

    At rest w is in proportion to e / (1 - a (1 - m)); if all are named (a = 1), to e / m, and all goes where nothing is
    marked. The values that are kept are the last `memory` packets: w' comes into the split by 1 - exp(-packets /
    memory). All else that a flow remembers is on the wire. (Bonato et al., REPS, arXiv:2407.21625, with 8 values kept;
    the equation is its mean.)

    A sender that misses a packet after a timeout freezes for `freeze`: it draws nothing anew, since a draw may hit what
    has failed, and goes around the values that it keeps, which clean ones go on to replace:

        w' = w (1 - m) / sum of w (1 - m)

    so that a path from which nothing comes back has exp(-n / memory) of its share left n named packets later, and, of
    any two, the one that loses less gets all in the end. Then it forgets what it keeps, and its next `explore` packets
    draw their paths; what is missed after these freezes it again. A timeout in between changes nothing. (The same
    paper; 10 ms and 16 packets: uet-htsim's `reps`, which freezes where ports trim only, as it does here anywhere.)

    A draw is one of a packet, not of a round of all values: its packets come to a port at random, which wants a queue
    of its own (see GranularQueue). Smooth, in `freeze` too: a freezing ends inside a step. It jumps where a timeout
    more or less fits in.

    Attributes: scalars or [F].
        memory: packets.
        echo: part of the clean packets that are named (a).
        freeze: s; None: it does not freeze. Where nothing is lost in silence, it never has to.
        explore: packets; with `freeze` only.
    """

    misses: ClassVar[bool] = True
    memory: Array
    echo: Array
    freeze: Array | None = None
    explore: Array | None = None

    def init(self, base: Array, sender: Sender) -> RepsState:
        """A draw."""
        if self.freeze is None:
            return RepsState(base)
        none = jnp.zeros_like(sender.in_flight)
        return RepsState(base, none, none)

    def split(self, state: RepsState, base: Array) -> Array:
        """As it stands."""
        return state.split

    def step(self, state: RepsState, feedback: PathFeedback, base: Array, sender: Sender) -> RepsState:
        """The clean ones again, the others drawn anew, if at all."""
        again, heard = clean(feedback, self.echo), everything(feedback)
        packets, usual = heard / sender.packet, recycled(again, heard, base)
        if self.freeze is None or state.frozen is None or state.drawn is None:
            return RepsState(towards(state.split, usual, packets, self.memory))
        cold, frozen, drawn = self.clocks(state.frozen, state.drawn, feedback, sender)
        named, free = cold * again.sum(-1) / sender.packet, (1.0 - cold) * packets
        kept = towards(state.split, ratio(again, again.sum(-1, keepdims=True), state.split), named, self.memory)
        new = jnp.minimum(drawn, free)
        target = usual + ratio(new, free)[:, None] * (base - usual)
        return RepsState(towards(kept, target, free, self.memory), frozen, drawn - new)

    def clocks(self, frozen: Array, drawn: Array, feedback: PathFeedback, sender: Sender) -> tuple[Array, Array, Array]:
        """[F] the part of the step for which a sender is frozen, the steps after this one for which it still is, and
        the packets that are to draw their paths."""
        assert self.freeze is not None
        lost = jnp.zeros_like(frozen) if feedback.lost is None else feedback.lost.sum(-1)
        begins = (lost > NONE) & (frozen <= 0) & (drawn <= 0)
        frozen = jnp.where(begins, self.freeze / sender.dt, frozen)
        cold = jnp.minimum(frozen, 1.0)
        ends = (frozen > 0) & (frozen <= 1.0)
        return cold, frozen - cold, jnp.where(ends, 0.0 if self.explore is None else self.explore, drawn)


def clean(feedback: PathFeedback, echo: Array) -> Array:
    """[F, K] units that came back without a mark, and whose paths are named."""
    named = jnp.broadcast_to(echo, feedback.acked.shape[:1])[:, None]
    return named * jnp.maximum(feedback.acked - feedback.marked, 0.0)


def everything(feedback: PathFeedback) -> Array:
    """[F] units that came back, or are missed: so many go in their place."""
    heard = jnp.maximum(feedback.acked + feedback.trimmed, 0.0).sum(-1)
    return heard if feedback.lost is None else heard + feedback.lost.sum(-1)


def recycled(again: Array, heard: Array, other: Array) -> Array:
    """[F, K] shares of what is sent for `heard` [F]: `again` [F, K] on its own paths, the rest as `other` says."""
    some = heard > NONE
    shares = again / jnp.where(some, heard, 1.0)[:, None]
    return shares + jnp.maximum(1.0 - shares.sum(-1, keepdims=True), 0.0) * other


def towards(state: Array, split: Array, packets: Array, memory: Array) -> Array:
    """[F, K] the split after so many packets [F] of another one."""
    weight = -jnp.expm1(-packets / memory)[:, None]
    after = state + weight * (split - state)
    return after / after.sum(-1, keepdims=True)


def ratio(x: Array, y: Array, none: Array | float = 0.0) -> Array:
    """x / y, and `none` where y is nothing."""
    some = y > NONE
    return jnp.where(some, x / jnp.where(some, y, 1.0), none)
