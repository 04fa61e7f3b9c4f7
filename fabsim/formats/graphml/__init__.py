"""Any graph as a fabric: GraphML, as networkx, yEd and others write it."""

from fabsim.formats.graphml.fabric import read_graph

__all__ = ["read_graph"]
