"""Files of the packet simulator htsim: topologies, connection matrices, measured routes."""

from fabsim.formats.htsim.matrix import Matrix, read_matrix
from fabsim.formats.htsim.measured import link_name, read_path_routes, read_split_routes
from fabsim.formats.htsim.topology import degrade_failed, read_topology

__all__ = [
    "Matrix",
    "degrade_failed",
    "link_name",
    "read_matrix",
    "read_path_routes",
    "read_split_routes",
    "read_topology",
]
