"""Run what the rows need, each case once, and set what was published beside what came out."""

from __future__ import annotations

import csv
import io
import math
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fabsim.errors import InputError
from fabsim.published.figures import figure
from fabsim.published.rows import Row, read_rows
from fabsim.results import Result
from fabsim.scenario import Scenario, load
from fabsim.scenario.run import run
from fabsim.store import publish


@dataclass(frozen=True)
class Found:
    """A row with what was simulated, and the seconds that its runs took (0 where another row had needed them)."""

    row: Row
    value: float
    wall: float

    @property
    def verdict(self) -> str:
        """pass or FAIL, for what is counted; else shown or input."""
        if self.row.counts != "counted":
            return self.row.counts
        return "pass" if self.row.passes(self.value) else "FAIL"


def validate(folder: Path, pattern: str = "*", progress: bool = True) -> Iterator[Found]:
    """Rows one by one. Raises InputError for a table or a scenario that cannot be."""
    runs = Runs(folder)
    for row in tqdm(read_rows(folder, pattern), unit="row", disable=None if progress else True, leave=False):
        began = time.perf_counter()
        value = runs.value(row) if row.scenario else math.nan
        yield Found(row, value, time.perf_counter() - began)


class Runs:
    """The runs of a folder's scenarios, each done once, when a row first needs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: dict[tuple[str, str, int], tuple[Scenario, Result]] = {}

    def value(self, row: Row) -> float:
        """A row's figure: the median over its seeds."""
        return float(np.median([self.one(row, number) for number in range(int(row.seeds))]))

    def one(self, row: Row, number: int) -> float:
        """The figure with the scenario's own seed and `number` more."""
        value = self.figure(row, row.case, number)
        if not row.over:
            return value
        below = self.figure(row, row.over, number)
        return value / below if below else math.nan

    def figure(self, row: Row, case: str, number: int) -> float:
        """What the row measures, in a case. Raises InputError where there is no such case."""
        key = row.scenario, case, number
        if key not in self.done:
            scenario = load(self.folder / row.scenario)
            if number:
                scenario = load(self.folder / row.scenario, seed=scenario.seed + number)
            name, variants = case or scenario.name, scenario.variants
            if name not in variants:
                raise InputError(f"{row.row}: {row.scenario} has no case {name!r}; there are {', '.join(variants)}")
            self.done[key] = variants[name], run(variants[name], progress=False, watch="all")
        scenario, result = self.done[key]
        return figure(row, result, scenario.packet.sizes)


def as_text(found: Sequence[Found]) -> str:
    """The table for a terminal: rows, then how many of those that count pass, then notes."""
    width = max(len(one.row.row) for one in found)
    lines = [f"{'':{width}}  {'published':>12} {'simulated':>10} {'accepted':>16}        wall s"]
    lines += [_line(one, width) for one in found]
    counted = [one for one in found if one.row.counts == "counted"]
    passed = sum(one.verdict == "pass" for one in counted)
    lines.append(f"{passed} of {len(counted)} counted rows pass; {len(found) - len(counted)} are shown, or put in")
    notes = [f"{one.row.row}: {one.row.note}" for one in found if one.row.note]
    return "\n".join([*lines, *(textwrap.fill(note, 120, subsequent_indent="  ") for note in notes)])


def _line(one: Found, width: int) -> str:
    row = one.row
    ends = ["" if math.isnan(bound) else f"{bound:g}" for bound in (row.low, row.high)]
    accepted = " to ".join(ends) if all(ends) else f"from {ends[0]}" if ends[0] else f"to {ends[1]}" if ends[1] else ""
    value = "" if math.isnan(one.value) else f"{one.value:.3g}"
    return f"{row.row:{width}}  {row.published:>12} {value:>10} {accepted:>16}  {one.verdict:5} {one.wall:6.1f}"


def write_csv(found: Sequence[Found], path: Path) -> None:
    """The table with all columns, whole or not at all."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow([field.name for field in fields(Row)] + ["simulated", "verdict", "wall_s"])
    for one in found:
        cells = [*astuple(one.row), one.value, one.verdict, round(one.wall, 2)]
        out.writerow(["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells])
    publish(path, text.getvalue().encode(), force=True)
