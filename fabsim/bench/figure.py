"""What is measured, and how: a line of the table, and the smallest of some times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STEPS = 300
"""Steps of a run."""

SCENARIO: dict[str, Any] = {
    "name": "bench",
    "fabric": {
        "kind": "leaf_spine", "leaves": 8, "spines": 16, "hosts_per_leaf": 16, "rate": "400 Gbps", "latency": "1 us",
    },
    "routing": {"kind": "all"},
    "traffic": [{"kind": "permutation", "size": "2 MB"}],
    "transport": {"kind": "window", "window": "1.5 BDP"},
    "until": f"{STEPS} us",
}  # fmt: skip
"""A permutation over all spines of a 128-host leaf-spine, in steps of 1 us."""


@dataclass(frozen=True)
class Figure:
    """One line: what, how much, and what it says."""

    name: str
    value: str
    meaning: str


def least(work: Callable[[], Any], repeats: int) -> float:
    """Smallest seconds of some calls: other work on the machine can only add to them."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
