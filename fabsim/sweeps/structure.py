"""Which points of a design have the same network and the same classes: those differ in values only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fabsim.sweeps.design import Axis, Design
from fabsim.typing import Int
from fabsim.units import UnitError, quantity

_VALUES = ("transport.", "queue.", "recovery.", "balancer.", "faults.", "react")
"""Sections whose quantities are parameters of the model, and change neither network nor program."""


def structures(design: Design) -> Iterator[Int]:
    """Groups of points, by number, that differ in nothing but values; in the order of their first points."""
    kinds = [structures_of_axis(axis) for axis in design.axes]
    sizes = [int(kind.max()) + 1 for kind in kinds]
    places = design.places(np.arange(design.count))
    code = np.ravel_multi_index([kind[place] for kind, place in zip(kinds, places, strict=True)], sizes)
    order = np.argsort(code, kind="stable")
    _, begins = np.unique(code[order], return_index=True)
    yield from np.split(order, begins[1:])


def structures_of_axis(axis: Axis) -> Int:
    """[size] equal numbers for places along an axis between which only values change."""
    keys = [key for key, values in axis.values.items() if not only_values(key, values)]
    if not keys:
        return np.zeros(axis.size, dtype=np.int64)
    told = [repr([axis.values[key][place] for key in keys]) for place in range(axis.size)]
    known: dict[str, int] = {}
    return np.array([known.setdefault(text, len(known)) for text in told])


def only_values(key: str, values: Sequence[Any]) -> bool:
    """Whether a key is a parameter of the model that takes quantities only."""
    if not key.startswith(_VALUES) or any(isinstance(value, bool) for value in values):
        return False
    try:
        for value in values:
            quantity(value)
    except UnitError:
        return False
    return True
