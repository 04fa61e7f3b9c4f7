"""Completion times that the packet simulator measured: flow_id, ..., start_us, ..., rx_finish_us."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabsim.errors import InputError
from fabsim.formats.htsim.matrix import Matrix
from fabsim.formats.text import real, records, whole
from fabsim.typing import Float

KNOWN = ("src", "dst", "bytes", "start_us", "finish_us", "rx_trimmed", "rx_ooo", "rx_ecn")


@dataclass(frozen=True)
class Measured:
    """Shapes: F flows, in the order of the matrix.

    Attributes:
        start: [F] s at which the flow began, from time zero.
        finish: [F] s at which its last byte was at the receiver, from time zero; NaN where it was not.
        at_sender: whether `finish` is when the sender knew it, since receivers' times were not measured.
    """

    start: Float
    finish: Float
    at_sender: bool = False

    @property
    def duration(self) -> Float:
        """[F] s from start to finish."""
        return self.finish - self.start


def read_measured(path: Path, matrix: Matrix) -> Measured:
    """Starts (those of the matrix, where the file has none) and completions by flow_id, in any order.

    A flow without a row, or with an empty rx_finish_us, did not finish; if all are empty, finish_us counts. Where all
    flow_ids are others than the matrix has, flows are known by src and dst. Raises InputError (file:line) for a flow
    that is not in the matrix or differs from it, comes twice, or ends before it begins.
    """
    flows = matrix.flows
    number = {int(flow_id): flow for flow, flow_id in enumerate(matrix.ids)}
    start = np.where(flows.trigger < 0, flows.start, np.nan)
    finish, knew = np.full((2, flows.count), np.nan)
    seen: set[int] = set()
    lines = [(place, fields, whole(fields["flow_id"], "flow_id", place)) for place, fields in _lines(path)]
    pairs = {pair: flow for flow, pair in enumerate(zip(flows.src, flows.dst, strict=True))}
    by_pair = len(pairs) == flows.count and not any(flow_id in number for _, _, flow_id in lines)
    for place, fields, flow_id in lines:
        flow = number.get(flow_id)
        if by_pair and {"src", "dst"} <= fields.keys():
            flow = pairs.get((whole(fields["src"], "src", place), whole(fields["dst"], "dst", place)))
        if flow is None or flow in seen:
            raise InputError(
                f"{place}: flow_id: flow {flow_id} " + ("is not in the matrix" if flow is None else "comes twice")
            )
        seen.add(flow)
        for key, there in (("src", flows.src), ("dst", flows.dst), ("bytes", flows.size)):
            if key in fields and real(fields[key], key, place) != there[flow]:
                raise InputError(f"{place}: {key}: {fields[key]} given, but in the matrix it is {there[flow]:.0f}")
        if fields.get("start_us"):
            start[flow] = real(fields["start_us"], "start_us", place) * 1e-6
        if fields["rx_finish_us"].strip().lower() not in ("", "nan"):
            finish[flow] = real(fields["rx_finish_us"], "rx_finish_us", place) * 1e-6
        if fields.get("finish_us", "").strip().lower() not in ("", "nan"):
            knew[flow] = real(fields["finish_us"], "finish_us", place) * 1e-6
        if finish[flow] <= start[flow]:
            raise InputError(f"{place}: rx_finish_us: {fields['rx_finish_us']} given, not after the start of the flow")
    at_sender = bool(np.isnan(finish).all())
    finish = knew if at_sender else finish
    unknown = np.flatnonzero(np.isnan(start) & ~np.isnan(finish))
    if len(unknown):
        raise InputError(f"{path}: start_us: needed for flow {matrix.ids[unknown[0]]}, which waits for a trigger")
    return Measured(start, finish, at_sender)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Place and fields of each line."""
    return records(path, ("flow_id", "rx_finish_us"), KNOWN)
