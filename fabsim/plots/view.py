"""What a picture of a sweep shows where nobody says: its kind, the figure and the axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from fabsim.errors import InputError
from fabsim.spread import table
from fabsim.study.catalogue import series_of
from fabsim.swept import SAMPLE, SEED, ZIP, Axis, axis, dims, figure, figures, headlines, keys, tail
from fabsim.typing import Float

if TYPE_CHECKING:
    import xarray

Kind = Literal["curves", "heat", "pareto", "share", "time"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LINES = 7
"""Most lines of curves that nobody has asked for."""

DRAWS = 20
"""Seeds, from which on their shares say more than a median with its range."""

VARIES = 1.01
"""Largest over smallest cost, from which on a front of cost is worth a look."""


@dataclass(frozen=True)
class View:
    """A kind of picture, the figure that it shows (over time: a series), and its axes: keys, or (for the x of a Pareto
    front) a figure."""

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
    if kind == "time":
        return _over_time(data, metric, x, by)
    of = metric or headlines(data)[0]
    if kind == "share":
        if x is not None:
            raise InputError(f"--x {x}: shares lie over the figure itself; leave it out, or give --by")
        return View(kind, of, None, by or _lines(data, of, None))
    across = axis(data, x) if x else _longest(data, axis(data, by) if by else None)
    if across is None:
        raise InputError(f"--kind {kind}: no axis of this sweep has two values or more; draw --kind share")
    if by is None and kind == "heat":
        second = _longest(data, across)
        by = second.name if second else None
    by = by or _lines(data, of, across)
    if kind == "heat" and by is None:
        raise InputError(f"--kind heat: there is no second axis beside {across.name}; draw --kind curves")
    return View(kind, of, across.name, by)


def _over_time(data: xarray.Dataset, metric: str | None, x: str | None, by: str | None) -> View:
    kept = series_of(str(name) for name in data.data_vars)
    if x is not None:
        raise InputError(f"--x {x}: a series lies over time; leave it out, or give --by")
    if not kept:
        raise InputError(
            "--kind time: this sweep has kept no series; add traces: [series_queue] and watch: [...] to it"
        )
    if metric is not None and metric not in kept:
        raise InputError(f"{metric}: is no series of this sweep; there are {', '.join(kept)}")
    return View("time", metric or kept[0], None, by or _lines(data, headlines(data)[0], None))


def _kind(data: xarray.Dataset, x: str | None, by: str | None) -> Kind:
    if x in figures(data):
        return "pareto"
    if x is None and by is None:
        some = _candidates(data)
        if not some or (len(some) == 1 and some[0].numbers is None and data.sizes.get(SEED, 1) >= DRAWS):
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


def _longest(data: xarray.Dataset, taken: Axis | None) -> Axis | None:
    """The axis with the most values, one with numbers before all others."""
    return max(_free(data, taken), key=lambda one: (one.numbers is not None, one.size), default=None)


def _lines(data: xarray.Dataset, of: str, taken: Axis | None) -> str | None:
    """Of the axes with few values the one along which the figure moves most. (Dots of a sample may have any colour.)"""
    dots = taken is not None and taken.dim == SAMPLE
    some = [one for one in _free(data, taken) if one.size <= LINES or (dots and one.dim == SAMPLE)]
    moved = {one.name: np.ptp(np.nan_to_num(table(data, figure(data, of), one)[1])) for one in some}
    return max(moved, key=lambda name: moved[name], default=None)


def _free(data: xarray.Dataset, taken: Axis | None) -> list[Axis]:
    """Axes that are not along a dimension that is taken; of a sample the other keys are free."""
    return [
        one
        for one in _candidates(data)
        if taken is None or one.dim != taken.dim or (one.dim == SAMPLE and one.name != taken.name)
    ]


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
