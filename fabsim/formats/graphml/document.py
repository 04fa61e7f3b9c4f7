"""A GraphML document: parsed safely, checked for what would get lost on the way, then read by networkx.

networkx says neither where a fault is nor that it merges edges of one id; so the document is checked first, and edges
are numbered anew. Errors are sentences `file: node x: ...`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, ParseError, tostring

from fabsim.errors import InputError
from fabsim.formats.text import read_text

if TYPE_CHECKING:
    import networkx as nx

SPACE = "{http://graphml.graphdrawing.org/xmlns}"
_NUMBERS = {"int": int, "integer": int, "long": int, "float": float, "double": float}


def read_document(path: str | Path) -> nx.MultiGraph[str]:
    """The graph of a file: a MultiGraph or MultiDiGraph, edge keys counting in the order of the file.

    Its own attributes: `node_default` and `edge_default`, values for what gives none, and `ends`, the two nodes of each
    edge as the file has them (networkx turns undirected edges about).
    Raises InputError for a file that is missing, is no XML or no GraphML, declares a DTD or entities, or has a part
    that no fabric has (hyperedges, ports, nested graphs), an unknown node, a double id, or a value of a wrong type.
    """
    import networkx as nx

    root = _parse(path)
    graphs = root.findall(f"{SPACE}graph")
    if root.tag != f"{SPACE}graphml" or len(graphs) != 1:
        raise InputError(f"{path}: {len(graphs)} graphs found, a GraphML file with one is needed")
    wrong = [f"{path}: {text}" for text in _faults(root, graphs[0])]
    if wrong:
        raise InputError(wrong)
    for number, edge in enumerate(graphs[0].findall(f"{SPACE}edge")):
        edge.set("id", str(number))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            graph: Any = nx.parse_graphml(tostring(root, encoding="unicode"), edge_key_type=int, force_multigraph=True)
        except (nx.NetworkXError, ValueError, KeyError) as error:
            raise InputError(f"{path}: cannot be read: {error}") from None
    edges = graphs[0].findall(f"{SPACE}edge")
    graph.graph["ends"] = [(edge.get("source"), edge.get("target")) for edge in edges]
    return graph


def _parse(path: str | Path) -> Element:
    """The XML tree, without entities or a DTD: these could make a small file large, or read other files."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        return fromstring(read_text(path), forbid_dtd=True)
    except ParseError as error:
        raise InputError(f"{path}:{error.position[0]}:{error.position[1] + 1}: not XML: {error}") from None
    except DefusedXmlException as error:
        raise InputError(f"{path}: a DTD or an entity is declared, give a file without ({error})") from None


def _faults(root: Element, graph: Element) -> Iterator[str]:
    """What is wrong with the document, apart from what its attributes mean."""
    types = {key.get("id"): key.get("attr.type", "string") for key in root.findall(f"{SPACE}key")}
    directed = graph.get("edgedefault") == "directed"
    if graph.find(f"{SPACE}hyperedge") is not None:
        yield "hyperedge: a cable has two ends; give a switch and an edge to each node"
    nodes: set[str] = set()
    for node in graph.findall(f"{SPACE}node"):
        name = node.get("id") or ""
        where = f"node {name}"
        if not name:
            yield "node: one has no id"
        elif name in nodes:
            yield f"{where}: there are two nodes of this id"
        if node.find(f"{SPACE}graph") is not None:
            yield f"{where}: holds a graph of its own; give one flat graph"
        nodes.add(name)
        yield from _data_faults(where, node, types)
    for edge in graph.findall(f"{SPACE}edge"):
        ends = [edge.get("source") or "", edge.get("target") or ""]
        where = f"edge {'-'.join(ends)}"
        for end in dict.fromkeys(ends):
            if end not in nodes:
                yield f"{where}: there is no node {end!r}"
        if edge.get("directed", "true" if directed else "false") != ("true" if directed else "false"):
            yield f"{where}: directed and undirected edges in one graph; give two directed edges for a cable"
        yield from _data_faults(where, edge, types)


def _data_faults(where: str, element: Element, types: dict[str | None, str]) -> Iterator[str]:
    """Data under a key that is not declared, or that is not of its declared type."""
    for data in element.findall(f"{SPACE}data"):
        key, text = data.get("key"), (data.text or "").strip()
        if key not in types:
            yield f"{where}: data under the key {key!r}, which is not declared"
        elif types[key] in _NUMBERS and not len(data):
            try:
                _NUMBERS[types[key]](text)
            except ValueError:
                yield f"{where}: {text!r} is not of the type {types[key]} that the file declares for {key!r}"
