"""What may be sent: starts, triggers that completions fire, and followers that wait for their leader.

Everything has a time inside the step, so that a start or a completion is never rounded to the step.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from fabsim.engine.across import all_flows, least, most, of_leader, total
from fabsim.engine.setup import LATER, Setup
from fabsim.engine.state import FlowState, TagState
from fabsim.typing import Array


def complete(
    s: Setup, flow: FlowState, tags: TagState, landed: Array, when: Array, step: Array
) -> tuple[FlowState, Array]:
    """Flows whose last byte lands in this step with nothing left to send again; also [F] whether it is now."""
    whole = flow.credit + flow.lost < s.few
    now = (landed & tags.final).any(0) & whole & (flow.completion >= LATER) & (flow.held <= 0)
    time = step + jnp.where(landed & tags.final, when, 0.0).max(0)
    empty = (s.size <= 0) & (flow.start_in < 1.0) & (flow.completion >= LATER)
    now, time = now | empty, jnp.where(empty, step + flow.start_in, time)
    return replace(flow, completion=jnp.where(now, time, flow.completion)), now


def fire(s: Setup, flow: FlowState, fired: Array, done: Array, step: Array) -> tuple[FlowState, Array]:
    """Completions activate triggers; a flow that waits for its n-th activation learns its start.

    The activations of one trigger within one step are taken as evenly spaced between the first and the last.
    """
    p = s.problem
    if p.triggers == 0:
        return flow, fired
    time = flow.completion - step + jnp.where(p.at_sender, s.back, 0.0)
    which = jnp.where(done[:, None], p.fires, p.triggers)
    fresh = jnp.zeros(p.triggers + 1, time.dtype)
    more = total(p, jnp.zeros(p.triggers + 1, jnp.int32).at[which].add(1))
    first = least(p, (fresh + LATER).at[which].min(jnp.where(done, time, LATER)[:, None]))
    last = most(p, (fresh - LATER).at[which].max(jnp.where(done, time, -LATER)[:, None]))
    before = jnp.append(fired, 0)[p.trigger]
    mine, of = p.need - before, more[p.trigger]
    now = (p.trigger < p.triggers) & (mine >= 1) & (mine <= of) & (flow.start_in >= LATER) & (flow.begin >= LATER)
    place = jnp.where(of > 1, (mine - 1) / jnp.maximum(of - 1, 1), 1.0)
    spread = first[p.trigger] + (last[p.trigger] - first[p.trigger]) * place
    start_in = jnp.where(now, spread + s.start, flow.start_in)
    return replace(flow, start_in=start_in), fired + more[:-1]


def release(
    s: Setup, flow: FlowState, landed: Array, when: Array, stream: Array, step: Array
) -> tuple[FlowState, Array, Array]:
    """Move bytes from held to sendable. Returns the flows, [F] units released in this step and [F] when in it.

    landed, when: [T, F] messages that reach their receivers now; stream: [F] units that reach the receivers now.
    """
    p = s.problem
    starts = (flow.start_in < 1.0) & (flow.begin >= LATER)
    at = jnp.clip(flow.start_in, 0.0, 1.0)
    coupled = p.leader < all_flows(p)
    amount = jnp.where(starts, jnp.where(coupled, s.head, flow.held), 0.0)
    if p.coupled:
        follows = coupled & (flow.begin < LATER)
        grains = of_leader(p, landed.sum(0)) * s.grain
        lands = of_leader(p, jnp.where(landed, when, 0.0).max(0))
        flows_on = of_leader(p, stream)
        follow = jnp.where(follows, jnp.where(s.grain > 0, grains, flows_on), 0.0)
        at = jnp.where(follow > 0, jnp.maximum(jnp.where(s.grain > 0, lands, 0.0), jnp.where(starts, at, 0.0)), at)
        amount = amount + follow
    amount = jnp.minimum(amount, flow.held)
    amount = jnp.where(flow.held - amount < 1e-6 * s.size, flow.held, amount)
    flow = replace(
        flow,
        held=flow.held - amount,
        begin=jnp.where(starts, step + flow.start_in, flow.begin),
        start_in=jnp.where(flow.start_in < LATER, jnp.maximum(flow.start_in - 1.0, -1.0), LATER),
    )
    return flow, amount, at
