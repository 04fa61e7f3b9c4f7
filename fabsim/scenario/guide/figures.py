"""What figures are, for those who ask by name: those that sweeps keep, columns of results, and elasticities."""

from __future__ import annotations

import textwrap

from fabsim.results import COLUMNS
from fabsim.study.catalogue import FIXED, Metric, metric

PERCENTILES = "completion_p50", "completion_p99", "slowdown_p99"
"""Stand for all others."""
ELASTICITY = Metric(
    "1",
    "of an objective, by the rate or buffer of a link: the part by which it changes over the part by which the link "
    "does; -0.3 is 0.3 % less for 1 % more. `fabsim attribute` prints them; sums of a tier "
    "or host are those of all its links at once",
)


def figures(name: str) -> str:
    """The figures of that name, or that begin with it; all for `metrics`; nothing where there is none."""
    found = known()
    of = metric(name)
    if name in found or of is not None:
        chosen = {name: of or found[name]}
    elif name == "metrics":
        chosen = {key: found[key] for key in (*FIXED, *PERCENTILES)}
    else:
        chosen = {key: one for key, one in found.items() if key.startswith(f"{name}_")}
    if not chosen:
        return ""
    width = max(map(len, chosen)) + 2
    return "\n".join(["figures of a run", *(_line(key, one, width) for key, one in chosen.items())])


def known() -> dict[str, Metric]:
    """Columns of results, what sweeps keep, which holds where both have a name, and what `attribute` prints."""
    columns = {item.name: Metric(item.metadata["units"], item.metadata["meaning"]) for item in COLUMNS}
    kept = {name: one for name in (*FIXED, *PERCENTILES) if (one := metric(name)) is not None}
    return columns | kept | {"elasticity": ELASTICITY}


def _line(name: str, one: Metric, width: int) -> str:
    unit = f" ({one.unit})" if one.unit not in ("", "1") else ""
    return textwrap.fill(
        one.meaning + unit, 120, initial_indent=f"  {name:{width}}", subsequent_indent=" " * (width + 2)
    )
