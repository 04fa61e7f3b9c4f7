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


SETTLED = 0.99
"""A time below this part of the smallest so far is news."""

PATIENCE = 60.0
"""Seconds after which no news is waited for any more."""


def seconds(work: Callable[[], Any]) -> float:
    """What a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def least(*works: Callable[[], Any], rounds: int) -> list[float]:
    """Smallest seconds of each work: other work on the machine can only add to them.

    They take turns, so that what is slow for a while is slow for all, and go on until none has become faster for so
    many rounds.
    """
    times = [float("inf")] * len(works)
    quiet, begin = 0, time.perf_counter()
    while quiet < rounds and time.perf_counter() - begin < PATIENCE:
        quiet += 1
        for number, work in enumerate(works):
            took = seconds(work)
            quiet = 0 if took < SETTLED * times[number] else quiet
            times[number] = min(times[number], took)
    return times
