"""The packet table: all cases of a directory, as text and as CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

from tqdm import tqdm

from fabsim.validation.case import cases
from fabsim.validation.compare import COLUMNS, Row, compare


def validate(folder: Path, pattern: str = "*", progress: bool = True) -> Iterator[Row]:
    """Rows one by one, in the order of summary.csv."""
    for case in tqdm(cases(folder, pattern), unit="case", disable=None if progress else True, leave=False):
        yield compare(case)


def write_csv(rows: list[Row], path: Path) -> None:
    """The table with all columns; what cannot be run has empty figures."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for row in rows:
            out.writerow(["" if isinstance(x, float) and math.isnan(x) else _short(x) for x in astuple(row)])


def as_text(rows: list[Row]) -> str:
    """The table for a terminal: the rows that ran, then how many did not and why."""
    done = [row for row in rows if row.kind]
    width = max([len(row.case) for row in done], default=4)
    head = (
        f"{'case':{width}}  kind   flows   mean us (packet)    last us (packet)   mean err  last err  "
        "med err  p90 err (null)  spread  wall s (packet)"
    )
    lines = [head] if done else []
    for r in done:
        lines.append(
            f"{r.case:{width}}  {r.kind:5}  {r.flows:5d}  {r.fluid_mean_us:8.2f} {f'({r.packet_mean_us:.2f})':>10}  "
            f"{r.fluid_max_us:8.2f} {f'({r.packet_max_us:.2f})':>10}  {_percent(r.fluid_mean_us / r.packet_mean_us - 1):>8}  "
            f"{_percent(r.fluid_max_us / r.packet_max_us - 1):>8}  {_percent(r.err_median, ''):>7}  "
            f"{_percent(r.err_p90, ''):>7} {f'({_percent(r.null_p90, str())})':>7} {r.spread_ratio:7.2f}  "
            f"{r.wall_s:6.2f} {f'({r.packet_cpu_s:.2f})':>8}"
        )
    lines += [f"{r.case}: {r.note}" for r in done if r.note.startswith("failed")]
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not row.kind:
            reasons.setdefault(row.note, []).append(row.case)
    lines += [f"not run: {len(names)} cases such as {names[0]}: {why}" for why, names in reasons.items()]
    return "\n".join(lines)


def _percent(x: float, sign: str = "+") -> str:
    return f"{100 * x:{sign}.1f} %"


def _short(x: object) -> object:
    return f"{x:.6g}" if isinstance(x, float) else x
