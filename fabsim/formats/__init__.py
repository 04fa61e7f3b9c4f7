"""Readers of files: tables of flows and paths, and files of other tools."""

from fabsim.formats.tables import read_flows, read_paths

__all__ = ["read_flows", "read_paths"]
