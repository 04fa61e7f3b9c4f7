"""The design of a sweep: its axes, and the values at each of its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.sweeps.sample import draw
from fabsim.typing import Int
from fabsim.units import UnitError, quantity

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

Choices = Sequence[Any] | Mapping[str, Any]
"""Values, or values by label."""


@dataclass(frozen=True)
class Axis:
    """One dimension of a sweep: keys that go together, and their values at each place along it.

    Attributes:
        name: of the dimension: the key of a grid, or zip, sample or seed.
        values: for each key, its value at every place.
        labels: what each place is called, for each key.
    """

    name: str
    values: Mapping[str, Sequence[Any]]
    labels: Mapping[str, Sequence[Any]]

    @property
    def size(self) -> int:
        """Places along it."""
        return len(next(iter(self.values.values())))

    def coordinate(self, key: str) -> tuple[np.ndarray, str]:
        """The labels of a key as numbers in its inner unit, where all are quantities of one unit; else as text."""
        labels = self.labels[key]
        try:
            read = [quantity(label) for label in labels]
        except UnitError:
            return np.array([str(label) for label in labels], dtype=object), ""
        units = {unit for _, unit in read}
        if len(units) > 1:
            return np.array([str(label) for label in labels], dtype=object), ""
        whole = all(isinstance(label, int) for label in labels)
        return np.array([int(x) if whole else x for x, _ in read]), units.pop()


@dataclass(frozen=True)
class Design:
    """All axes; the last one varies fastest. A point has a number from 0 to count - 1."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Places along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def count(self) -> int:
        """Points."""
        return int(np.prod(self.shape, dtype=np.int64))

    @cached_property
    def _lookup(self) -> list[tuple[str, Axis, int]]:
        return [(key, axis, number) for number, axis in enumerate(self.axes) for key in axis.values]

    def places(self, numbers: Int) -> tuple[Int, ...]:
        """The place along each axis of some points."""
        return np.unravel_index(numbers, self.shape)

    def values(self, number: int) -> dict[str, Any]:
        """What each varied key is at a point."""
        place = np.unravel_index(number, self.shape)
        return {key: axis.values[key][int(place[at])] for key, axis, at in self._lookup}

    def scenario(self, single: Scenario, number: int) -> Scenario:
        """The scenario at a point. Raises InputError, with "sweep" as the place of what is varied."""
        values = self.values(number)
        return single.change(values, dict.fromkeys(values, "sweep"))

    def described(self, number: int) -> str:
        """A point in words, by its labels."""
        place = np.unravel_index(number, self.shape)
        return ", ".join(f"{key}={axis.labels[key][int(place[at])]}" for key, axis, at in self._lookup)


def design(scenario: Scenario) -> Design:
    """The design of a scenario's `sweep`; of its seeds alone where it has none.

    Axes in this order: each key of the grid, zip, sample, seed.
    """
    plan = scenario.sweep
    axes: list[Axis] = []
    seeds = scenario.seeds
    if plan is not None:
        axes += [_chosen(key, {key: choices}) for key, choices in (plan.grid or {}).items()]
        axes += [_chosen("zip", plan.zip)] if plan.zip else []
        if plan.sample is not None:
            drawn = draw(plan.sample, scenario.seed if plan.sample.seed is None else plan.sample.seed)
            axes.append(Axis("sample", drawn, drawn))
        seeds = plan.seeds or seeds
    if seeds > 1 or not axes:
        numbers = [scenario.seed + number for number in range(seeds)]
        axes.append(Axis("seed", {"seed": numbers}, {"seed": numbers}))
    return Design(tuple(axes))


def _chosen(name: str, choices: Mapping[str, Choices]) -> Axis:
    values = {key: list(c.values()) if isinstance(c, Mapping) else list(c) for key, c in choices.items()}
    labels = {key: list(c) for key, c in choices.items()}  # of a mapping: its keys
    return Axis(name, values, labels)
