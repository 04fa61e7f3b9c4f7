"""Fabrics: nodes and directed links, as plain numpy arrays."""

from fabsim.topology.clos import Tier, fat_tree, fat_tree3, leaf_spine, single_switch, two_tiers
from fabsim.topology.degrade import Change, degrade
from fabsim.topology.graph import Fabric
from fabsim.topology.names import find_links, link_names

__all__ = [
    "Change",
    "Fabric",
    "Tier",
    "degrade",
    "fat_tree",
    "fat_tree3",
    "find_links",
    "leaf_spine",
    "link_names",
    "single_switch",
    "two_tiers",
]
