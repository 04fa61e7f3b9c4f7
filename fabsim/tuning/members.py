"""The scenarios that one tuning must be good for: cases, failures and draws of the traffic, with their arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fabsim.errors import InputError
from fabsim.routing import all_paths
from fabsim.scenario.compile.arrays import assemble
from fabsim.scenario.keys.tune import Failures, Over
from fabsim.topology import Fabric, draw_cables, find_links, link_names
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
    bases = standing(scenario, over)
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


def standing(scenario: Scenario, over: Over) -> list[Scenario]:
    """The scenarios in which nothing fails. Raises InputError for cases that are not there."""
    if over.cases and not scenario.cases:
        raise InputError(scenario.source.sentence(("tune", "over", "cases"), "there are no cases; give cases:"))
    return list(scenario.variants.values()) if over.cases else [scenario.single()]


def member(scenario: Scenario, split: bool) -> Member:
    """One scenario with its arrays."""
    net = scenario.network()
    if split:
        net = replace(net, routes=all_paths(net.fabric, net.flows))
    return Member(scenario, net, *assemble(scenario, net), net.entry)


def draws(scenario: Scenario, failures: Failures, fabric: Fabric) -> list[dict[str, Any]]:
    """What each sample adds to `fabric.degraded`: both ways of each failed cable, drawn as `count` draws them there,
    sample after sample from one generator."""
    among = "*" if failures.among is None else failures.among
    random = np.random.default_rng(scenario.seed if failures.seed is None else failures.seed)
    alive = fabric.capacity > 0
    between = (fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts) & alive
    try:
        links = find_links(fabric, among)
        fitting = links[between[links]]
        picks = [draw_cables(fabric, among, fitting, failures.cables, random) for _ in range(failures.samples)]
    except InputError as error:
        place = ("tune", "over", "failures", "among")
        lines = [scenario.source.sentence(place, f"between switches {text}") for text in error.sentences]
        raise InputError(lines) from None
    names = link_names(fabric)
    return [
        {"fabric.degraded": [{"link": names[link], "speed": failures.speed} for link in pick[alive[pick]]]}
        for pick in picks
    ]


def added(scenario: Scenario, change: dict[str, Any]) -> dict[str, Any]:
    """A change of `fabric.degraded` adds to what stands there."""
    more = change.get("fabric.degraded", [])
    there = scenario.source.data.get("fabric", {}).get("degraded", [])
    return {**change, "fabric.degraded": [*there, *more]} if more else change


def _several(over: Over) -> bool:
    return over.cases or over.failures is not None or over.seeds > 1
