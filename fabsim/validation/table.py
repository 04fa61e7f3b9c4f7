"""The packet table: all cases of a directory, as text and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

from tqdm import tqdm

from fabsim.store import publish
from fabsim.validation.compare import COLUMNS, Row, compare
from fabsim.validation.directory import cases

HEAD = (
    "              mean us         last us        error by flow              wall s",
    "kind  flows  fluid  error    fluid  error  median   p90  (null) spread  fluid packets",
)


def validate(folder: Path, pattern: str = "*", progress: bool = True) -> Iterator[Row]:
    """Rows one by one, in the order of summary.csv."""
    for case in tqdm(cases(folder, pattern), unit="case", disable=None if progress else True, leave=False):
        yield compare(case)


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """The table with all columns, whole or not at all; what cannot be run has empty figures."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    out.writerows([_cell(value) for value in astuple(row)] for row in rows)
    publish(path, text.getvalue().encode(), force=True)


def as_text(rows: Sequence[Row]) -> str:
    """The table for a terminal: the rows that ran, then those that failed, then what was not run and why."""
    done = [row for row in rows if row.kind]
    width = max([len(row.case) for row in done], default=0)
    lines = [f"{'' if i == 0 else 'case':{width}}  {head}" for i, head in enumerate(HEAD)] if done else []
    lines += [f"{row.case:{width}}  {_line(row)}" for row in done]
    lines += [f"{row.case}: {row.note}" for row in done if row.note.startswith("failed")]
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not row.kind:
            reasons.setdefault(row.note, []).append(row.case)
    return "\n".join(lines + [f"not run: {_names(names)}: {why}" for why, names in reasons.items()])


def _line(row: Row) -> str:
    """Figures of a row under HEAD."""
    mean, last = row.fluid_mean_us / row.packet_mean_us - 1, row.fluid_last_us / row.packet_last_us - 1
    single = row.flows == 1
    apart = f"{_percent(row.err_median)} {_percent(row.err_p90)} {f'({_percent(row.null_p90).strip()})':>7}"
    return (
        f"{row.kind:5} {row.flows:5d} {row.fluid_mean_us:6.1f} {_percent(mean, '+')} {row.fluid_last_us:8.1f} "
        f"{_percent(last, '+')}  {' ' * 19 if single else apart} {'' if single else f'{row.spread_ratio:.2f}':>6} "
        f"{row.wall_s:6.1f} {'' if math.isnan(row.packet_cpu_s) else f'{row.packet_cpu_s:.2f}':>7}"
    ).rstrip()


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} cases such as {names[0]}"


def _percent(value: float, sign: str = "") -> str:
    return f"{round(100 * value, 1) + 0.0:{sign}.1f}%".rjust(6 if sign else 5)


def _cell(value: object) -> object:
    """Six digits; nothing for NaN."""
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else f"{value:.6g}"
