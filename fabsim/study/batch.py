"""Many problems of one shape as one: pad what differs in length, and stack."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import Problem
from fabsim.models.model import Model
from fabsim.typing import Array


@dataclasses.dataclass(frozen=True)
class Widths:
    """Lengths of what may be padded in a problem: steps of feedback, message slots, rows of the incidence, ports, flows
    of a port; and whether flows are coupled."""

    ring: int = 0
    slots: int = 0
    rows: int = 0
    ports: int = 0
    most: int = 0
    coupled: bool = False

    @classmethod
    def of(cls, problem: Problem) -> Widths:
        """As they stand."""
        ports, most = problem.port_flows.shape
        return cls(problem.ring, problem.slots, problem.at.links.shape[0], ports, most, problem.coupled)

    def __or__(self, other: Widths) -> Widths:
        """Wide enough for both."""
        return Widths(
            *(max(mine, theirs) for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True))
        )


def widen(problems: Sequence[Problem], widths: Widths | None = None) -> list[Problem]:
    """The same problems, as wide as the widest of them and as `widths`.

    Padding is inert: a row of "no link" that no flow uses, a port without flows.
    """
    to = reduce(Widths.__or__, map(Widths.of, problems), widths or Widths())
    wide = []
    for p in problems:
        more = to.rows - p.at.links.shape[0]
        at = dataclasses.replace(
            p.at,
            links=pad(p.at.links, [(0, more), (0, 0)], p.links),
            many=pad(p.at.many, [(0, more), (0, 0)], 1.0),
        )
        table = pad(
            p.port_flows,
            [(0, to.ports - p.port_flows.shape[0]), (0, to.most - p.port_flows.shape[1])],
            p.flows * p.planes,
        )
        wide.append(dataclasses.replace(p, ring=to.ring, slots=to.slots, coupled=to.coupled, at=at, port_flows=table))
    return wide


@dataclasses.dataclass(frozen=True)
class Batch:
    """Problems and models of one shape, with a leading axis of members."""

    problem: Problem
    model: Model[Any]


def batch(problems: Sequence[Problem], models: Sequence[Model[Any]], widths: Widths | None = None) -> Batch:
    """Widened and stacked."""
    return Batch(stack(widen(problems, widths)), stack(models))


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
