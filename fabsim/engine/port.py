"""Hop 0, the ports of the sender's NIC: arbiters, not queues."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from fabsim.engine import classed
from fabsim.engine.columns import rows, table
from fabsim.engine.remade import remade
from fabsim.engine.setup import Setup
from fabsim.engine.state import FlowState
from fabsim.models.queue import PortState
from fabsim.models.quotient import quotient
from fabsim.typing import Array

LEAST = 1e-2
"""Of a port that is left for data, however many acknowledgements it sends."""


@remade
def inject(s: Setup, flow: FlowState, ports: PortState, room: Array, released: Array, at: Array) -> tuple[Array, Array]:
    """What each flow sends by each port in this step, and when in it the byte that ends its message goes.

    The flows of a port share it max-min over min(what they have, what their law allows). For demands d and capacity
    C the level is max over i of (C - sum of the demands below d_i) / (number not below d_i): exact, with no sort and no
    loop. A port shared by n senders is processor sharing, so y bytes of a flow have gone after sum_j min(sent_j, y)/C.
    A flow with several ports spreads over them as its split says, and what a port has no room for goes by the others.
    Classes of traffic share a port as they do those of switches, and each is shared max-min by its flows.

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
    most = classed.may_send(s, ports)
    sent = share_ports(s, jnp.minimum(demand[:, None] * s.plane, s.rate), s.rate, most)
    if s.problem.planes > 1:
        sent = sent + spread_rest(s, demand, sent, most)
    both = sent.sum(-1)
    finishes = both >= flow.credit * (1.0 - 1e-6)
    exact = quotient(flow.credit, jnp.where(both > 0, both, 1.0))
    sent = jnp.where(finishes[:, None], sent * exact[:, None], sent)
    both = jnp.where(finishes, flow.credit, both)
    ends = jnp.minimum(flow.until, both)
    part = sent * quotient(ends, jnp.where(both > 0, both, 1.0))[:, None]
    if s.classes is None:
        busy = rows(s, jnp.minimum(table(s, sent)[:, None, :], table(s, part)[:, :, None]).sum(-1))
    else:
        busy = classed.gone(s, s.classes, sent, part)
    shared = (busy / jnp.where(s.rate > 0, s.rate, 1.0)).max(-1)
    if most is not None:
        shared = jnp.maximum(shared, classed.held_back(s, ports, sent, part))
    paced = ends / jnp.maximum(room, 1e-9)
    after = jnp.where((released > 0) & (ends > early), at + (ends - early) / line, 0.0)
    return sent, jnp.clip(jnp.maximum(jnp.maximum(shared, jnp.minimum(paced, 1.0)), after), 0.0, 1.0)


def for_data(s: Setup, may: Array | None, sent: Array | None) -> Setup:
    """Senders' ports with what they have for data: in the part of the step in which they may send, and beside the
    acknowledgements of what their hosts receive."""
    port = s.problem.port_link
    rate = s.rate if may is None else s.rate * may[port]
    if sent is not None:
        assert s.problem.reverse is not None
        rate = jnp.maximum(rate - s.header_mean * sent[s.problem.reverse[port]], LEAST * rate)
    return replace(s, rate=rate)


def share_ports(s: Setup, demand: Array, capacity: Array, most: Array | None) -> Array:
    """[F, P] what is granted of a demand, max-min at each port; capacity [F, P] is that of the port, most [F, P] what
    shapers let the class of a flow send by it."""
    d = table(s, demand)
    whole = table(s, capacity).max(-1, keepdims=True)
    if s.classes is not None:
        return classed.share(s, s.classes, demand, whole[:, 0], most)
    lower = d[:, None, :] < d[:, :, None]
    below = jnp.where(lower, d[:, None, :], 0.0).sum(-1)
    others = (~lower).sum(-1)
    level = ((whole - below) / others).max(-1)
    return jnp.minimum(demand, level[s.problem.port])


def spread_rest(s: Setup, demand: Array, sent: Array, most: Array | None) -> Array:
    """[F, P] what the ports with room take of the demand [F] that others had no room for."""
    taken = jnp.broadcast_to(table(s, sent).sum(-1, keepdims=True), s.problem.port_flows.shape)
    spare = jnp.where(s.rate > 0, jnp.maximum(s.rate - rows(s, taken), 0.0), 0.0)
    some = spare.sum(-1, keepdims=True)
    rest = jnp.maximum(demand - sent.sum(-1), 0.0)[:, None]
    most = None if most is None else jnp.maximum(most - classed.of_class(s, sent), 0.0)
    return share_ports(s, jnp.minimum(rest * spare / jnp.where(some > 0, some, 1.0), spare), spare, most)
