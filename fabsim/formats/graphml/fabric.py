"""From a graph to a fabric: which nodes are hosts, and what each cable is like.

An undirected edge is a cable, two directed links; an edge of a directed graph is one link. Parallel edges stay
parallel. Nodes: `kind` host or switch (without it, a node with one edge is a host), `switch_latency`, `tier`, `pod`.
Edges: `rate`, `latency` or `length` of fibre, `buffer` of the switch ports at its ends, `speed` (0 dead to 1).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import InputError, InputWarning
from fabsim.formats.graphml.attributes import (
    EDGE,
    NODE,
    AttributeFault,
    number,
    quantity,
    refuse_unknown_units,
    used,
    whole,
    with_defaults,
)
from fabsim.formats.graphml.document import read_document
from fabsim.topology.graph import Fabric
from fabsim.typing import Int
from fabsim.units import shown

if TYPE_CHECKING:
    import networkx as nx

_NODE_WORDS = ("kind", "tier", "pod")
_IN_NAMES = ("->", "#", "*", "?", "[", "|", ",")
"""What would make the name of a link ambiguous."""


def read_graph(
    path: str | Path, *, rate: float | None = None, latency: float | None = None, switch_latency: float = 0.0
) -> Fabric:
    """The fabric of a GraphML file; hosts first, in the order of the file.

    Args:
        rate, latency, switch_latency: bytes per second and seconds, for links and switches that do not give theirs.

    Raises InputError, all faults at once as `file: node x: ...` or `file: edge x-y: ...`. Warns of attributes that it
    does not use.
    """
    graph = read_document(path)
    wrong: list[str] = []
    nodes = {name: with_defaults(data, graph.graph["node_default"], NODE) for name, data in graph.nodes(data=True)}
    hosts = {name for name, data in nodes.items() if _is_host(graph, name, data, wrong)}
    order = sorted(nodes, key=lambda name: name not in hosts)
    index = {name: place for place, name in enumerate(order)}
    switching = np.array([_node_value(name, nodes[name], switch_latency, name in hosts, wrong) for name in order])
    links: list[tuple[float, ...]] = []
    for _, _, place, own in sorted(graph.edges(keys=True, data=True), key=lambda edge: edge[2]):
        data = with_defaults(own, graph.graph["edge_default"], EDGE)
        one, other = graph.graph["ends"][place]
        links += _edge(one, other, data, index, len(hosts), graph.is_directed(), rate, latency, wrong)
    if len(hosts) < 2:
        wrong.append(f"{len(hosts)} hosts; at least 2 are needed: give kind=host, or nodes with one edge")
    if wrong:
        raise InputError([f"{path}: {text}" for text in wrong])
    _warn_of_the_rest(path, graph)
    return _fabric(order, len(hosts), nodes, np.array(links), switching)


def _fabric(order: list[str], hosts: int, nodes: Mapping[str, Any], links: Any, switching: Any) -> Fabric:
    src, dst = links[:, 0].astype(np.int64), links[:, 1].astype(np.int64)
    rate, wire, buffer, speed = links[:, 2:].T
    tier = _tiers(src, dst, hosts, len(order))
    tier = np.array([whole(nodes[name], "tier", int(tier[place])) for place, name in enumerate(order)])
    pod = np.array([whole(nodes[name], "pod", 0) for name in order])
    buffer = np.where(src < hosts, nan, buffer)
    return Fabric(tuple(order), hosts, tier, pod, src, dst, rate * speed, wire + switching[src], buffer, speed)


def _is_host(graph: Any, name: str, data: Mapping[str, Any], wrong: list[str]) -> bool:
    kind = data.get("kind", "")
    edges = len({*(graph.successors(name)), *(graph.predecessors(name))}) if graph.is_directed() else graph.degree(name)
    if kind not in ("host", "switch", ""):
        wrong.append(f"node {name}: kind: {shown(kind)} given, must be host or switch")
    if edges == 0:
        wrong.append(f"node {name}: no edge joins it to another; join it or leave it out")
    for part in _IN_NAMES:
        if part in name:
            wrong.append(f"node {name}: {part!r} in its id, which is for the names of links; give another id")
    return kind == "host" or (kind == "" and edges == 1)


def _node_value(name: str, data: Mapping[str, Any], default: float, host: bool, wrong: list[str]) -> float:
    """Seconds that a node adds to each link that leaves it; collects what is wrong with its attributes."""
    try:
        refuse_unknown_units(data, NODE)
        tier = whole(data, "tier", 0 if host else 1)
        if host == (tier > 0):
            raise AttributeFault(f"tier: {tier} given; a host has 0, a switch 1 or more")
        whole(data, "pod", 0)
        own = quantity(data, "switch_latency")
    except AttributeFault as fault:
        wrong.append(f"node {name}: {fault}")
        return 0.0
    return 0.0 if host else default if isnan(own) else own


def _edge(
    one: str,
    other: str,
    data: Mapping[str, Any],
    index: Mapping[str, int],
    hosts: int,
    directed: bool,
    rate: float | None,
    latency: float | None,
    wrong: list[str],
) -> list[tuple[float, ...]]:
    """The links of an edge: (src, dst, rate, wire, buffer, speed) each."""
    ends = (index[one], index[other])
    try:
        if one == other:
            raise AttributeFault("joins a node to itself")
        if max(ends) < hosts:
            raise AttributeFault("joins two hosts, which do not forward; put a switch between them")
        values = _cable(data, rate, latency)
    except AttributeFault as fault:
        wrong.append(f"edge {one}-{other}: {fault}")
        return []
    return [(*way, *values) for way in ((ends,) if directed else (ends, ends[::-1]))]


def _cable(data: Mapping[str, Any], rate: float | None, latency: float | None) -> tuple[float, ...]:
    """Rate, wire latency, buffer and speed of an edge. Raises AttributeFault."""
    refuse_unknown_units(data, EDGE)
    own = quantity(data, "rate")
    wires = [quantity(data, "latency"), quantity(data, "length")]
    given = [wire for wire in wires if not isnan(wire)]
    if len(given) > 1:
        raise AttributeFault("a latency and a length; give one of them")
    if own == 0:
        raise AttributeFault("rate: 0 given, must be above 0 (speed: 0 makes a link dead)")
    if isnan(own) and rate is None:
        raise AttributeFault("no rate; give one here, or a rate for all links")
    if not given and latency is None:
        raise AttributeFault("no latency; give a latency or a length here, or a latency for all links")
    speed = number(data, "speed") if data.get("speed", "") != "" else 1.0
    if speed > 1:
        raise AttributeFault(f"speed: {speed:g} given, must be from 0 (dead) to 1")
    wire = given[0] if given else latency or 0.0
    return rate or 0.0 if isnan(own) else own, wire, quantity(data, "buffer"), speed


def _tiers(src: Int, dst: Int, hosts: int, nodes: int) -> Int:
    """Links to the nearest host, up to 3."""
    tier = np.where(np.arange(nodes) < hosts, 0, 3)
    for layer in (1, 2):
        near = np.unique(np.concatenate([dst[tier[src] == layer - 1], src[tier[dst] == layer - 1]]))
        tier[near[tier[near] > layer]] = layer
    return tier


def _warn_of_the_rest(path: str | Path, graph: nx.MultiGraph[str]) -> None:
    """Attributes that nothing here reads."""
    nodes = {key for _, data in graph.nodes(data=True) for key in data}
    edges = {key for *_, data in graph.edges(data=True) for key in data}
    rest = {f"node {key}" for key in nodes if key not in _NODE_WORDS and not used(key, NODE)}
    rest |= {f"edge {key}" for key in edges if key not in ("speed", "id") and not used(key, EDGE)}
    if rest:
        warnings.warn(f"{path}: attributes not used: {', '.join(sorted(rest))}", InputWarning, stacklevel=3)
