"""Fabrics: nodes and directed links, as plain numpy arrays."""

from fabsim.topology.clos import Tier, fat_tree, fat_tree3, leaf_spine, single_switch, two_tiers
from fabsim.topology.degrade import Change, degrade, draw_cables
from fabsim.topology.direct import dragonfly, torus
from fabsim.topology.graph import Fabric
from fabsim.topology.names import find_links, link_names
from fabsim.topology.planes import PRESETS, Preset, multi_plane
from fabsim.topology.rails import NvLink, rail_only, rail_optimised
from fabsim.topology.sites import DISTANCES, Border, Route, Site, join, long_haul

__all__ = [
    "DISTANCES",
    "PRESETS",
    "Border",
    "Change",
    "Fabric",
    "NvLink",
    "Preset",
    "Route",
    "Site",
    "Tier",
    "degrade",
    "dragonfly",
    "draw_cables",
    "fat_tree",
    "fat_tree3",
    "find_links",
    "join",
    "leaf_spine",
    "link_names",
    "long_haul",
    "multi_plane",
    "rail_only",
    "rail_optimised",
    "single_switch",
    "torus",
    "two_tiers",
]
