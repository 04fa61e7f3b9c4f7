"""How many hosts a fabric has, from its numbers alone."""

from __future__ import annotations

from math import prod

from fabsim.scenario.keys.direct import Dragonfly, Torus
from fabsim.scenario.keys.fabric import FabricSection, FatTree, LeafSpine, SingleSwitch
from fabsim.scenario.keys.plane import MultiPlane, RailOnly, RailOptimised
from fabsim.scenario.keys.sites import Sites
from fabsim.scenario.schema import Sections
from fabsim.topology import PRESETS

PLANE_KEYS = ("planes", "spines", "hosts_per_leaf", "rate")


def host_count(scenario: Sections) -> int | None:
    """How many hosts the fabric has; None where a file says so."""
    return hosts_of(scenario.fabric)


def site_hosts(scenario: Sections) -> list[int]:
    """How many hosts each site has; none where there are no sites."""
    return [hosts_of(site) or 0 for site in scenario.fabric.fabrics] if isinstance(scenario.fabric, Sites) else []


def hosts_of(section: FabricSection) -> int | None:
    """How many hosts the fabric of a section has; None where a file says so."""
    match section:
        case LeafSpine() as fabric:
            return fabric.leaves * fabric.hosts_per_leaf
        case SingleSwitch() as fabric:
            return fabric.hosts
        case FatTree(k=int(k)):
            return k * (k // 2) ** 2
        case FatTree() as fabric:
            return (fabric.pods or 0) * (fabric.leaves_per_pod or 0) * (fabric.hosts_per_leaf or 0)
        case MultiPlane() as fabric:
            return fabric.leaves * (plane_numbers(fabric)["hosts_per_leaf"] or 0)
        case RailOptimised() as fabric:
            return fabric.groups * fabric.servers * fabric.rails
        case RailOnly() as fabric:
            return fabric.servers * fabric.rails
        case Torus() as fabric:
            return prod(fabric.dims)
        case Dragonfly() as fabric:
            return fabric.groups * fabric.routers_per_group * fabric.hosts_per_router
        case Sites() as fabric:
            return sum(hosts_of(site) or 0 for site in fabric.fabrics)
    return None


def plane_numbers(fabric: MultiPlane) -> dict[str, int | None]:
    """Planes, spines and hosts per leaf: as given, else from the preset."""
    preset = PRESETS.get(fabric.preset or "")
    given = {name: getattr(fabric, name) for name in PLANE_KEYS if name != "rate"}
    return {name: getattr(preset, name, None) if value is None else value for name, value in given.items()}
