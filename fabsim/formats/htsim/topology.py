"""htsim topologies (.topo): leaf-spine and fat trees of three tiers.

Grammar: one `Keyword value` a line, keywords in any case, whole numbers only, `#` begins a comment. `Nodes`, `Tiers`
(2 or 3) and `Podsize` come first; then `Tier 0` (leaves), `Tier 1`, `Tier 2`, each followed by its own keywords.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path

import numpy as np

from fabsim.errors import InputError, InputWarning
from fabsim.formats.text import read_text, whole
from fabsim.topology.clos import Tier, fat_tree3, two_tiers
from fabsim.topology.graph import Fabric

DEGRADED = 0.25  # what `-failed N` leaves of a link's speed
NEEDED = ("downlink_speed_gbps", "radix_down", "downlink_latency_ns")
KEYS = (
    *NEEDED, "radix_up", "switch_latency_ns", "oversubscribed", "bundle", "queue_up", "queue_down",
)  # fmt: skip


@dataclass
class Section:
    """Values of one tier (or of the head of the file) by lower-case keyword, and the place of each: file:line."""

    place: str
    value: dict[str, int] = field(default_factory=dict)
    at: dict[str, str] = field(default_factory=dict)


def read_topology(path: str | Path) -> Fabric:
    """The fabric of a .topo file. Names: h0, leaf0, spine0 (two tiers) or agg0, core0 (three tiers).

    Queue_Up and Queue_Down become buffers of the links of that tier upwards and downwards, NaN where not given.
    Unknown keywords warn with their line. Raises InputError (file:line) for anything that does not fit.
    """
    head, tiers = _sections(path)
    count = head.value["tiers"]
    below, top = tiers[:-1], tiers[-1]
    if "radix_up" in top.value:
        raise InputError(f"{top.at['radix_up']}: Radix_Up: the top tier has no links up, leave it out")
    for section in below:
        _check_oversubscription(section)
    hosts, pod = head.value["nodes"], head.value.get("podsize", head.value["nodes"])
    per_leaf, up = tiers[0].value["radix_down"], tiers[0].value["radix_up"]
    shape = [_tier(section) for section in tiers]
    try:
        if count == 2:
            leaves = _share(head, "Nodes", hosts, per_leaf, "hosts", "the leaf's Radix_Down")
            _matches(tiers[1], "Radix_Down", tiers[1].value["radix_down"], leaves * shape[1].parallel, "the leaves")
            if pod != hosts:
                raise InputError(f"{head.at['podsize']}: Podsize: {pod} given, two tiers are one pod of {hosts} hosts")
            spines = _share(tiers[0], "Radix_Up", up, shape[1].parallel, "ports", "the spine's Bundle")
            return two_tiers(leaves, spines, per_leaf, (shape[0], shape[1]))
        leaves = _share(head, "Podsize", pod, per_leaf, "hosts", "the leaf's Radix_Down")
        pods = _share(head, "Nodes", hosts, pod, "hosts", "Podsize")
        _matches(tiers[1], "Radix_Down", tiers[1].value["radix_down"], leaves * shape[1].parallel, "the pod's leaves")
        _matches(tiers[2], "Radix_Down", tiers[2].value["radix_down"], pods * shape[2].parallel, "the pods")
        return fat_tree3(
            pods=pods,
            leaves_per_pod=leaves,
            hosts_per_leaf=per_leaf,
            leaf_uplinks=up,
            agg_uplinks=tiers[1].value["radix_up"],
            tiers=(shape[0], shape[1], shape[2]),
        )
    except InputError as error:
        raise InputError([s if s.startswith(str(path)) else f"{path}: {s}" for s in error.sentences]) from None


def degrade_failed(fabric: Fabric, count: int) -> Fabric:
    """What the option `-failed N` does: N degraded spines, or core links, at a quarter of their speed.

    Two tiers: all links of spines 0 to N - 1, both ways. Three tiers: the links down from the cores to aggregation
    switch a (counted over all pods, A of them a pod) over its l-th core, where l + a A < N.
    """
    hit = np.zeros(fabric.links, dtype=bool)
    tail, head = fabric.tier[fabric.src], fabric.tier[fabric.dst]
    first = int(np.argmax(fabric.tier == 2)) if (fabric.tier == 2).any() else 0
    if (fabric.tier == 3).any():
        per_pod = int((fabric.pod[fabric.tier == 2] == 0).sum())
        agg = fabric.dst - first
        core = fabric.src - int(np.argmax(fabric.tier == 3))
        hit = (tail == 3) & (head == 2) & (core // per_pod + agg * per_pod < count)
    elif (fabric.tier == 2).any():
        hit = ((tail == 2) & (fabric.src - first < count)) | ((head == 2) & (fabric.dst - first < count))
    speed = np.where(hit, DEGRADED, 1.0)
    return replace(fabric, speed=fabric.speed * speed, capacity=fabric.capacity * speed)


def _sections(path: str | Path) -> tuple[Section, list[Section]]:
    """Head and tiers of the file, complete."""
    head = Section(f"{path}:1")
    tiers: dict[int, Section] = {}
    section = head
    for line, text in enumerate(read_text(path).splitlines(), start=1):
        words = text.split("#")[0].split()
        if not words:
            continue
        key, place = words[0].lower(), f"{path}:{line}"
        if key not in ("nodes", "tiers", "podsize", "tier", *KEYS):
            warnings.warn(f"{place}: {words[0]}: unknown keyword, not used", InputWarning, stacklevel=3)
            continue
        if len(words) != 2:
            raise InputError(f"{place}: {words[0]}: one whole number must follow, {len(words) - 1} words given")
        value = whole(words[1], words[0], place, least=0 if "latency" in key or key == "tier" else 1)
        if key == "tier":
            if value in tiers:
                raise InputError(f"{place}: Tier {value} comes twice, first at {tiers[value].place}")
            section = tiers[value] = Section(place)
            continue
        if (key in KEYS) == (section is head):
            where = "after a line `Tier n`" if key in KEYS else "before the first tier"
            raise InputError(f"{place}: {words[0]}: stands at the wrong place, it must be {where}")
        if key in section.value:
            raise InputError(f"{place}: {words[0]} comes twice, first at {section.at[key]}")
        section.value[key], section.at[key] = value, place
    return head, _complete(path, head, tiers)


def _complete(path: str | Path, head: Section, tiers: dict[int, Section]) -> list[Section]:
    """The tiers in order, when head and tiers have all that they need."""
    for key, name in (("nodes", "Nodes"), ("tiers", "Tiers")):
        if key not in head.value:
            raise InputError(f"{path}: {name} is missing")
    count = head.value["tiers"]
    if count not in (2, 3):
        raise InputError(f"{head.at['tiers']}: Tiers: {count} given, 2 or 3 are possible")
    if count == 3 and "podsize" not in head.value:
        raise InputError(f"{path}: Podsize is missing: three tiers need it")
    if sorted(tiers) != list(range(count)):
        given = ", ".join(str(tier) for tier in sorted(tiers)) or "none"
        raise InputError(f"{path}: tiers 0 to {count - 1} are needed, given: {given}")
    for tier in range(count):
        for key in (*NEEDED, "radix_up") if tier < count - 1 else NEEDED:
            if key not in tiers[tier].value:
                raise InputError(f"{tiers[tier].place}: Tier {tier}: {key.title()} is missing")
    return [tiers[tier] for tier in range(count)]


def _tier(section: Section) -> Tier:
    """SI values of a section."""
    value = section.value
    return Tier(
        rate=value["downlink_speed_gbps"] * 1e9 / 8,
        latency=value["downlink_latency_ns"] * 1e-9,
        switch_latency=value.get("switch_latency_ns", 0) * 1e-9,
        parallel=value.get("bundle", 1),
        buffer_up=value.get("queue_up", nan),
        buffer_down=value.get("queue_down", nan),
    )


def _check_oversubscription(section: Section) -> None:
    """Oversubscribed, where given, must be the ratio of the ports."""
    down, up, ratio = (section.value.get(key) for key in ("radix_down", "radix_up", "oversubscribed"))
    if ratio is not None and down != ratio * (up or 1):
        raise InputError(
            f"{section.at['oversubscribed']}: Oversubscribed: {ratio} given, but the ports are {down} down to {up} up"
        )


def _share(section: Section, key: str, total: int, part: int, things: str, by: str) -> int:
    """total / part, which must be whole."""
    if total % part:
        place = section.at.get(key.lower(), section.place)
        raise InputError(f"{place}: {key}: {total} {things} cannot be shared out by {by}, {part}")
    return total // part


def _matches(section: Section, key: str, given: int, needed: int, what: str) -> None:
    """A radix must fit the switches below."""
    if given != needed:
        raise InputError(f"{section.at[key.lower()]}: {key}: {given} given, but the links to {what} need {needed}")
