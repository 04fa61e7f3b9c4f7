"""Groups of links that have one level in common: by tier, each by itself, or all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.scenario.keys.tune import Tuned
from fabsim.tuning.member import Member, Refuse
from fabsim.typing import Float, Int

if TYPE_CHECKING:
    from fabsim.study.parameters import Levels


def grouped(per: str, member: Member, links: Int, directed: bool) -> Int:
    """[L] group of each link, -1 for one that stays."""
    group = np.full(member.net.fabric.links, -1)
    group[links] = {
        "all": lambda: np.zeros(len(links), int),
        "link": lambda: np.arange(len(links)),
        "tier": lambda: _tiers(member, links, directed),
    }[per]()
    return group


def _tiers(member: Member, links: Int, directed: bool) -> Int:
    """Group of each of some links by the tiers at its ends."""
    fabric = member.net.fabric
    ends = np.stack([fabric.tier[fabric.src[links]], fabric.tier[fabric.dst[links]]], 1)
    return np.unique(ends if directed else np.sort(ends, 1), axis=0, return_inverse=True)[1].reshape(-1)


def of_links(
    entry: Tuned,
    path: tuple[str, ...],
    group: Int,
    now: Float,
    speed: Float,
    low: float | Float,
    high: float | Float | None,
    total: float | None,
    price: Float | float,
    follow: tuple[tuple[str, ...], ...],
    refuse: Refuse,
) -> Levels:
    """Levels of links: each link has its level times what it has now over the level of its group at the start."""
    from fabsim.study.parameters import levels

    start = start_levels(group, now, speed)
    some = group >= 0
    factor = np.where(some, now / start[group], 1.0)
    each = np.bincount(group[some], (factor * price)[some], minlength=len(start)).astype(float)
    if high is not None and np.any(np.asarray(high) <= low):
        raise refuse("high", f"must be more than low, given {entry.high}; give a larger one")
    if total is not None and len(start) == 1:
        raise refuse("cost" if entry.cost is not None else "total", "of one value alone the budget is the value; give "
                     "more than one, by per: link or per: tier, or leave the budget out")  # fmt: skip
    if total is not None:
        least, most = (each * low).sum(), np.inf if high is None else (each * high).sum()
        if not least < total < most:
            key = "cost" if entry.cost is not None else "total"
            raise refuse(key, f"the bounds leave from {least:.4g} to {most:.4g}, given {total:.4g}; give one between")
    return levels(entry.key, path, group, start, low=low, high=high, factor=factor, price=each, total=total,
                  follow=follow)  # fmt: skip


def start_levels(group: Int, now: Float, speed: Float) -> Float:
    """[G] what a healthy link of each group has, on average."""
    some = group >= 0
    whole = np.divide(now, speed, out=np.zeros_like(now), where=speed > 0)[some]
    return np.bincount(group[some], whole) / np.bincount(group[some])
