"""Rows of published measurements: a CSV beside the scenarios that are to show them."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fabsim.errors import InputError

NAME = "published.csv"
"""The file in a folder of scenarios that makes it a table."""

COUNTS = ("counted", "shown", "input")
"""Whether a row is scored; shown: it is not, since what decides it is not published or not modelled; input: the figure
was put in, so that nothing is foretold."""

MEASURES = ("mean", "least", "fairness", "speed")


@dataclass(frozen=True)
class Row:
    """A published figure, and what in a scenario corresponds to it.

    Attributes:
        row: what was measured, in words; the name of the row.
        scenario, case: a file of the folder, and a case in it (empty: the scenario itself).
        seeds: over so many, from the scenario's own on, the median counts.
        measure: `mean` or `least` of some links' payload rates, Gbps; `fairness`, the least over the most of them; or
            `speed`, 1 / (last completion), 1/s.
        links: pattern of those links, as "*->h0".
        begin, end: us, the window over which rates are taken.
        sample: us; of a window that is cut into samples the worst counts; NaN: the window is one.
        over: a case that the figure is divided by; empty: none.
        unit: Gbps; empty for a ratio.
        published: the figure, as it is published.
        low, high: what the simulated one must lie between, the tolerance included; NaN: no bound.
        counts: one of COUNTS.
        source: where it is published.
        note: what is scaled, and why a row fails or is not counted.
    """

    row: str
    scenario: str
    case: str
    seeds: float
    measure: str
    links: str
    begin: float
    end: float
    sample: float
    over: str
    unit: str
    published: str
    low: float
    high: float
    counts: str
    source: str
    note: str

    def passes(self, value: float) -> bool:
        """Whether a simulated figure is within the tolerance."""
        return not (value < self.low or value > self.high or math.isnan(value))


def read_rows(folder: Path, pattern: str = "*") -> list[Row]:
    """The rows whose names fit. Raises InputError for a table that cannot be read, a sentence for each fault."""
    file, rows, wrong = folder / NAME, [], []
    try:
        with file.open(newline="") as lines:
            reader = csv.DictReader(lines)
            missing = [field.name for field in fields(Row) if field.name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"{file}: has no column {', '.join(missing)}")
            for number, given in enumerate(reader, start=2):
                try:
                    rows.append(_row(given))
                except ValueError as error:
                    wrong.append(f"{file}:{number}: {error}")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    if wrong:
        raise InputError(wrong)
    chosen = [row for row in rows if fnmatchcase(row.row, pattern)]
    if not chosen:
        raise InputError(f"{file}: no row fits {pattern!r}; rows are " + ", ".join(repr(row.row) for row in rows))
    return chosen


def _row(given: dict[str, str]) -> Row:
    """One row. Raises ValueError with what is wrong."""
    values: dict[str, Any] = {}
    for field in fields(Row):
        text = given[field.name] or ""
        values[field.name] = text if field.type == "str" else _number(field.name, text)
    row = Row(**values)
    for name, choices in (("measure", MEASURES), ("counts", COUNTS)):
        if getattr(row, name) not in choices:
            raise ValueError(f"{name}: {getattr(row, name)!r} given, must be one of {', '.join(choices)}")
    if row.counts != "input" and math.isnan(row.low) and math.isnan(row.high):
        raise ValueError("low, high: neither is given; a row that nothing can fail is none")
    if row.scenario and not row.seeds >= 1:
        raise ValueError(f"seeds: {row.seeds:g} given, at least 1 is needed")
    if row.scenario and row.measure != "speed" and not row.begin < row.end:
        raise ValueError(f"begin, end: {row.begin:g} and {row.end:g} us given, the window must have a length")
    return row


def _number(name: str, text: str) -> float:
    """A number, NaN where there is none."""
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise ValueError(f"{name}: {text!r} given, must be a number") from None
