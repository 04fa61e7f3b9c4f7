"""Senders' ports that several classes of traffic share: what the flows of each class have, and when."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from fabsim.engine.columns import rows, table
from fabsim.engine.setup import Setup
from fabsim.models.classes import Classes
from fabsim.models.queue import PortState
from fabsim.typing import Array


def share(s: Setup, classes: Classes, demand: Array, whole: Array, most: Array | None) -> Array:
    """[F, P] what is granted of a demand: to each class as the classes share a port, to its flows max-min.

    demand: [F, P]; whole: [ports] units that a port sends; most: [F, P] units that shapers let the class of each flow
    send by its port, None for all.
    """
    d, own = table(s, demand), class_of(s)
    same, each = alike(own), own == jnp.arange(classes.count)[:, None, None]
    bound = whole if most is None else jnp.where(each, table(s, most), 0.0).max(-1)
    bound = jnp.broadcast_to(bound, each.shape[:-1])
    room = classes.rooms(whole, bound, jnp.where(each, d, 0.0).sum(-1))
    room = jnp.take_along_axis(room.T, jnp.maximum(own, 0), 1)
    lower = (d[:, None, :] < d[:, :, None]) & same
    below = jnp.where(lower, d[:, None, :], 0.0).sum(-1)
    level = (room - below) / (same & ~lower).sum(-1)
    return jnp.minimum(demand, rows(s, jnp.where(same, level[:, None, :], 0.0).max(-1)))


def gone(s: Setup, classes: Classes, sent: Array, part: Array) -> Array:
    """[F, P] units that a port has sent by the time that `part` of a flow has gone, of what all send in a step.

    The flows of a class go side by side, and so do the classes of a level, by weight; what goes before, goes first.
    """
    x, own = table(s, sent), class_of(s)
    mine = within(s, x, own, part)
    level, weight = jnp.array(classes.priority)[own], classes.weight[own]
    busy = mine
    for number in range(classes.count):
        whole = jnp.where(own == number, x, 0.0).sum(-1, keepdims=True)
        beside = jnp.minimum(whole, mine * classes.weight[number] / weight)
        beside = jnp.where((level == classes.priority[number]) & (own != number), beside, 0.0)
        busy = busy + jnp.where(level > classes.priority[number], whole, beside)
    return rows(s, busy)


def held_back(s: Setup, ports: PortState, sent: Array, part: Array) -> Array:
    """[F] when in the step, in [0, 1], shapers let go a `part` [F, P] of what a flow sends."""
    shape = s.classes and s.classes.shape
    if shape is None or ports.shape is None:
        return jnp.zeros_like(part[:, 0])
    link = s.problem.port_link
    mine = rows(s, within(s, table(s, sent), class_of(s), part))
    return jnp.clip((mine - ports.shape[link]) / shape.rate[link], 0.0, 1.0).max(-1)


def may_send(s: Setup, ports: PortState) -> Array | None:
    """[F, P] units that shapers let the class of each flow send by each port in this step; None for all."""
    shape = s.classes and s.classes.shape
    return None if shape is None or ports.shape is None else shape.most(ports.shape)[s.problem.port_link]


def of_class(s: Setup, x: Array) -> Array:
    """[F, P] what all flows of the class of each have at its port."""
    return rows(s, jnp.where(alike(class_of(s)), table(s, x)[:, None, :], 0.0).sum(-1))


def spend(s: Setup, ports: PortState, left: Array) -> PortState:
    """The buckets of shapers after a step in which so much has left each queue, those of senders included."""
    shape = s.classes and s.classes.shape
    return ports if shape is None or ports.shape is None else replace(ports, shape=shape.after(ports.shape, left))


def within(s: Setup, sent: Array, own: Array, part: Array) -> Array:
    """[ports, M] units of its class that have gone by the time that `part` [F, P] of a flow has, of `sent`
    [ports, M]."""
    return jnp.where(alike(own), jnp.minimum(sent[:, None, :], table(s, part)[:, :, None]), 0.0).sum(-1)


def class_of(s: Setup) -> Array:
    """[ports, M] class of each flow at each sending port, -1 where a port has fewer flows."""
    p = s.problem
    return jnp.append((p.port_link // p.links).reshape(-1), -1)[p.port_flows]


def alike(own: Array) -> Array:
    """[ports, M, M] whether two flows are of one class."""
    return own[:, None, :] == own[:, :, None]
