"""Errors inside a compiled program are bits in the state; the host turns them into sentences."""

from __future__ import annotations

import jax.numpy as jnp

from fabsim.engine.crossing import unfit
from fabsim.engine.setup import Setup
from fabsim.engine.state import State, TagState
from fabsim.models.pfc import PfcQueue
from fabsim.typing import Array

NOT_FINITE, SLOT_TAKEN, RING_SHORT, STEP_LONG, CUT_OFF = 1, 2, 4, 8, 16

SENTENCES = {
    NOT_FINITE: "a value is not a number any more",
    SLOT_TAKEN: "grains of a coupled flow overtook each other; a larger grain, or 0 for a stream, would do",
    RING_SHORT: "the model's latencies or pause delays are longer than the problem was built for; build it with a "
    "larger ring",
    CUT_OFF: "flows wait for links that are down and stay down",
    STEP_LONG: "the model's latencies are shorter than one step a link; build the problem with a smaller dt",
}


def check(s: Setup) -> Array:
    """What can be said before the first step: int32 bits."""
    long = (s.beyond_mean + s.near_back).max() > s.problem.heard - 2
    if s.wires is not None:
        long = long | unfit(s.problem, s.wires)
    if isinstance(s.queue, PfcQueue):
        long = long | (s.queue.delay.max() > s.problem.ring - 2)
    short = jnp.where(s.used, s.beyond, 2.0).min() < 1.0 - 1e-3
    return long * RING_SHORT + short * STEP_LONG


def watch(state: State, tags: TagState, now: Array, final: Array) -> Array:
    """The bits after a step. `now` [F] flows put a tag into their slot of `tags`."""
    mine = jnp.arange(tags.open.shape[0])[:, None] == tags.turn
    taken = (tags.open & mine & now & ~final).any()
    return state.flags | taken * SLOT_TAKEN


def sentences(flags: int) -> list[str]:
    """The sentences of all bits that are set."""
    return [text for bit, text in SENTENCES.items() if flags & bit]
