"""What the dataset of a sweep holds, as it is shown: axes and figures with their units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.study.catalogue import metric, quantile
from fabsim.typing import Float, Int
from fabsim.units import UnitError, quantity

if TYPE_CHECKING:
    import xarray

SEED, ZIP, SAMPLE = "seed", "zip", "sample"
"""Dimensions with a meaning of their own."""

NOT_RUN = "not run yet"
"""The reason of a point whose shard is not there."""

MORE = ("goodput", "busbw")
"""Figures of which more is better; of all others less is."""

HEADLINES = ("last_completion", "completion_mean", "completion_p99", "busbw", "slowdown_mean", "queue_peak", "dropped")
"""Figures that a reader is shown first, where the sweep has kept them."""

FEW = 4
"""How many of them."""

STEPS = {
    "s": (("us", 1e6), ("ms", 1e3), ("s", 1.0)),
    "B": (("kB", 1e-3), ("MB", 1e-6), ("GB", 1e-9)),
    "B/s": (("Gbps", 8e-9), ("Tbps", 8e-12)),
}
"""How units are shown: the last one in which the largest value is at least 10, else the first."""


@dataclass(frozen=True)
class Axis:
    """A key that was varied, or a dimension.

    Attributes:
        dim: the dimension that it lies along.
        labels: its different values as text, without the unit; numbers in order.
        numbers: the same as numbers, in `unit`; None where they are none.
        place: [size of dim] which of them each place along the dimension has.
    """

    name: str
    dim: str
    labels: tuple[str, ...]
    numbers: Float | None
    unit: str
    place: Int

    @property
    def size(self) -> int:
        """How many different values."""
        return len(self.labels)

    @property
    def heading(self) -> str:
        """Name and unit."""
        return headed(self.name, self.unit)

    def value(self, number: int) -> str:
        """A value with its unit."""
        return f"{self.labels[number]} {self.unit}".strip()


@dataclass(frozen=True)
class Figure:
    """A figure of every point, flat, the last dimension fastest; in `unit`, NaN where there is none."""

    name: str
    meaning: str
    unit: str
    values: Float

    @property
    def heading(self) -> str:
        """Name and unit."""
        return headed(self.name, self.unit)

    @property
    def sign(self) -> int:
        """1 where less is better, -1 where more is."""
        return -1 if self.name in MORE else 1


def dims(data: xarray.Dataset) -> list[str]:
    """The dimensions of the design."""
    return [str(dim) for dim in data["reason"].dims]


def keys(data: xarray.Dataset, dim: str | None = None) -> list[str]:
    """What was varied; along one dimension only, if one is given."""
    along = dims(data) if dim is None else [dim]
    return [str(key) for key, c in data.coords.items() if len(c.dims) == 1 and c.dims[0] in along]


def axis(data: xarray.Dataset, name: str) -> Axis:
    """A key, or a dimension (zip, sample) whose keys go together. Raises InputError where there is no such axis."""
    if name in keys(data):
        return _of_key(data, name)
    if name in dims(data):
        some = telling([_of_key(data, key) for key in keys(data, name)])
        labels = [described(some, {name: place}) for place in range(data.sizes[name])]
        return Axis(name, name, tuple(labels), None, "", np.arange(len(labels)))
    there = dict.fromkeys([*keys(data), *dims(data)])
    raise InputError(f"{name}: is no axis of this sweep; there are {', '.join(there)}")


def telling(axes: Sequence[Axis]) -> list[Axis]:
    """Those that say something new: of keys of a zip, the first ones that tell all places apart."""
    found: list[Axis] = []
    for one in axes:
        known = [other for other in found if other.dim == one.dim]
        if one.dim != ZIP or _different([*known, one]) > max(_different(known), 1):
            found.append(one)
    return found


def described(axes: Sequence[Axis], place: Mapping[str, int]) -> str:
    """The values of some axes at one place along each dimension."""
    return ", ".join(f"{short(one.name)} {one.value(int(one.place[place[one.dim]]))}" for one in axes)


def figures(data: xarray.Dataset) -> list[str]:
    """All figures that a sweep has kept."""
    return [str(name) for name in data.data_vars if metric(str(name)) is not None]


def headlines(data: xarray.Dataset) -> list[str]:
    """The figures that a reader is shown first."""
    found = figures(data)
    return [*(name for name in HEADLINES if name in found), *(name for name in found if name not in HEADLINES)][:FEW]


def tail(data: xarray.Dataset) -> str:
    """The figure that says how late the last ones are: the highest percentile of completions, else what comes close."""
    found = figures(data)
    ranked = [name for name in found if (quantile(name) or ("",))[0] == "completion"]
    highest = sorted(ranked, key=lambda name: (quantile(name) or ("", 0.0))[1])[-1:]
    return next(name for name in (*highest, "completion_max", "last_completion", *found) if name in found)


def figure(data: xarray.Dataset, name: str) -> Figure:
    """A figure of all points. Raises InputError where the sweep has not kept it."""
    if name not in figures(data):
        raise InputError(f"{name}: is no figure of this sweep; there are {', '.join(figures(data))}")
    values = np.asarray(data[name].values, np.float64).reshape(-1)
    values = np.where(np.isfinite(values), values, np.nan)
    unit, factor = scaled(str(data[name].attrs.get("units", "")), values)
    return Figure(name, str(data[name].attrs.get("long_name", "")), unit, values * factor)


def scaled(unit: str, values: Float) -> tuple[str, float]:
    """The unit in which values are shown, and the factor to it."""
    steps = STEPS.get(unit)
    if steps is None:
        return ("" if unit == "1" else unit), 1.0
    largest = np.nanmax(np.abs(values)) if np.isfinite(values).any() else 0.0
    return next((step for step in reversed(steps) if largest * step[1] >= 10), steps[0])


def at(data: xarray.Dataset, chosen: Mapping[str, str]) -> xarray.Dataset:
    """The part of a sweep with these values of some keys. Raises InputError for one that was not tried."""
    for key, text in chosen.items():
        found = axis(data, key)
        wanted = [number for number in range(found.size) if _is(data, found, number, text)]
        if not wanted:
            there = ", ".join(found.value(number) for number in range(min(found.size, 12)))
            raise InputError(f"{key}={text}: was not tried in this sweep; there are {there}")
        data = data.isel({found.dim: np.flatnonzero(np.isin(found.place, wanted))})
    return data


def short(key: str) -> str:
    """The last part of a key."""
    return key.rsplit(".", 1)[-1]


def headed(name: str, unit: str) -> str:
    """Name and unit."""
    return f"{name} ({unit})" if unit else name


def _of_key(data: xarray.Dataset, name: str) -> Axis:
    values = data[name].values
    dim = str(data[name].dims[0])
    if values.dtype.kind in "OU":
        known: dict[str, int] = {}
        place = np.array([known.setdefault(str(value), len(known)) for value in values])
        return Axis(name, dim, tuple(known), None, "", place)
    unit, factor = scaled(str(data[name].attrs.get("units", "")), np.abs(values))
    different, place = np.unique(values, return_inverse=True)
    numbers = different * factor
    digits = 4 if dim == SAMPLE else 6
    return Axis(name, dim, tuple(f"{number:.{digits}g}" for number in numbers), numbers, unit, place)


def _different(axes: Sequence[Axis]) -> int:
    """How many different values axes of one dimension have together."""
    return len(set(zip(*(one.place.tolist() for one in axes), strict=True)))


def _is(data: xarray.Dataset, found: Axis, number: int, text: str) -> bool:
    """Whether a value is what somebody has written: as it is shown, as a number, or as a quantity."""
    if text in (found.labels[number], found.value(number)):
        return True
    if found.numbers is None:
        return False
    factor = scaled(str(data[found.name].attrs.get("units", "")), np.abs(data[found.name].values))[1]
    try:
        wanted = quantity(text)[0]
    except UnitError:
        return False
    return bool(np.isclose(found.numbers[number], wanted * factor, rtol=1e-9))
