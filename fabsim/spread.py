"""How a figure of a sweep is spread over all that a table or a picture does not show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabsim.swept import SEED, Axis, Figure, dims
from fabsim.typing import Float, Int

if TYPE_CHECKING:
    import xarray

QUANTILES = np.array([0.05, 0.5, 0.95])


def group(data: xarray.Dataset, axes: Sequence[Axis]) -> Int:
    """[points] which cell of a table over some axes each point belongs to, the last axis fastest."""
    shape = tuple(data.sizes[dim] for dim in dims(data))
    cell = np.zeros(shape, np.int64)
    for one in axes:
        along = [1] * len(shape)
        along[dims(data).index(one.dim)] = -1
        cell = cell * one.size + one.place.reshape(along)
    return cell.reshape(-1)


def spread(values: Float, cell: Int, cells: int) -> Float:
    """[3, cells] the 5th percentile, the median and the 95th percentile of what lies in each cell; NaN where nothing
    does. By linear interpolation between ranks."""
    ended = np.isfinite(values)
    order = np.lexsort((values[ended], cell[ended]))
    ranked = np.append(values[ended][order], np.nan)
    count = np.bincount(cell[ended], minlength=cells)
    first = np.cumsum(count) - count
    at = QUANTILES[:, None] * np.maximum(count - 1, 0)
    low = np.floor(at).astype(np.int64)
    below, above = (ranked[first + np.minimum(rank, np.maximum(count - 1, 0))] for rank in (low, low + 1))
    return np.where(count > 0, below + (above - below) * (at - low), np.nan)


def table(data: xarray.Dataset, of: Figure, *axes: Axis) -> Float:
    """[3, size of each axis] the spread of a figure over all that is not among the axes."""
    sizes = [one.size for one in axes]
    return spread(of.values, group(data, axes), int(np.prod(sizes, dtype=np.int64))).reshape(3, *sizes)


def others(data: xarray.Dataset, axes: Sequence[Axis]) -> str:
    """What a table over some axes is the median of, in words; empty where each cell is one point."""
    used = {one.dim for one in axes}
    free = [dim for dim in dims(data) if dim not in used and data.sizes[dim] > 1]
    left = [f"{data.sizes[dim]} {'seeds' if dim == SEED else dim}" for dim in free]
    for one in axes:
        if data.sizes[one.dim] > one.size and not any(o.dim == one.dim and o is not one for o in axes):
            left.append(f"what goes with {one.name}")
    return ", ".join(left)
