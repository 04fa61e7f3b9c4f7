"""Flowlets: a flow takes one path, and another one after a gap in its sending."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.chance import roll
from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import everything
from fabsim.typing import Array

PARTS = 16
"""Parts in which a sender's last `timeout` is remembered: a gap is known to a thirtieth of it."""

APART = 0x9E3779B9
"""So that paths are not drawn with the numbers of a law that has chance in it."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FlowletState:
    """Shapes [F] unless said otherwise.

    Attributes:
        lane: int32, the path in use.
        dice: uint32, for the next draws.
        gaps: part of a gap since the last one that counted, from a random beginning.
        clock: steps.
        before: units in flight in the last step.
        packets: [F, PARTS] packets sent in each part of the last `timeout`.
    """

    lane: Array
    dice: Array
    gaps: Array
    clock: Array
    before: Array
    packets: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Flowlet:
    """A flow whose last packet is older than `timeout` goes on by a path drawn anew, blind to load, as LetFlow does
    (Vanini et al., LetFlow, NSDI 2017; gaps of this kind: Alizadeh et al., CONGA, SIGCOMM 2014).

    A fluid has no packets, so it has the chance of a gap: where n packets at random (Poisson) are due in a time, none
    comes with probability exp(-n). With n those of the last `timeout` T,

        gaps that end their timeout in a step = exp(-n without those that become older than T) - exp(-n)

    so at a steady rate r there are r exp(-r T) a second: next to none for a flow of many packets in T, however it is
    treated (RDMA at line rate has thousands). A burst of a window or a message, and then silence, is one gap. A flow
    changes its path each time the sum of this has grown by one, from a beginning drawn for each flow: as often as
    gaps come on average.

    A flow whose path loses everything fills its window and falls silent: if it misses the loss later than `timeout`, it
    sends again by another path, as any sender of TCP below LetFlow does.

    Paths are drawn from the split of the routing. A draw is a jump: there is no derivative by `timeout`, and what
    follows by others is that of the paths as they are.

    Attributes:
        timeout: s, a scalar or [F]; less than two steps counts as two, since within a step nobody sees a gap.
    """

    misses: ClassVar[bool] = True
    timeout: Array

    def init(self, base: Array, sender: Sender) -> FlowletState:
        """On a path drawn for each flow."""
        dice = roll(sender.dice ^ jnp.uint32(APART))
        nothing = jnp.zeros_like(sender.in_flight)
        packets = jnp.zeros((*nothing.shape, PARTS), base.dtype)
        gaps = uniform(dice, base.dtype)
        dice = roll(dice)
        return FlowletState(draw(base, dice), dice, gaps, nothing, nothing, packets)

    def split(self, state: FlowletState, base: Array) -> Array:
        """All on its path; one that it knows to be dead is left at once, for another one until the next gap."""
        here = jnp.take_along_axis(base, state.lane[:, None], 1)[:, 0] > 0
        lane = jnp.where(here, state.lane, draw(base, roll(state.dice)))
        return jnp.where(jnp.arange(base.shape[1]) == lane[:, None], 1.0, 0.0).astype(base.dtype)

    def step(self, state: FlowletState, feedback: PathFeedback, base: Array, sender: Sender) -> FlowletState:
        """Another path where a gap has come to its timeout."""
        sent = jnp.maximum(sender.in_flight - state.before + everything(feedback), 0.0) / sender.packet
        timeout = jnp.maximum(self.timeout / sender.dt, 2.0)
        wide = jnp.broadcast_to(timeout / (PARTS - 0.5), sent.shape)[:, None]
        part, clock = jnp.arange(PARTS), state.clock + 1.0
        begun = turns(clock, wide, part) > turns(state.clock, wide, part)
        kept = jnp.where(begun, 0.0, state.packets)
        gaps = state.gaps + jnp.exp(-kept.sum(-1)) - jnp.exp(-state.packets.sum(-1))
        dice = roll(state.dice)
        moves = gaps >= 1.0
        now = jnp.floor(clock[:, None] / wide) % PARTS == part
        return FlowletState(
            lane=jnp.where(moves, draw(base, dice), state.lane),
            dice=jnp.where(moves, dice, state.dice),
            gaps=gaps - moves,
            clock=clock,
            before=sender.in_flight,
            packets=kept + now * sent[:, None],
        )


def turns(clock: Array, wide: Array, part: Array) -> Array:
    """[F, PARTS] how often each part has begun anew until `clock` [F], where parts are `wide` [F, 1] steps long."""
    return jnp.floor((clock[:, None] / wide - part) / PARTS)


def uniform(dice: Array, dtype: jnp.dtype) -> Array:
    """[F] in [0, 1)."""
    return (dice >> 8).astype(dtype) * 2.0**-24


def draw(base: Array, dice: Array) -> Array:
    """[F] int32: a path for each flow, with the chances of `base` [F, K]."""
    so_far = base.cumsum(-1)
    return jnp.argmax(so_far > uniform(dice, base.dtype)[:, None] * so_far[:, -1:], -1).astype(jnp.int32)
