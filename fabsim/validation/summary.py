"""The packet table in a page: a line for each family of cases, and whether balancers come out in the packets' order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from fabsim.validation.compare import Row

APART = 0.05
"""Two balancers of one network are told apart where the last completions of their packets differ by more than this."""

HEAD = (
    "                 mean           last           p90          spread",
    "rows  median  worst  median  worst  median  worst  median  worst",
)


def by_family(rows: Sequence[Row]) -> str:
    """Median and worst of the errors of each family, as absolute values; then the order of balancers.

    mean, last: of the mean completion and of the last byte; p90: of |fluid / packet - 1|, flow by flow or of sorted
    completions; spread: fluid over packets of (max - min) / mean, where the worst is the furthest from 1.
    """
    done = [row for row in rows if row.kind]
    families = list(dict.fromkeys(row.family for row in done))
    width = max([len(name) for name in (*families, "all")], default=0)
    lines = [f"{'':{width}}  {head}" for head in HEAD]
    lines += [f"{name:{width}}  {_line([row for row in done if row.family == name])}" for name in families]
    lines.append(f"{'all':{width}}  {_line(done)}")
    right, wrong = order(done)
    lines.append(
        f"pairs of balancers on one network whose packets end more than {APART:.0%} apart: "
        f"{right} of {right + len(wrong)} end in the packets' order"
    )
    return "\n".join(lines + [f"not in order: {one} and {other}" for one, other in wrong])


def order(rows: Sequence[Row]) -> tuple[int, list[tuple[str, str]]]:
    """How many pairs of balancers come out in the order of the packets' last completions, and those that do not."""
    right, wrong = 0, []
    for one, other in combinations([row for row in rows if row.network], 2):
        late, early = (one, other) if one.packet_last_us > other.packet_last_us else (other, one)
        if one.network != other.network or late.packet_last_us <= (1 + APART) * early.packet_last_us:
            continue
        if late.fluid_last_us > early.fluid_last_us:
            right += 1
        else:
            wrong.append((late.case, early.case))
    return right, wrong


def _line(rows: Sequence[Row]) -> str:
    """Figures of a family under HEAD."""
    mean = np.array([abs(row.fluid_mean_us / row.packet_mean_us - 1) for row in rows])
    last = np.array([abs(row.fluid_last_us / row.packet_last_us - 1) for row in rows])
    errors = (mean, last, np.array([row.err_p90 for row in rows]))
    figures = "  ".join(f"{np.median(x):6.1%} {x.max():6.1%}" for x in errors)
    spread = np.array([row.spread_ratio for row in rows if np.isfinite(row.spread_ratio)])
    if len(spread):
        figures += f"  {np.median(spread):6.2f} {spread[np.abs(np.log(np.maximum(spread, 1e-6))).argmax()]:6.2f}"
    return f"{len(rows):4d}  {figures}"
