"""Series of links over time in a batch: which are kept, and arrays of members of which some ended sooner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import Problem
from fabsim.engine.simulate import Frame
from fabsim.models.model import Model
from fabsim.typing import Array, Bool, Float, Int

FIELDS = {
    "series_queue": "queue",
    "series_peak": "peak",
    "series_utilisation": "busy",
    "series_marked": "marked",
    "series_dropped": "dropped",
}
"""What of a frame each series is made of."""


@dataclass(frozen=True)
class Watched:
    """What is kept over time.

    Attributes:
        names: of fabsim.study.catalogue.
        links: [members, W] of which links of each member; -1 for one that it has not, whose series is NaN.
    """

    names: tuple[str, ...]
    links: Int

    def of(self, members: Int) -> Watched:
        """The same for some members."""
        return Watched(self.names, self.links[members])


def series(
    problem: Problem, model: Model[Any], seen: Frame, links: Array | None, names: tuple[str, ...], every: int
) -> dict[str, Array]:
    """[frames, W] of some links [W], from frames of `every` steps in units: SI, utilisation as a part of 1."""
    found = {name: getattr(seen, FIELDS[name])[:, links] * problem.unit for name in names}
    if "series_utilisation" in found:
        able = model.links.capacity[links] * (every * problem.dt)
        found["series_utilisation"] *= jnp.where(able > 0, 1.0 / jnp.where(able > 0, able, 1.0), 0.0)
    return found


def until_the_end(values: Float, missing: Bool, frames: Float | None) -> Float:
    """[members, T, W] with NaN for links that are missing [members, W], and after so many frames of each member (None:
    all; inf where it did not end); as long as the longest of them."""
    values = np.where(missing[:, None], np.nan, values).astype(values.dtype)
    if frames is None:
        return values
    length = np.ceil(np.minimum(frames, values.shape[1])).astype(int)
    values[np.arange(values.shape[1]) >= length[:, None]] = np.nan
    return values[:, : length.max(initial=0)]


def laid(whole: Float | None, rows: Int | list[int], values: Float, count: int) -> Float:
    """[count, ...] with `values` in some rows. NaN in rows that nobody has laid, and after the end of shorter ones."""
    whole = np.full((count, *values.shape[1:]), np.nan, values.dtype) if whole is None else whole
    more = [(0, max(new - old, 0)) for new, old in zip(values.shape, whole.shape, strict=True)]
    whole = np.pad(whole, [(0, 0), *more[1:]], constant_values=np.nan)
    whole[(np.asarray(rows), *map(slice, values.shape[1:]))] = values
    return whole
