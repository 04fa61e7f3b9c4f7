"""Whether the last few packets of a flow are still missing: a fluid knows how many are on average, and packets are
whole."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fabsim.engine.problem import Problem
from fabsim.models.chance import exponential
from fabsim.models.classes import each
from fabsim.models.model import Model
from fabsim.typing import Array

LAST_PACKET = 0.6931471805599453
"""ln 2 packets. Packets cannot be cut; a fluid can, and its losses shrink by a factor each round trip for ever. With x
packets on average still to be sent again, none is with probability exp(-x): below ln 2 packets it is more likely
than not that there is none, so the flow is complete at its median. Where losses are chance each flow has its own luck,
drawn: it is complete where x falls below an exponential number of packets, whose median is ln 2. They are chance under
a law that knows the luck of packets, and on links that lose at random: of packets that are lost each with a chance p,
those that need more than k tries are n p^k on average, with that one number for all k. What overflows is no chance."""

APART = 0x5BD1E995
"""So that this luck is not that of a flow's last packets, nor of its law."""

RESIDUE = 1e-2, 1e-6
"""Packets, and part of a flow's size, that are not told from nothing: roundings leave as much."""


def few(problem: Problem, model: Model[Any], dtype: jnp.dtype) -> Array:
    """[F] bytes below which what is still missing counts as none; laws need not say that they know no luck."""
    p, luck = problem, getattr(model.transport, "chance", 0.0)
    if loses_at_random(p, model):
        luck = jnp.where(at_risk(p, model), 1.0, luck)
    drawn = exponential(p.dice ^ jnp.uint32(APART), 1, dtype)[:, 0]
    packets = LAST_PACKET + luck * (drawn - LAST_PACKET)
    return jnp.maximum(jnp.maximum(packets, RESIDUE[0]) * p.packet, RESIDUE[1] * p.size)


def loses_at_random(problem: Problem, model: Model[Any]) -> bool:
    """Whether links may lose packets at random, always or at times."""
    return model.links.loss is not None or (problem.faults is not None and problem.faults.loss is not None)


def at_risk(problem: Problem, model: Model[Any]) -> Array:
    """[F] whether a link of any path that a flow uses loses packets at random, always or at times."""
    p, share = problem, model.split.weight
    loses = jnp.zeros(p.queues + 1, bool)
    if model.links.loss is not None:
        loses = loses.at[:-1].set(each(model.links.loss, p.classes) > 0)
    if p.faults is not None and p.faults.loss is not None:
        events = p.faults.inside(p.dt, p.classes)
        loses = loses | (events.links * p.faults.loss[:, None] > 0).any(0)
    own = jnp.repeat(loses[p.port_link], share.shape[-1] // p.planes, -1)
    return ((share > 0) & (own | loses[p.route].any(0))).any(-1)
