"""What a tuned level is of, in the names of scenarios: links by pattern, a class or an entry of the traffic, a flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.scenario.keys.traffic import ListedFlows
from fabsim.topology import link_names
from fabsim.tuning.member import Member
from fabsim.typing import Int

if TYPE_CHECKING:
    from fabsim.study.parameters import Levels


def group_name(base: Member, levels: Levels, number: int) -> str:
    """The name of one of the levels; "" where there is but one."""
    if levels.groups == 1:
        return ""
    if levels.name == "traffic.start":
        return start_place(base, number)
    classes = base.scenario.queue.classes
    if classes and levels.name.startswith("queue."):
        return classes[number].name
    names = link_names(base.net.fabric)
    mine = [names[link] for link in np.flatnonzero(group_of(levels) == number)]
    return mine[0] if len(mine) == 1 else " and ".join(_both_ways(sorted({pattern(name) for name in mine})))


def group_of(levels: Levels) -> Int:
    """Group of each number, -1 for one that stays."""
    group = np.asarray(levels.group)
    return np.where(group < levels.groups, group, -1)


def pattern(link: str) -> str:
    """The pattern of all links between such nodes: "leaf*->spine*"."""
    tail, head = link.partition("#")[0].split("->")
    return f"{tail.rstrip('0123456789')}*->{head.rstrip('0123456789')}*"


def start_place(base: Member, number: int) -> str:
    """The key of the start of an entry of the traffic, or of a listed flow, without `start`."""
    if not isinstance(base.scenario.traffic[0], ListedFlows):
        return f"traffic.{number}"
    entry = base.entry
    return f"traffic.{entry[number]}.list.{number - np.searchsorted(entry, entry[number])}"


def _both_ways(patterns: list[str]) -> list[str]:
    """The same with "leaf*<->spine*" for a pattern and its reverse."""
    ends = [tuple(one.split("->")) for one in patterns]
    return [
        f"{tail}<->{head}" if (head, tail) in ends and tail != head else f"{tail}->{head}"
        for tail, head in ends
        if (head, tail) not in ends or tail <= head
    ]
