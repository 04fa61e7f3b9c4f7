"""Hop 0, the ports of the sender's NIC: arbiters, not queues."""

from __future__ import annotations

import jax.numpy as jnp

from fabsim.engine.setup import Setup
from fabsim.engine.state import FlowState
from fabsim.typing import Array


def inject(s: Setup, flow: FlowState, room: Array, released: Array, at: Array) -> tuple[Array, Array]:
    """What each flow sends by each port in this step, and when in it the byte that ends its message goes.

    The flows of a port share it max-min over min(what they have, what their law allows). For demands d and capacity
    C the level is max over i of (C - sum of the demands below d_i) / (number not below d_i): exact, with no sort and no
    loop. A port shared by n senders is processor sharing, so y bytes of a flow have gone after sum_j min(sent_j, y)/C.
    A flow with several ports spreads over them as its split says, and what a port has no room for goes by the others.

    Args:
        room: [F] units that the law allows.
        released: [F] units of the credit that became sendable only `at` [F] in this step.

    Returns:
        sent [F, P] units, when [F] in [0, 1].
    """
    line = s.rate.sum(-1)
    line = jnp.maximum(line, 1e-9) if s.queue.pauses or s.faults is not None else line  # 0 at a dead port
    early = jnp.minimum(flow.credit - released, line * at)
    total = jnp.where(released > 0, jnp.minimum(flow.credit, early + line * (1.0 - at)), flow.credit)
    demand = jnp.maximum(jnp.minimum(jnp.minimum(total, room), line), 0.0)  # credit may end a rounding below zero
    sent = share_ports(s, jnp.minimum(demand[:, None] * s.plane, s.rate), s.rate)
    if s.problem.planes > 1:
        sent = sent + spread_rest(s, demand, sent)
    both = sent.sum(-1)
    finishes = both >= flow.credit * (1.0 - 1e-6)
    sent = jnp.where(finishes[:, None], sent * (flow.credit / jnp.where(both > 0, both, 1.0))[:, None], sent)
    both = jnp.where(finishes, flow.credit, both)
    ends = jnp.minimum(flow.until, both)
    part = sent * (ends / jnp.where(both > 0, both, 1.0))[:, None]
    busy = rows(s, jnp.minimum(table(s, sent)[:, None, :], table(s, part)[:, :, None]).sum(-1))
    shared = (busy / jnp.where(s.rate > 0, s.rate, 1.0)).max(-1)
    paced = ends / jnp.maximum(room, 1e-9)
    after = jnp.where((released > 0) & (ends > early), at + (ends - early) / line, 0.0)
    return sent, jnp.clip(jnp.maximum(jnp.maximum(shared, jnp.minimum(paced, 1.0)), after), 0.0, 1.0)


def share_ports(s: Setup, demand: Array, capacity: Array) -> Array:
    """[F, P] what is granted of a demand, max-min at each port; capacity [F, P] is that of the port."""
    d = table(s, demand)
    whole = table(s, capacity).max(-1, keepdims=True)
    lower = d[:, None, :] < d[:, :, None]
    below = jnp.where(lower, d[:, None, :], 0.0).sum(-1)
    others = (~lower).sum(-1)
    level = ((whole - below) / others).max(-1)
    return jnp.minimum(demand, level[s.problem.port])


def spread_rest(s: Setup, demand: Array, sent: Array) -> Array:
    """[F, P] what the ports with room take of the demand [F] that others had no room for."""
    taken = jnp.broadcast_to(table(s, sent).sum(-1, keepdims=True), s.problem.port_flows.shape)
    spare = jnp.where(s.rate > 0, jnp.maximum(s.rate - rows(s, taken), 0.0), 0.0)
    some = spare.sum(-1, keepdims=True)
    rest = jnp.maximum(demand - sent.sum(-1), 0.0)[:, None]
    return share_ports(s, jnp.minimum(rest * spare / jnp.where(some > 0, some, 1.0), spare), spare)


def table(s: Setup, x: Array) -> Array:
    """[F, P] -> [ports, M], zero where a port has fewer flows."""
    return jnp.append(x.reshape(-1), 0.0)[s.problem.port_flows]


def rows(s: Setup, x: Array) -> Array:
    """[ports, M] -> [F, P]."""
    return x[s.problem.port, s.problem.place]
