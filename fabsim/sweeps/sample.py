"""Points in ranges: independent draws, a Latin hypercube, or a scrambled Sobol sequence (scipy.stats.qmc)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import qmc

from fabsim.scenario.keys.sweep import Range, Sample
from fabsim.typing import Float
from fabsim.units import quantity


def draw(sample: Sample, seed: int) -> dict[str, list[Any]]:
    """The values of each key at every point; the same seed gives the same points."""
    unit = _in_the_unit_cube(sample.method, sample.count, len(sample.ranges), seed)
    return {key: _stretch(column, span) for column, (key, span) in zip(unit.T, sample.ranges.items(), strict=True)}


def _in_the_unit_cube(method: str, count: int, dimensions: int, seed: int) -> Float:
    """[count, dimensions] in [0, 1)."""
    random = np.random.default_rng(seed)
    if method == "random":
        return random.random((count, dimensions))
    if method == "latin_hypercube":
        return qmc.LatinHypercube(dimensions, rng=random).random(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # balance is lost where count is no power of 2; that is known
        return qmc.Sobol(dimensions, rng=random).random(count)


def _stretch(unit: Float, span: Range) -> list[Any]:
    """From [0, 1) to the range, as a person would write it: text with a unit, a number, or a whole number."""
    (low, what), (high, _) = quantity(span.low), quantity(span.high)
    whole = isinstance(span.low, int) and isinstance(span.high, int)
    high += whole  # both bounds are drawn
    value = low * (high / low) ** unit if span.log else low + (high - low) * unit
    if whole:
        return [int(x) for x in np.floor(value)]
    return [f"{float(x)!r} {what}" if what else float(x) for x in value]
