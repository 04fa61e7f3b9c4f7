"""Weighted max-min fair rates of the flows that have something to send, for the split in use."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp

from fabsim.engine.across import least, total
from fabsim.engine.port import for_data
from fabsim.engine.setup import LATER, Setup
from fabsim.engine.state import FlowState
from fabsim.models.classes import join
from fabsim.typing import Array
from fabsim_kernels.load import load, read

ROUNDS = 12
"""Rounds of freezing. Single paths of a permutation need 3 to 5, a spray 1 to 9; what is still free then gets its
smallest share, which is feasible."""


def fair_rates(s: Setup, flow: FlowState) -> Array:
    """[F] units per step. Classes of traffic that are served first have all that they want, and leave the rest."""
    active = (flow.credit > 0).astype(s.rate.dtype)
    if s.classes is None:
        return max_min(s, active)
    levels, own = s.classes.priority, s.problem.port_link[:, 0] // s.problem.links
    rate = jnp.zeros_like(active)
    for level in sorted(set(levels)):
        left = replace(s, capacity=jnp.maximum(s.capacity - on_links(s, rate), 0.0))
        rate = rate + max_min(left, jnp.where(jnp.array(levels)[own] == level, active, 0.0))
    return rate


def beside_acks(s: Setup, sent: Array | None) -> Setup:
    """The network less the room of acknowledgements, as served (see engine.network): of what left in the last step,
    `sent` [L + 1], over the opposite links."""
    if sent is None:
        return s
    acks = whole(s, s.header_mean * sent[s.problem.reverse])
    return replace(for_data(s, None, sent), capacity=jnp.maximum(s.capacity - acks, 0.0))


def max_min(s: Setup, active: Array) -> Array:
    """[F] units per step of the active flows. A flow is frozen at the share of a link that is the tightest for all
    flows on it."""
    line = s.rate.sum(-1)

    def one_round(_: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        rate, free = carry
        left = jnp.maximum(s.capacity - on_links(s, rate), 0.0)
        users = on_links(s, free)
        share = jnp.where(users > 1e-6, left / jnp.maximum(users, 1e-6), LATER)
        mine = jnp.minimum(tightest(s, share), line)
        slowest = smallest_on_links(s, jnp.where(free > 0, mine, LATER))
        bottleneck = (share <= slowest * (1.0 + 1e-5)) & (users > 1e-6)
        caught = (tightest(s, jnp.where(bottleneck, 0.0, 1.0)) < 0.5) | (mine >= line)
        caught = caught & (free > 0)
        return jnp.where(caught, mine, rate), jnp.where(caught, 0.0, free)

    rate, free = jax.lax.fori_loop(0, ROUNDS, one_round, (jnp.zeros_like(active), active))
    left = jnp.maximum(s.capacity - on_links(s, rate), 0.0)
    users = on_links(s, free)
    rest = jnp.minimum(tightest(s, jnp.where(users > 1e-6, left / jnp.maximum(users, 1e-6), LATER)), line)
    return jnp.where(free > 0, rest, rate)


def whole(s: Setup, by_queue: Array, least: bool = False) -> Array:
    """[Q + 1] what all classes of traffic together have at each link, their sum or the least, at each of its queues."""
    if s.classes is None or s.problem.classes == 1:
        return by_queue
    by_class = s.classes.split(by_queue)
    together = by_class.min(0) if least else by_class.sum(0)
    return join(jnp.broadcast_to(together, by_class.shape), by_queue[-1:])


def on_links(s: Setup, rate: Array) -> Array:
    """[F] -> [L + 1] load of the rates, of all classes of traffic together; see `on_queues`."""
    return whole(s, on_queues(s, rate))


def on_queues(s: Setup, rate: Array) -> Array:
    """[F] -> [L + 1] load of the rates, split as the flows are; the sender's port included."""
    p = s.problem
    hops = p.at.row.shape[0]
    fabric = jnp.broadcast_to((rate[:, None] * s.share)[None, :, None, :], (hops, p.flows, 1, s.share.shape[1]))
    planes = rate[:, None] * s.plane
    return total(p, load(p.at, fabric, planes[:, None, :], p.queues)[:, 0].at[p.port_link].add(planes))


def tightest(s: Setup, value: Array) -> Array:
    """[L + 1] -> [F] smallest value over the links that a flow uses."""
    p = s.problem
    fabric, egress = read(p.at, value[:, None])
    ports = jnp.where(s.plane > 0, jnp.minimum(egress[:, 0], value[p.port_link]), LATER).min(-1)
    used = jnp.where(s.used & (fabric[:, :, 0] < LATER), fabric[:, :, 0], LATER).min((0, -1), initial=LATER)
    return jnp.minimum(used, ports)


def smallest_on_links(s: Setup, rate: Array) -> Array:
    """[F] -> [L + 1] smallest rate among the flows that use a link."""
    p = s.problem
    lanes = jnp.where(s.used, rate[:, None], LATER)
    start = jnp.full(p.queues + 1, LATER, rate.dtype)
    smallest = start.at[p.route].min(lanes).at[p.port_link].min(jnp.where(s.plane > 0, rate[:, None], LATER))
    return whole(s, least(p, smallest), least=True)
