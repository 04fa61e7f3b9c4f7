"""Sections that speak of several runs: figures for cases that are not there, and more points than anybody can keep."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.text.source import Fault

MOST = 10_000_000
"""Points of a sweep: as many as its table, and the journal of its shards, still take in memory."""


def packets(scenario: Sections) -> Iterator[Fault]:
    """Cases that figures of packets are for, and that there are not."""
    names = list(scenario.cases) or [scenario.name]
    for case in scenario.packets:
        if case not in names:
            yield ("packets", case), f"there is no case {case!r}; the cases are {', '.join(map(repr, names))}"


def sweep(scenario: Sections) -> Iterator[Fault]:
    """A sweep of too many points."""
    plan = scenario.sweep
    if plan is None:
        return
    axes = [len(choices) for choices in (plan.grid or {}).values()]
    axes += [len(choices) for choices in list((plan.zip or {}).values())[:1]]
    axes += [plan.sample.count if plan.sample else 1, plan.seeds or scenario.seeds]
    if prod(axes) > MOST:
        yield ("sweep",), f"{prod(axes):,} points are too many, given {axes} along its axes; give at most {MOST:,}"
