"""Tagged bytes: the completion of a message is when its last byte, queueing at each hop, is at the receiver.

A tag meets at each hop the wait q/C of the moment when it gets there (first in, first out), on each lane that its flow
uses; the message is complete when the slowest lane is. The well-mixed fluid decides shares; it never decides a
completion, since its last residue leaves a full port only exponentially.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from fabsim.engine.setup import LATER, Setup
from fabsim.engine.state import TagState
from fabsim.typing import Array


def landing(s: Setup, tags: TagState) -> tuple[Array, Array]:
    """Which messages reach their receiver within this step, and when in it: [T, F] bool, [T, F] in [0, 1)."""
    arrived = (tags.hop == s.problem.at.row.shape[0] + 1).all(-1)
    when = tags.due.max(-1)
    return tags.open & arrived & (when < 1.0), jnp.clip(when, 0.0, 1.0)


def close(tags: TagState, landed: Array) -> TagState:
    """Free the slots of messages that have landed."""
    return replace(tags, open=tags.open & ~landed)


def advance(s: Setup, tags: TagState, before: Array, after: Array) -> TagState:
    """Move every tag by one step. before, after: [L + 1] queues at the two ends of the step."""
    p = s.problem
    hops, flows, lanes = p.at.row.shape[0], tags.hop.shape[1], tags.hop.shape[2]
    there = jnp.minimum(tags.hop, hops)
    link = p.route[there, jnp.arange(flows)[:, None], jnp.arange(lanes)]
    meets = (tags.hop <= hops) & (tags.due < 1.0)
    into = jnp.clip(tags.due, 0.0, 1.0)
    queue = before[link] * (1.0 - into) + after[link] * into
    wait = queue / s.capacity[link]
    last = jnp.where(tags.hop == hops, s.beyond - 1.0, 0.0)
    due = jnp.where(meets, tags.due + wait + last, jnp.maximum(tags.due - 1.0, -LATER))
    return replace(tags, due=due, hop=tags.hop + meets)


def attach(s: Setup, tags: TagState, now: Array, when: Array, final: Array) -> TagState:
    """Tag the byte that each flow of `now` [F] has just sent, `when` [F] in the step; it is final where `final` [F]."""
    p = s.problem
    mine = (jnp.arange(tags.open.shape[0])[:, None] == tags.turn) & now
    hops = p.at.row.shape[0]
    due = jnp.where(s.used, when[:, None], -LATER)
    hop = jnp.where(s.used, p.first[:, None], hops + 1)
    return TagState(
        due=jnp.where(mine[:, :, None], due, tags.due),
        hop=jnp.where(mine[:, :, None], hop, tags.hop),
        open=tags.open | mine,
        final=jnp.where(mine, final, tags.final),
        turn=jnp.where(now & ~final, (tags.turn + 1) % tags.open.shape[0], tags.turn),
    )
