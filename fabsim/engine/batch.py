"""Many problems of one shape as one: pad what differs in length, and stack."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import Problem
from fabsim.models.model import Model
from fabsim.typing import Array


def widen(problems: Sequence[Problem]) -> list[Problem]:
    """The same problems with equally long rings, as many message slots, and tables of equal size.

    Padding is inert: a row of "no link" that no flow uses, a port without flows.
    """
    ring, slots = max(p.ring for p in problems), max(p.slots for p in problems)
    rows = max(p.at.links.shape[0] for p in problems)
    ports = max(p.port_flows.shape[0] for p in problems)
    most = max(p.port_flows.shape[1] for p in problems)
    coupled = any(p.coupled for p in problems)
    wide = []
    for p in problems:
        more = rows - p.at.links.shape[0]
        at = dataclasses.replace(
            p.at,
            links=pad(p.at.links, [(0, more), (0, 0)], p.links),
            many=pad(p.at.many, [(0, more), (0, 0)], 1.0),
        )
        table = pad(
            p.port_flows, [(0, ports - p.port_flows.shape[0]), (0, most - p.port_flows.shape[1])], p.flows * p.planes
        )
        wide.append(dataclasses.replace(p, ring=ring, slots=slots, coupled=coupled, at=at, port_flows=table))
    return wide


def pad(x: Array, width: list[tuple[int, int]], value: float) -> Array:
    """numpy's constant pad, kept off the device."""
    return jnp.asarray(np.pad(np.asarray(x), width, constant_values=value))


def shape_of(problem: Problem, model: Model[Any]) -> tuple[Any, ...]:
    """What must agree for two scenarios to share a program, once widened: classes, and shapes of what is not padded."""
    leaves, tree = jax.tree.flatten((problem.size, problem.route, problem.links, problem.triggers, model))
    return tree, *(np.shape(x) for x in leaves), problem.links, problem.triggers, problem.planes


def stack(items: Sequence[Any]) -> Any:
    """Trees of equal structure, with a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack([np.asarray(x) for x in leaves])), *items)
