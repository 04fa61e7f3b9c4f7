"""Many problems of one shape as one: pad what differs in length, and stack what differs in value."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from functools import reduce
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
        return not any(differs and np.issubdtype(x.dtype, np.signedinteger) for x, differs in pairs)


@dataclasses.dataclass(frozen=True)
class Widths:
    """Lengths of what may be padded in a problem: steps of feedback, message slots, rows of the incidence, ports, flows
    of a port; whether flows are coupled; and of long wires the cells, steps of feedback, crossings, and flows."""

    ring: int = 0
    slots: int = 0
    rows: int = 0
    ports: int = 0
    most: int = 0
    coupled: bool = False
    cells: int = 0
    heard: int = 0
    crossings: int = 0
    far: int = 0

    @classmethod
    def of(cls, problem: Problem) -> Widths:
        """As they stand."""
        ports, most = problem.port_flows.shape
        rows, w = problem.at.links.shape[0], problem.wires
        wires = () if w is None else (w.cells, w.ring, w.flow.shape[0], w.far.shape[0])
        return cls(problem.ring, problem.slots, rows, ports, most, problem.coupled, *wires)

    def __or__(self, other: Widths) -> Widths:
        """Wide enough for both."""
        mine, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return Widths(*map(max, mine, theirs))


def batch(
    problems: Sequence[Problem],
    models: Sequence[Model[Any]],
    widths: Widths | None = None,
    differs: Collection[int] = (),
) -> Batch:
    """The scenarios as one batch. They must agree in `shape_of`.

    Host work of some microseconds for a member that shares its problem with the others.

    Args:
        widths: least lengths of what is padded; batches of one sweep are to be one program.
        differs: leaves of (problem, model), by number, that have the members on their last axis in any case.
    """
    pairs = list(zip(widen(problems, widths), models, strict=True))
    (problem, model), which = stack(pairs, differs)
    return Batch(problem, model, which, len(problems))


def widen(problems: Sequence[Problem], widths: Widths | None = None) -> list[Problem]:
    """The same problems, as wide as the widest of them and as `widths`.

    Padding is inert: a row of "no link" that no flow uses, a port without flows. One without any comes back as it is.
    """
    different = {id(p): p for p in problems}
    to = reduce(Widths.__or__, map(Widths.of, different.values()), widths or Widths())

    def one(p: Problem) -> Problem:
        if Widths.of(p) == to:
            return p
        more = to.rows - p.at.links.shape[0]
        more_ports, more_flows = to.ports - p.port_flows.shape[0], to.most - p.port_flows.shape[1]
        at = dataclasses.replace(
            p.at,
            links=pad(p.at.links, [(0, more), (0, 0)], p.queues),
            many=pad(p.at.many, [(0, more), (0, 0)], 1.0),
        )
        table = pad(p.port_flows, [(0, more_ports), (0, more_flows)], p.flows * p.planes)
        wires = None if p.wires is None else p.wires.widen(to.cells, to.heard, to.crossings, to.far, p.flows)
        return dataclasses.replace(
            p, ring=to.ring, slots=to.slots, coupled=to.coupled, at=at, port_flows=table, wires=wires
        )

    wide = {key: one(p) for key, p in different.items()}
    return [wide[id(p)] for p in problems]


def pad(x: Array, width: list[tuple[int, int]], value: float) -> Any:
    """numpy's constant pad, kept off the device; the very array where there is nothing to add."""
    return np.pad(np.asarray(x), width, constant_values=value) if np.any(width) else x


def shape_of(problem: Problem, model: Model[Any]) -> tuple[Any, ...]:
    """What must agree for two scenarios to share a batch, once widened: classes, shapes of what is not padded, and the
    step, so that all members come to a given time together."""
    return shape_of_problem(problem), shape_of_model(model)


def shape_of_problem(problem: Problem) -> tuple[Any, ...]:
    """The problem's part of it."""
    leaves, tree = jax.tree.flatten((problem.size, problem.route, problem.faults))
    static = problem.links, problem.classes, problem.triggers, problem.planes, float(problem.dt)
    return tree, *map(np.shape, leaves), *static, problem.wires is None, problem.reverse is None


def shape_of_model(model: Model[Any]) -> tuple[Any, ...]:
    """The model's part of it."""
    leaves, tree = jax.tree.flatten(model)
    return tree, *map(np.shape, leaves)


def stack(items: Sequence[tuple[Any, Any]], differs: Collection[int] = ()) -> tuple[Any, Any]:
    """Pairs of equal structure as one, and a pair of bools: which leaves differ and have a new last axis, in numpy."""
    known = {id(x): jax.tree.leaves(x) for x, _ in items}  # problems are large, few, and flattened once
    leaves = [known[id(x)] + jax.tree.leaves(y) for x, y in items]
    tree = jax.tree.structure(items[0])
    pairs = [stack_leaf(column, number in differs) for number, column in enumerate(zip(*leaves, strict=True))]
    return tree.unflatten([x for x, _ in pairs]), tree.unflatten([differs for _, differs in pairs])


def stack_first(items: Sequence[Any]) -> Any:
    """Trees of equal structure as one with a new first axis, in numpy: what jax.vmap and jax.shard_map take."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(x) for x in leaves]), *items)


def stack_leaf(column: Sequence[Any], differs: bool = False) -> tuple[Any, bool]:
    """One leaf of all members: itself where all have the same and nothing else is asked for, else stacked."""
    first = column[0]
    if not differs and all(x is first or np.array_equal(x, first) for x in column):
        return first, False
    return np.moveaxis(np.stack([np.asarray(x) for x in column]), 0, -1), True  # to stack on the last axis is slow
