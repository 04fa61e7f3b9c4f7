"""Numbers of a fabric that are each right and together are not."""

from __future__ import annotations

from collections.abc import Iterator

from fabsim.machine import available
from fabsim.scenario.keys.counts import PLANE_KEYS, cables_of, plane_numbers
from fabsim.scenario.keys.direct import Dragonfly, Torus
from fabsim.scenario.keys.fabric import FabricSection, FatTree, HtsimTopology, LeafSpine, SingleSwitch
from fabsim.scenario.keys.plane import MultiPlane, RailOnly, RailOptimised
from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.keys.sites import Sites
from fabsim.scenario.text.source import Fault
from fabsim.topology import PRESETS
from fabsim.topology.direct import FARTHEST
from fabsim.topology.sites import apart
from fabsim.units import show_size, shown

BYTES = 100
"""Of memory that each directed link takes while a fabric is built. Measured: a leaf-spine with 2.2 million (96)."""
SMALL = 1_000_000
"""Cables that fit into any memory."""
TREE_NUMBERS = ("pods", "leaves_per_pod", "hosts_per_leaf", "leaf_uplinks", "agg_uplinks")


def fabric(scenario: Sections) -> Iterator[Fault]:
    """Everything in the section `fabric` that contradicts something else in it."""
    yield from _too_large(scenario.fabric)
    yield from _of_section(scenario.fabric)
    if not isinstance(scenario.fabric, HtsimTopology):
        for number, change in enumerate(scenario.fabric.degraded):
            if not change.model_dump(exclude={"link", "count"}, exclude_none=True):
                text = f"{shown(change.link)} is listed, but nothing changes; give speed, rate, latency, buffer or loss"
                yield ("fabric", "degraded", number), text


def _too_large(section: FabricSection) -> Iterator[Fault]:
    """A fabric that does not fit into memory, known before any of it is made."""
    cables = cables_of(section)
    if cables < SMALL:
        return
    need, have = 2 * BYTES * cables, available()
    if need > have:
        text = f"{cables:.3g} cables need about {show_size(need)} of memory, and {show_size(have)} is free"
        yield ("fabric",), f"{text}; give a smaller fabric"


def _of_section(section: FabricSection) -> Iterator[Fault]:
    """The same, of a section that stands at `fabric`."""
    match section:
        case LeafSpine() as fabric:
            yield from _two_tiers(fabric, {"hosts": fabric.hosts_per_leaf}, fabric.leaves)
        case SingleSwitch() as fabric:
            yield from _ports("switch", {"hosts": fabric.hosts}, fabric.ports)
        case FatTree() as fabric:
            yield from _fat_tree(fabric)
        case MultiPlane() as fabric:
            yield from _multi_plane(fabric)
        case RailOptimised() as fabric:
            yield from _two_tiers(fabric, {"servers": fabric.servers}, fabric.groups * fabric.rails)
            if (
                fabric.nvlink_rate is None
                and fabric.nvlink_latency != type(fabric).model_fields["nvlink_latency"].default
            ):
                yield ("fabric", "nvlink_latency"), "goes with nvlink_rate, without which there is no NVLink; give both"
        case RailOnly() as fabric:
            yield from _ports("rail switch", {"servers": fabric.servers}, fabric.ports)
        case Torus() as fabric:
            yield from _torus(fabric)
        case Dragonfly() as fabric:
            yield from _dragonfly(fabric)
        case Sites() as fabric:
            yield from _sites(fabric)


def _fat_tree(fabric: FatTree) -> Iterator[Fault]:
    given = [name for name in TREE_NUMBERS if getattr(fabric, name) is not None]
    missing = [name for name in TREE_NUMBERS if name not in given]
    if fabric.k is not None and given:
        yield ("fabric", given[0]), f"k = {fabric.k} says this already; give k, or {', '.join(TREE_NUMBERS)}"
    elif fabric.k is not None and fabric.k % 2:
        yield ("fabric", "k"), f"must be even, given {fabric.k}; write it like k: 8"
    elif fabric.k is None and missing:
        yield ("fabric",), f"a fat tree needs k, or else {', '.join(missing)} too; write it like k: 8"
    elif fabric.k is None and (fabric.oversubscription.leaf, fabric.oversubscription.agg) != (1.0, 1.0):
        yield ("fabric", "oversubscription"), "goes with k; with the numbers of each tier give fewer leaf_uplinks"
    elif fabric.k is None:
        leaf = {"hosts": fabric.hosts_per_leaf or 0, "uplinks": fabric.leaf_uplinks or 0}
        yield from _ports("leaf", leaf, fabric.ports)
    else:
        yield from _ports("switch", {"links": fabric.k or 0}, fabric.ports)


def _multi_plane(fabric: MultiPlane) -> Iterator[Fault]:
    missing = [name for name in PLANE_KEYS if getattr(fabric, name) is None]
    if fabric.preset is None and missing:
        choices = " or ".join(PRESETS)
        yield ("fabric",), f"planes without a preset need {', '.join(missing)} too; or give preset: {choices}"
        return
    numbers = plane_numbers(fabric)
    leaf = {"hosts": numbers["hosts_per_leaf"] or 0, "uplinks": (numbers["spines"] or 0) * fabric.uplinks}
    yield from _ports("leaf", leaf, fabric.ports)
    yield from _ports("spine", {"leaf links": fabric.leaves * fabric.uplinks}, fabric.ports)


def _torus(fabric: Torus) -> Iterator[Fault]:
    far = sum(size // 2 for size in fabric.dims)
    if far > FARTHEST:
        yield ("fabric", "dims"), f"the farthest routers are {far} links apart, at most {FARTHEST} are possible"
    links = sum(min(size - 1, 2) for size in fabric.dims)
    yield from _ports("router", {"host": 1, "neighbours": links}, fabric.ports)


def _dragonfly(fabric: Dragonfly) -> Iterator[Fault]:
    reach, others = fabric.routers_per_group * fabric.global_links, fabric.groups - 1
    if reach < others:
        least = -(-others // fabric.routers_per_group)
        text = (
            f"a group has {reach} ports for {others} other groups, given {fabric.global_links}; give at least {least}"
        )
        yield ("fabric", "global_links"), text
    needs = {"hosts": fabric.hosts_per_router, "routers": fabric.routers_per_group - 1, "global": fabric.global_links}
    yield from _ports("router", needs, fabric.ports)


def _sites(fabric: Sites) -> Iterator[Fault]:
    """Sites that contradict themselves, routes that lead nowhere, and sites that none leads to."""
    last = len(fabric.fabrics) - 1
    for number, site in enumerate(fabric.fabrics):
        for path, text in _of_section(site):
            yield ("fabric", "fabrics", number, *path[1:]), text
        if site.degraded:
            text = f"stands under fabric.degraded for all sites; give it there, with names like site{number}.leaf0"
            yield ("fabric", "fabrics", number, "degraded"), text
    planes = [(plane_numbers(site)["planes"] or 1) if isinstance(site, MultiPlane) else 1 for site in fabric.fabrics]
    for number, count in enumerate(planes):
        if count != planes[0]:
            text = f"planes are joined each to its like: site 0 has {planes[0]}, this one {count}; give as many"
            yield ("fabric", "fabrics", number), text
    for number, haul in enumerate(fabric.routes):
        where = ("fabric", "routes", number)
        one, other = haul.ends
        if one == other or max(one, other) > last:
            yield (*where, "between"), f"two of the sites 0 to {last} are needed, given {[one, other]}"
            return
        if haul.latency is None and haul.preset is None:
            yield where, "a route without a preset needs a latency; write it like latency: 100 km"
    far = apart(len(fabric.fabrics), [haul.ends for haul in fabric.routes])
    if far:
        yield ("fabric", "routes"), f"none leads from site 0 to site {', '.join(map(str, far))}; give one"


def _two_tiers(fabric: LeafSpine | RailOptimised, below: dict[str, int], leaves: int) -> Iterator[Fault]:
    """More cables than a leaf has ports, with what is `below` it, or than a spine has."""
    yield from _ports("leaf", {**below, "uplinks": fabric.spines * fabric.uplinks}, fabric.ports)
    yield from _ports("spine", {"leaf links": leaves * fabric.uplinks}, fabric.ports)


def _ports(switch: str, needs: dict[str, int], ports: int | None) -> Iterator[Fault]:
    """More cables than a switch has ports."""
    total = sum(needs.values())
    if ports is not None and total > ports:
        parts = " + ".join(f"{count} {name}" for name, count in needs.items())
        yield ("fabric", "ports"), f"a {switch} needs {total} ports ({parts}), given {ports}; give at least {total}"
