"""Completion times that a packet-level simulator measured, to print beside the fluid ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.formats.text import real, records
from fabsim.scenario.compile.files import existing
from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

FINISH = "rx_finish_us"
"""The last byte at the receiver; a file that has only `finish_us` (the sender knows) is of another kind."""
OTHERS = ("flow_id", "src", "dst", "bytes", "finish_us")
"""Columns that such a file may have, too."""


def packet_times(scenario: Scenario) -> dict[str, Float]:
    """[F] s from start to the last byte at the receiver, for each case that names a file; inf where a flow did not end.

    Raises:
        InputError: no such file, a missing column, or not a number, with its place.
    """
    return {case: _read(scenario, case, name) for case, name in scenario.packets.items()}


def _read(scenario: Scenario, case: str, name: str) -> Float:
    where = ("packets", case)
    path = existing(scenario, where, name)
    try:
        times = [_time(fields, place) for place, fields in records(path, ("start_us", FINISH), OTHERS)]
    except InputError as error:
        raise InputError([scenario.source.sentence(where, text) for text in error.sentences]) from None
    return np.array(times, dtype=np.float64)


def _time(fields: dict[str, str], place: str) -> float:
    """Seconds of one row."""
    finish = real(fields[FINISH], FINISH, place) if fields[FINISH] else np.inf
    return (finish - real(fields["start_us"], "start_us", place)) * 1e-6
