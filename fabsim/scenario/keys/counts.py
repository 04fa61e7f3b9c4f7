"""How many hosts and cables a fabric has, from its numbers alone."""

from __future__ import annotations

from math import prod

from fabsim.scenario.keys.direct import Dragonfly, Torus
from fabsim.scenario.keys.fabric import FabricSection, FatTree, LeafSpine, SingleSwitch
from fabsim.scenario.keys.plane import MultiPlane, RailOnly, RailOptimised
from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.keys.sites import Sites
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


def cables_of(section: FabricSection) -> int:
    """How many cables the fabric of a section has; 0 where a file says so."""
    hosts = hosts_of(section) or 0
    match section:
        case LeafSpine() as fabric:
            return hosts + fabric.leaves * fabric.spines * fabric.uplinks
        case FatTree(k=int()):
            return 3 * hosts
        case FatTree() as fabric:
            leaf_uplinks, agg_uplinks = fabric.leaf_uplinks or 0, fabric.agg_uplinks or 0
            return hosts + (fabric.pods or 0) * leaf_uplinks * ((fabric.leaves_per_pod or 0) + agg_uplinks)
        case MultiPlane() as fabric:
            numbers = plane_numbers(fabric)
            return (numbers["planes"] or 1) * (hosts + fabric.leaves * (numbers["spines"] or 0) * fabric.uplinks)
        case RailOptimised() as fabric:
            return hosts + fabric.groups * fabric.rails * fabric.spines * fabric.uplinks
        case Torus() as fabric:
            return hosts * (1 + len(fabric.dims))
        case Dragonfly() as fabric:
            routers = fabric.groups * fabric.routers_per_group
            return hosts + routers * (fabric.routers_per_group + fabric.global_links) // 2
        case Sites() as fabric:
            inside = sum(map(cables_of, fabric.fabrics))
            borders = fabric.border.switches * fabric.border.links * len(fabric.fabrics)
            return inside + borders + sum(haul.links for haul in fabric.routes) * fabric.border.switches
    return hosts


def plane_numbers(fabric: MultiPlane) -> dict[str, int | None]:
    """Planes, spines and hosts per leaf: as given, else from the preset."""
    preset = PRESETS.get(fabric.preset or "")
    given = {name: getattr(fabric, name) for name in PLANE_KEYS if name != "rate"}
    return {name: getattr(preset, name, None) if value is None else value for name, value in given.items()}
