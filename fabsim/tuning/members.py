"""The scenarios that one tuning must be good for: cases, failures and draws of the traffic, with their arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fabsim.errors import InputError
from fabsim.routing import all_paths
from fabsim.scenario.compile import assemble
from fabsim.scenario.keys.tune import Failures, Over
from fabsim.topology import Fabric, find_links, link_names
from fabsim.tuning.member import Member

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario


def members(scenario: Scenario, split: bool, *, progress: bool = True) -> tuple[Member, list[Member]]:
    """The scenario as it stands (of several cases the first), and all that it is tuned over.

    split: shares over all shortest paths are tuned: then these are the routes of all, in equal parts.

    Raises:
        InputError: cases whose fabrics differ in their links, cables that are not there, or none to fail.
    """
    assert scenario.tune is not None
    over = scenario.tune.over or Over()
    bases = list(scenario.variants.values()) if over.cases else [scenario.single()]
    if over.cases and not scenario.cases:
        raise InputError(scenario.source.sentence(("tune", "over", "cases"), "there are no cases; give cases:"))
    base = member(bases[0], split)
    failures = over.failures
    drawn = [{}] if failures is None else draws(scenario, failures, base.net.fabric)
    changed = [
        (one, {**fault, "seed": one.seed + number})
        for one in bases for fault in drawn for number in range(over.seeds)
    ]  # fmt: skip
    bar = tqdm(changed, unit="scenario", desc="compile", disable=None if progress else True, leave=False)
    found = [member(one.change(added(one, change)), split) for one, change in bar] if _several(over) else [base]
    if any(one.net.fabric.links != base.net.fabric.links for one in found):
        raise InputError(scenario.source.sentence(("tune", "over", "cases"), "the cases differ in their links; tune "
                                                  "cases of one fabric"))  # fmt: skip
    return base, found


def member(scenario: Scenario, split: bool) -> Member:
    """One scenario with its arrays."""
    net = scenario.network()
    if split:
        net = replace(net, routes=all_paths(net.fabric, net.flows))
    return Member(scenario, net, *assemble(scenario, net), net.entry)


def draws(scenario: Scenario, failures: Failures, fabric: Fabric) -> list[dict[str, Any]]:
    """What each sample adds to `fabric.degraded`: both directions of each failed cable."""
    place = ("tune", "over", "failures", "among")
    try:
        links = np.arange(fabric.links) if failures.among is None else find_links(fabric, failures.among)
    except InputError as error:
        raise InputError([scenario.source.sentence(place, text) for text in error.sentences]) from None
    between = (fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts) & (fabric.capacity > 0)
    names = link_names(fabric)
    cables = sorted({tuple(sorted((names[link], _back(names[link])))) for link in links[between[links]]})
    if len(cables) < failures.cables:
        raise InputError(scenario.source.sentence(place, f"{len(cables)} cables between switches, fewer than "
                                                  f"{failures.cables} that are to fail; name more"))  # fmt: skip
    random = np.random.default_rng(scenario.seed if failures.seed is None else failures.seed)
    picks = [random.choice(len(cables), failures.cables, replace=False) for _ in range(failures.samples)]
    there = set(names)
    return [
        {"fabric.degraded": [{"link": name, "speed": failures.speed} for cable in pick for name in cables[cable]
                             if name in there]}
        for pick in picks
    ]  # fmt: skip


def _back(name: str) -> str:
    """The opposite link of "leaf0->spine1#2"."""
    ends, _, lane = name.partition("#")
    tail, head = ends.split("->")
    return f"{head}->{tail}#{lane}" if lane else f"{head}->{tail}"


def added(scenario: Scenario, change: dict[str, Any]) -> dict[str, Any]:
    """A change of `fabric.degraded` adds to what stands there."""
    more = change.get("fabric.degraded", [])
    there = scenario.source.data.get("fabric", {}).get("degraded", [])
    return {**change, "fabric.degraded": [*there, *more]} if more else change


def _several(over: Over) -> bool:
    return over.cases or over.failures is not None or over.seeds > 1
