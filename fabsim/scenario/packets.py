"""Completion times that a packet-level simulator measured, to print beside the fluid ones."""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

FINISH = "rx_finish_us"
"""The last byte at the receiver; a file that has only `finish_us` (the sender knows) is of another kind."""


def packet_times(scenario: Scenario) -> dict[str, Float]:
    """[F] s from start to the last byte at the receiver, for each case that names a file; inf where a flow did not end.

    Raises:
        InputError: no such file, a missing column, or not a number, with its place.
    """
    return {case: _read(scenario, case, name) for case, name in scenario.packets.items()}


def _read(scenario: Scenario, case: str, name: str) -> Float:
    path = scenario.file(name)
    if not path.is_file():
        text = f"there is no file {str(path)!r}; paths start at the folder of the scenario"
        raise InputError(scenario.source.sentence(("packets", case), text))
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [column for column in ("start_us", FINISH) if column not in (reader.fieldnames or ())]
        if missing:
            text = f"{path}:1: has no column {missing[0]!r}; give start_us and {FINISH}, in microseconds"
            raise InputError(scenario.source.sentence(("packets", case), text))
        times = [_time(row, f"{path}:{reader.line_num}") for row in reader]
    return np.array(times, dtype=np.float64)


def _time(row: dict[str, str], place: str) -> float:
    """Seconds of one row."""
    try:
        finish = float(row[FINISH]) if row[FINISH] else np.inf
        return (finish - float(row["start_us"])) * 1e-6
    except (TypeError, ValueError):
        raise InputError(f"{place}: not a number of microseconds, given {row[FINISH]!r}; write it like 86.33") from None
