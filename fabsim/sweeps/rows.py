"""A sweep as CSV: a row for each point."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.export import with_unit
from fabsim.swept import dims, figures, keys

if TYPE_CHECKING:
    import xarray


def as_csv(data: xarray.Dataset) -> str:
    """The keys, the figures and the reason of each point, in SI units; a figure that is not there is empty."""
    shape = tuple(data.sizes[dim] for dim in dims(data))
    columns: dict[str, list[Any]] = {}
    for key in keys(data):
        along = [1] * len(shape)
        along[dims(data).index(str(data[key].dims[0]))] = -1
        columns[_headed(data, key)] = np.broadcast_to(data[key].values.reshape(along), shape).reshape(-1).tolist()
    for name in figures(data):
        values = np.asarray(data[name].values, np.float64).reshape(-1)
        columns[_headed(data, name)] = np.where(np.isfinite(values), values.astype(object), "").tolist()
    columns["reason"] = data["reason"].values.reshape(-1).tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _headed(data: xarray.Dataset, name: str) -> str:
    return with_unit(name, str(data[name].attrs.get("units", "")))
