"""The split of all flows that leaves the busiest links as idle as they can be."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp

from fabsim.engine.across import most
from fabsim.engine.fair import on_queues
from fabsim.engine.problem import by_port
from fabsim.engine.setup import LATER, Setup
from fabsim.engine.state import FlowState
from fabsim.models.classes import join
from fabsim.typing import Array
from fabsim_kernels.load import read

ROUNDS = 4
"""Rounds of a step. From an even split these come within 2 % of the linear program where single links or spines are
slow; the next steps go on from there."""

DEAD = 1.0 / LATER
"""Units per step of a link that an event has taken down: a load over it is large, and a number."""

LEAST = 1e-6
"""Part of its share in the routing that a path keeps at least, so that it can come back."""

IDLE = 0.1
"""A path that is less busy than this part of the busiest counts as so busy: it gets ten times its part in one round,
and ten thousand times in a step. With less, slopes by what next to nothing waits for grow by its square."""


def even_split(s: Setup, flow: FlowState, queue: Array, share: Array) -> Array:
    """[F, K] `share` after some rounds in which each path's part is divided by how busy its busiest link is.

    A link is as busy as what waits there and what the flows would send over it in a round trip make it; with classes of
    traffic, as these make it for their own class, in what the others leave it (see Classes). queue: [L + 1] units that
    wait. At rest all paths of a flow that carry anything are equally busy, and those that carry nothing are
    busier: a bottleneck equilibrium (Wardrop's first principle, Proc. Inst. Civ. Eng. 1, 1952, with the busiest link
    for a cost). In a Clos that is the optimum of the linear program; on any other graph it need not be. Where paths
    have one link each, a single round is enough: what is loaded n times too much gets 1/n.
    """
    span = most(s.problem, s.round_trip.max())
    wants = demand(s, flow, span)

    def one_round(_: int, share: Array) -> Array:
        load = on_queues(split_by(s, share), wants) + queue / span
        busy = busiest(s, load / jnp.maximum(jnp.maximum(room(s, load), LEAST * s.capacity), DEAD))
        top = busy.max(-1, keepdims=True)
        less = share / jnp.where(top > 0, jnp.maximum(busy / jnp.where(top > 0, top, 1.0), IDLE), 1.0)
        less = jnp.maximum(less / less.sum(-1, keepdims=True), LEAST * s.share)
        return less / less.sum(-1, keepdims=True)

    return jax.lax.fori_loop(0, ROUNDS, one_round, share)


def split_by(s: Setup, share: Array) -> Setup:
    """The same, with another split."""
    plane, within = by_port(s.problem, share)
    return replace(s, share=share, plane=plane, within=within)


def room(s: Setup, load: Array) -> Array:
    """[L + 1] units per step that a queue would find room for if more came there, with such a load [L + 1] of all."""
    if s.classes is None:
        return s.capacity
    split, most = s.classes.split, s.capacity
    if s.classes.shape is not None:
        most = jnp.minimum(most, s.classes.shape.rate)
    return join(s.classes.rooms(split(s.capacity).max(0), split(most), split(load)), s.capacity[-1:])


def demand(s: Setup, flow: FlowState, span: Array) -> Array:
    """[F] units per step that flows would send in the next `span` steps: what they have, at most an equal part of what
    their class has of the ports of their two ends."""
    left = flow.credit + jnp.where(flow.start_in < 1.0, flow.held, 0.0)
    active = (left > 0).astype(s.rate.dtype)
    users = on_queues(s, active)
    have = room(s, on_queues(s, jnp.minimum(left / span, s.rate.sum(-1))))
    equal = jnp.where(users > 1e-6, have / jnp.maximum(users, 1e-6), LATER)
    ends = jnp.minimum(equal[s.problem.port_link], equal[s.problem.at.last])
    return jnp.minimum(active * jnp.where(s.plane > 0, ends, LATER).min(-1), left / span)


def busiest(s: Setup, busy: Array) -> Array:
    """[L + 1] -> [F, K] the largest on each path; of ends only where paths have ends of their own (planes)."""
    p = s.problem
    fabric, egress = read(p.at, busy.at[-1].set(0.0)[:, None])
    between = fabric[:, :, 0].max(0, initial=0.0)  # flows below one leaf have no link between
    if p.planes == 1:
        return between
    ends = jnp.maximum(egress[:, 0], busy[p.port_link])
    return jnp.maximum(between, jnp.repeat(ends, s.share.shape[1] // p.planes, -1))
