"""What a row measures, from the series of a run."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np

from fabsim.errors import InputError
from fabsim.published.rows import Row
from fabsim.results import Result
from fabsim.typing import Float
from fabsim.workload.packet import Packet


def figure(row: Row, result: Result, packet: Packet) -> float:
    """The row's figure of one run: Gbps of payload, or 1/s. Raises InputError for links or times that are not there."""
    if row.measure == "speed":
        return 1.0 / float(result.completion.max())
    rate = rates(row, result) * (packet.mtu - packet.header) / packet.mtu * 8e-9
    if row.measure == "mean":
        return float(rate.mean(1).min())
    return float(rate.min()) / (float(rate.max()) if row.measure == "fairness" else 1.0)


def rates(row: Row, result: Result) -> Float:
    """[samples, links] B/s of data, headers included."""
    names = [str(name) for name in result.watched]
    chosen = [number for number, name in enumerate(names) if fnmatchcase(name, row.links)]
    if not chosen:
        raise InputError(f"{row.row}: no link fits {row.links!r}; names look like {names[0]!r}")
    inside = np.flatnonzero(
        (result.time > row.begin * 1e-6 * (1 + 1e-9)) & (result.time <= row.end * 1e-6 * (1 + 1e-9))
    )
    if not len(inside):
        raise InputError(f"{row.row}: nothing was run between {row.begin:g} and {row.end:g} us")
    frame = result.time[1] - result.time[0]
    carried = result.series_sent[inside][:, chosen] / frame
    each = len(inside) if np.isnan(row.sample) else max(round(row.sample * 1e-6 / frame), 1)
    whole = len(inside) // each
    return carried[: whole * each].reshape(whole, each, -1).mean(1)
