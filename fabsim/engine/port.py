"""Hop 0, the sender's NIC port: an arbiter, not a queue."""

from __future__ import annotations

import jax.numpy as jnp

from fabsim.engine.setup import Setup
from fabsim.engine.state import FlowState
from fabsim.typing import Array


def inject(s: Setup, flow: FlowState, room: Array, released: Array, at: Array) -> tuple[Array, Array]:
    """What each flow sends in this step, and when in it the byte that ends its message goes.

    The flows of a port share it max-min over min(what they have, what their law allows). For demands d and capacity
    C the level is max over i of (C - sum of the demands below d_i) / (number not below d_i): exact, with no sort and no
    loop. A port shared by n senders is processor sharing, so y bytes of a flow have gone after sum_j min(sent_j, y)/C.

    Args:
        room: [F] units that the law allows.
        released: [F] units of the credit that became sendable only `at` [F] in this step.

    Returns:
        sent [F] units, when [F] in [0, 1].
    """
    early = jnp.minimum(flow.credit - released, s.rate * at)
    total = jnp.where(released > 0, jnp.minimum(flow.credit, early + s.rate * (1.0 - at)), flow.credit)
    demand = jnp.minimum(jnp.minimum(total, room), s.rate)
    sent = jnp.minimum(demand, level(s, demand))
    sent = jnp.where(sent >= flow.credit * (1.0 - 1e-6), flow.credit, sent)
    ends = jnp.minimum(flow.until, sent)
    shared = rows(s, jnp.minimum(table(s, sent)[:, None, :], table(s, ends)[:, :, None]).sum(-1)) / s.rate
    paced = ends / jnp.maximum(room, 1e-9)
    after = jnp.where((released > 0) & (ends > early), at + (ends - early) / s.rate, 0.0)
    return sent, jnp.clip(jnp.maximum(jnp.maximum(shared, jnp.minimum(paced, 1.0)), after), 0.0, 1.0)


def level(s: Setup, demand: Array) -> Array:
    """[F] the max-min level of each flow's port."""
    d = table(s, demand)
    capacity = table(s, s.rate).max(-1, keepdims=True)
    lower = d[:, None, :] < d[:, :, None]
    below = jnp.where(lower, d[:, None, :], 0.0).sum(-1)
    others = (~lower).sum(-1)
    return ((capacity - below) / others).max(-1)[s.problem.port]


def table(s: Setup, x: Array) -> Array:
    """[F] -> [P, M], zero where a port has fewer flows."""
    return jnp.append(x, 0.0)[s.problem.port_flows]


def rows(s: Setup, x: Array) -> Array:
    """[P, M] -> [F]."""
    return x[s.problem.port, s.problem.place]
