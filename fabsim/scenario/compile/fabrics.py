"""The section `fabric` built by the rooms that know how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim import topology
from fabsim.formats.graphml import read_graph
from fabsim.formats.htsim import read_topology
from fabsim.scenario.compile.files import existing
from fabsim.scenario.keys.counts import plane_numbers
from fabsim.scenario.keys.direct import Dragonfly, GraphMl, Torus
from fabsim.scenario.keys.fabric import FabricSection, FatTree, HtsimTopology, LeafSpine, SingleSwitch
from fabsim.scenario.keys.plane import MultiPlane, RailOnly, RailOptimised, UpperLinks
from fabsim.scenario.keys.sites import Haul, Sites
from fabsim.scenario.text.source import KeyPath, PlacedError
from fabsim.topology import DISTANCES, PRESETS, Border, Fabric, NvLink, Route, Site, Tier
from fabsim.topology.wiring import BORDER, INSIDE
from fabsim.typing import Float, Int

if TYPE_CHECKING:
    from fabsim.scenario.text.document import Document


def build_fabric(scenario: Document) -> Fabric:
    """The healthy fabric. Raises InputError."""
    return _built(scenario, scenario.fabric, ("fabric",))


def _built(scenario: Document, section: FabricSection, where: KeyPath) -> Fabric:
    """The fabric of a section, which stands at `where`."""
    match section:
        case LeafSpine() as fabric:
            return topology.leaf_spine(
                fabric.leaves, fabric.spines, fabric.hosts_per_leaf,
                rate=fabric.rate, uplinks=fabric.uplinks, **_upper(fabric),
            )  # fmt: skip
        case SingleSwitch() as fabric:
            return topology.single_switch(
                fabric.hosts, rate=fabric.rate, latency=fabric.latency, switch_latency=fabric.switch_latency
            )
        case FatTree() as fabric:
            return _fat_tree(scenario, fabric, where)
        case HtsimTopology(file=file):
            return read_topology(existing(scenario, (*where, "file"), file))
        case MultiPlane() as fabric:
            return _multi_plane(fabric)
        case RailOptimised() as fabric:
            return topology.rail_optimised(
                fabric.groups, fabric.servers, fabric.rails, fabric.spines,
                rate=fabric.rate, uplinks=fabric.uplinks, nvlink=_nvlink(fabric), **_upper(fabric),
            )  # fmt: skip
        case RailOnly() as fabric:
            nvlink = NvLink(fabric.nvlink_rate, fabric.nvlink_latency)
            return topology.rail_only(
                fabric.servers, fabric.rails, nvlink=nvlink,
                rate=fabric.rate, latency=fabric.latency, switch_latency=fabric.switch_latency,
            )  # fmt: skip
        case Torus() as fabric:
            return topology.torus(fabric.dims, rate=fabric.rate, **_upper(fabric))
        case Dragonfly() as fabric:
            return topology.dragonfly(
                fabric.groups, fabric.routers_per_group, fabric.hosts_per_router, fabric.global_links,
                rate=fabric.rate, global_rate=fabric.global_rate, global_latency=fabric.global_latency,
                **_upper(fabric),
            )  # fmt: skip
        case Sites() as fabric:
            return topology.join(
                _sites(scenario, fabric, where), [_route(haul) for haul in fabric.routes], _border(fabric)
            )
        case GraphMl(file=file, rate=rate, latency=latency, switch_latency=switching):
            path = existing(scenario, (*where, "file"), file)
            return read_graph(path, rate=rate, latency=latency, switch_latency=switching)
    raise AssertionError(section)


def switching(scenario: Document, fabric: Fabric) -> Float:
    """[N] seconds that each switch adds, as far as the scenario says; a file of its own is not asked again."""
    section = scenario.fabric
    if not isinstance(section, Sites):
        return _switching(section, fabric.tier)
    assert fabric.site is not None
    value = np.full(len(fabric.names), section.border.switch_latency)
    for number, site in enumerate(section.fabrics):
        mine = (fabric.site == number) & (fabric.tier != BORDER)
        value[mine] = _switching(site, fabric.tier[mine])
    return value


def _switching(section: FabricSection, tier: Int) -> Float:
    """[N] seconds that the switches of these tiers add in one fabric."""
    value = np.full(len(tier), getattr(section, "switch_latency", 0.0))
    if isinstance(section, FatTree):
        tiers = (section.tiers.leaf, section.tiers.agg, section.tiers.core)
        for number, own in enumerate(tiers, start=1):
            if own.switch_latency is not None:
                value[tier == number] = own.switch_latency
    return value


def _sites(scenario: Document, fabric: Sites, where: KeyPath) -> list[Site]:
    """The fabric of each site."""
    sites = []
    for number, section in enumerate(fabric.fabrics):
        one = _built(scenario, section, (*where, "fabrics", number))
        planes = plane_numbers(section)["planes"] or 1 if isinstance(section, MultiPlane) else 1
        top = np.array([one.tier[one.tier != INSIDE].max()])
        sites.append(Site(one, planes, float(_switching(section, top)[0])))
    return sites


def _route(haul: Haul) -> Route:
    latency = DISTANCES[haul.preset] if haul.latency is None and haul.preset else haul.latency or 0.0
    return Route(haul.ends, latency, haul.rate, haul.links)


def _border(fabric: Sites) -> Border:
    given = vars(fabric.border)
    return Border(**{**given, "buffer": np.nan if fabric.border.buffer is None else fabric.border.buffer})


def _upper(fabric: LeafSpine | UpperLinks) -> dict[str, Any]:
    """What the links are like, apart from the rate of a host's."""
    names = ("latency", "fabric_rate", "fabric_latency", "switch_latency")
    return {name: getattr(fabric, name) for name in names}


def _multi_plane(fabric: MultiPlane) -> Fabric:
    numbers = {name: number or 0 for name, number in plane_numbers(fabric).items()}
    preset = PRESETS.get(fabric.preset or "")
    rate = fabric.rate or (preset.rate if preset else 0.0)
    return topology.multi_plane(leaves=fabric.leaves, rate=rate, uplinks=fabric.uplinks, **numbers, **_upper(fabric))


def _nvlink(fabric: RailOptimised) -> NvLink | None:
    return None if fabric.nvlink_rate is None else NvLink(fabric.nvlink_rate, fabric.nvlink_latency)


def _fat_tree(scenario: Document, tree: FatTree, where: KeyPath) -> Fabric:
    """Three tiers from k and an oversubscription, or from the numbers of each tier."""
    sections = (tree.tiers.leaf, tree.tiers.agg, tree.tiers.core)
    leaf, agg, core = (
        Tier(
            tree.rate if tier.rate is None else tier.rate,
            tree.latency if tier.latency is None else tier.latency,
            tree.switch_latency if tier.switch_latency is None else tier.switch_latency,
            tier.bundle,
        )
        for tier in sections
    )
    half, ratios, at = (tree.k or 0) // 2, tree.oversubscription, (*where, "oversubscription")
    return topology.fat_tree3(
        pods=tree.pods or 2 * half,
        leaves_per_pod=tree.leaves_per_pod or half,
        hosts_per_leaf=tree.hosts_per_leaf or half,
        leaf_uplinks=tree.leaf_uplinks or _up(scenario, half, ratios.leaf, (*at, "leaf")),
        agg_uplinks=tree.agg_uplinks or _up(scenario, half, ratios.agg, (*at, "agg")),
        tiers=(leaf, agg, core),
    )


def _up(scenario: Document, down: int, ratio: float, where: KeyPath) -> int:
    """Ports up of a switch with `down` ports down; the ratio stands at `where`."""
    up = down / ratio
    if up != round(up) or up < 1:
        text = f"{down} ports down at {ratio:g} to 1 are {up:g} up; give a ratio that divides {down}"
        raise PlacedError(scenario.source.sentence(where, text))
    return round(up)
