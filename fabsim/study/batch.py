"""Many problems of one shape as one: pad what differs in length, and stack what differs in value."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fabsim.engine.problem import Problem
from fabsim.models.model import Model
from fabsim.typing import Array


@dataclasses.dataclass(frozen=True)
class Batch:
    """Scenarios that run as one program.

    Attributes:
        problem, model: a leaf that all members share is held once, as it is; any other has the members on its last
            axis, as a numpy array.
        differs: trees of bools like problem and model: whether a leaf has that axis.
        members: how many.
    """

    problem: Problem
    model: Model[Any]
    differs: tuple[Any, Any]
    members: int

    @property
    def same_paths(self) -> bool:
        """Whether all members have one network: they differ in numbers, not in which link follows which."""
        pairs = zip(jax.tree.leaves(self.problem), jax.tree.leaves(self.differs[0]), strict=True)
        return not any(differs and np.issubdtype(x.dtype, np.integer) for x, differs in pairs)


def batch(problems: Sequence[Problem], models: Sequence[Model[Any]]) -> Batch:
    """The scenarios as one batch. They must agree in `shape_of`.

    Host work of some microseconds for a member that shares its problem with the others.
    """
    problem, of_problem = stack(widen(problems))
    model, of_model = stack(models)
    return Batch(problem, model, (of_problem, of_model), len(problems))


def widen(problems: Sequence[Problem]) -> list[Problem]:
    """The same problems with equally long rings, as many message slots, and tables of equal size.

    Padding is inert: a row of "no link" that no flow uses, a port without flows. One without any comes back as it is.
    """
    different = {id(p): p for p in problems}
    ring, slots = (max(getattr(p, name) for p in different.values()) for name in ("ring", "slots"))
    coupled = any(p.coupled for p in different.values())
    rows = max(p.at.links.shape[0] for p in different.values())
    ports, most = np.max([p.port_flows.shape for p in different.values()], axis=0)

    def one(p: Problem) -> Problem:
        more = rows - p.at.links.shape[0]
        more_ports, more_flows = ports - p.port_flows.shape[0], most - p.port_flows.shape[1]
        if not (more or more_ports or more_flows) and (p.ring, p.slots, p.coupled) == (ring, slots, coupled):
            return p
        at = dataclasses.replace(
            p.at,
            links=pad(p.at.links, [(0, more), (0, 0)], p.links),
            many=pad(p.at.many, [(0, more), (0, 0)], 1.0),
        )
        table = pad(p.port_flows, [(0, more_ports), (0, more_flows)], p.flows * p.planes)
        return dataclasses.replace(p, ring=ring, slots=slots, coupled=coupled, at=at, port_flows=table)

    wide = {key: one(p) for key, p in different.items()}
    return [wide[id(p)] for p in problems]


def pad(x: Array, width: list[tuple[int, int]], value: float) -> Any:
    """numpy's constant pad, kept off the device; the very array where there is nothing to add."""
    return np.pad(np.asarray(x), width, constant_values=value) if np.any(width) else x


def shape_of(problem: Problem, model: Model[Any]) -> tuple[Any, ...]:
    """What must agree for two scenarios to share a batch, once widened: classes, shapes of what is not padded, and the
    step, so that all members come to a given time together."""
    leaves, tree = jax.tree.flatten((problem.size, problem.route, problem.links, problem.triggers, model))
    static = problem.links, problem.triggers, problem.planes, float(problem.dt)
    return tree, *(np.shape(x) for x in leaves), *static


def stack(items: Sequence[Any]) -> tuple[Any, Any]:
    """Trees of equal structure as one, and a tree of bools: which leaves differ and have a new last axis, in numpy."""
    if all(item is items[0] for item in items):
        return items[0], jax.tree.map(lambda _: False, items[0])
    leaves, trees = zip(*map(jax.tree.flatten, items), strict=True)
    pairs = [stack_leaf(column) for column in zip(*leaves, strict=True)]
    return trees[0].unflatten([x for x, _ in pairs]), trees[0].unflatten([differs for _, differs in pairs])


def stack_leaf(column: Sequence[Any]) -> tuple[Any, bool]:
    """One leaf of all members: itself where all have the same, else stacked."""
    if all(x is column[0] for x in column):
        return column[0], False
    values = [np.asarray(x) for x in column]
    if all(np.array_equal(values[0], x) for x in values[1:]):
        return column[0], False
    return np.stack(values, -1), True
