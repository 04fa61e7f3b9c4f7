"""What a picture of a sweep shows where nobody says: its kind, the figure and the axes, by size and type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from fabsim.errors import InputError
from fabsim.swept import SAMPLE, SEED, ZIP, Axis, axis, dims, figure, figures, headlines, keys, tail
from fabsim.typing import Float

if TYPE_CHECKING:
    import xarray

Kind = Literal["curves", "heat", "pareto", "share"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LINES = 7
"""Most lines of curves that nobody has asked for."""

VARIES = 1.01
"""Largest over smallest cost, from which on a front of cost is worth a look."""


@dataclass(frozen=True)
class View:
    """A kind of picture, the figure that it shows, and its axes: keys, or (for the x of a Pareto front) a figure."""

    kind: Kind
    figure: str
    x: str | None
    by: str | None


def view(
    data: xarray.Dataset,
    kind: Kind | None = None,
    *,
    metric: str | None = None,
    x: str | None = None,
    by: str | None = None,
) -> View:
    """What is given, and the rest by what the sweep has. Raises InputError where it lacks the axes for the kind."""
    kind = kind or _kind(data, x, by)
    if kind == "pareto":
        if by is not None:
            raise InputError(f"--by {by}: a Pareto front has no lines; leave it out, or draw --kind curves")
        against = metric or tail(data)
        return View(kind, against, x or _price(data, against), None)
    of = metric or headlines(data)[0]
    if kind == "share":
        if x is not None:
            raise InputError(f"--x {x}: shares lie over the figure itself; leave it out, or give --by")
        return View(kind, of, None, by)
    across = axis(data, x) if x else _best(_candidates(data), taken=axis(data, by) if by else None)
    if across is None:
        raise InputError(f"--kind {kind}: no axis of this sweep has two values or more; draw --kind share")
    if by is None:
        some = [one for one in _candidates(data) if kind == "heat" or one.size <= LINES or one.dim == SAMPLE]
        second = _best(some, taken=across, numbers_first=kind == "heat")
        by = second.name if second else None
    if kind == "heat" and by is None:
        raise InputError(f"--kind heat: there is no second axis beside {across.name}; draw --kind curves")
    return View(kind, of, across.name, by)


def _kind(data: xarray.Dataset, x: str | None, by: str | None) -> Kind:
    if x in figures(data):
        return "pareto"
    if x is None and by is None:
        if not _candidates(data):
            return "share"
        if "cost" in figures(data):
            cost = figure(data, "cost").values
            if np.isfinite(cost).any() and np.nanmax(cost) > VARIES * np.nanmin(cost):
                return "pareto"
    return "curves"


def _candidates(data: xarray.Dataset) -> list[Axis]:
    """One axis of each dimension that has several values; of a sample all. Without the seeds."""
    found = []
    for dim in dims(data):
        if dim == SEED or data.sizes[dim] < 2:
            continue
        some = [axis(data, key) for key in keys(data, dim)]
        if dim == ZIP and not (some[0].numbers is not None and some[0].size == data.sizes[dim]):
            some = [axis(data, ZIP)]
        elif dim == ZIP:
            some = some[:1]
        found += some
    return [one for one in found if one.size > 1]


def _best(some: list[Axis], *, taken: Axis | None, numbers_first: bool = True) -> Axis | None:
    """The axis with numbers (or the one without) and the most values; not along a dimension that is taken."""
    free = [
        one for one in some if taken is None or one.dim != taken.dim or (one.dim == SAMPLE and one.name != taken.name)
    ]
    return max(free, key=lambda one: ((one.numbers is not None) == numbers_first, one.size), default=None)


def _price(data: xarray.Dataset, against: str) -> str:
    """What is paid for the figure: cost, else watts, the largest queue, or what else there is."""
    found = [name for name in figures(data) if name != against]
    if not found:
        raise InputError(f"--kind pareto: this sweep has kept {against} only; a front needs two figures")
    return next((name for name in ("cost", "watts", "queue_peak") if name in found), found[0])


def logarithmic(numbers: Float) -> bool:
    """Whether numbers are better told apart in the logarithm: all above 0, and over decades, or growing by factors."""
    some = np.unique(numbers[np.isfinite(numbers)])
    if len(some) < 2 or some[0] <= 0:
        return False
    span = some[-1] / some[0]
    if len(some) < 3:
        return bool(span >= 100)
    steps, factors = np.diff(some) / (some[-1] - some[0]), np.diff(np.log(some)) / np.log(span)
    return bool(span >= 4 and factors.std() < 0.5 * steps.std()) or bool(span >= 100 and len(some) > 20)


def spans(values: Float, factor: float) -> bool:
    """Whether the largest value is so many times the smallest, and all are above 0."""
    ended = values[np.isfinite(values)]
    return bool(len(ended) and ended.min() > 0 and ended.max() >= factor * ended.min())
