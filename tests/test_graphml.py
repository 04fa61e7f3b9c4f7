"""Any graph as a fabric: what is read, what is kept, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import fabsim
from fabsim.errors import InputError, InputWarning
from fabsim.formats.graphml import read_graph
from fabsim.routing import all_paths
from fabsim.topology import Fabric, find_links, leaf_spine, link_names
from fabsim.units import FIBRE_DELAY
from fabsim.workload import permutation

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="kind" for="node" attr.name="kind" attr.type="string"/>
  <key id="tier" for="node" attr.name="tier" attr.type="string"/>
  <key id="sw" for="node" attr.name="switch_latency_ns" attr.type="double"/>
  <key id="rate" for="edge" attr.name="rate" attr.type="string"/>
  <key id="gbps" for="edge" attr.name="rate_gbps" attr.type="double"><default>100</default></key>
  <key id="gbit" for="edge" attr.name="rate_gbit" attr.type="double"/>
  <key id="lat" for="edge" attr.name="latency" attr.type="string"/>
  <key id="km" for="edge" attr.name="length_km" attr.type="double"/>
  <key id="buf" for="edge" attr.name="buffer" attr.type="string"/>
  <key id="speed" for="edge" attr.name="speed" attr.type="double"/>
  <key id="col" for="edge" attr.name="colour" attr.type="string"/>
"""
GOOD = (
    HEAD
    + """  <graph edgedefault="undirected">
    <node id="a"/><node id="b"/>
    <node id="s"><data key="sw">500</data></node><node id="t"/>
    <edge id="1" source="a" target="s"><data key="km">2</data></edge>
    <edge id="1" source="t" target="b"><data key="lat">1 us</data></edge>
    <edge id="01" source="s" target="t"><data key="lat">20 km</data><data key="buf">1 MB</data></edge>
    <edge id="1" source="s" target="t"><data key="lat">3 us</data><data key="speed">0.25</data></edge>
  </graph>
</graphml>
"""
)


def read(folder: Path, text: str, **more: float) -> Fabric:
    file = folder / "g.graphml"
    file.write_text(text, encoding="utf-8")
    return read_graph(file, **more)


def test_hosts_links_units_and_defaults(tmp_path: Path) -> None:
    """Nodes with one edge are hosts; edges of one id stay apart; defaults of the file hold; each edge has its own."""
    fabric = read(tmp_path, GOOD, switch_latency=1e-6)
    assert fabric.names == ("a", "b", "s", "t")
    assert (fabric.hosts, fabric.links) == (2, 8)
    assert fabric.tier.tolist() == [0, 0, 1, 1]
    of = dict(zip(link_names(fabric), zip(fabric.capacity, fabric.latency, fabric.buffer, strict=True), strict=True))
    assert of["a->s"][:2] == (12.5e9, pytest.approx(2e3 * FIBRE_DELAY))
    assert of["s->a"][1] == pytest.approx(2e3 * FIBRE_DELAY + 500e-9)
    assert of["t->b"][1] == pytest.approx(2e-6)
    assert of["s->t#0"] == (12.5e9, pytest.approx(20e3 * FIBRE_DELAY + 500e-9), 1e6)
    assert of["t->s#1"][:2] == (12.5e9 / 4, pytest.approx(4e-6))
    assert np.isnan(of["a->s"][2])
    assert fabric.speed[find_links(fabric, "s->t#1")] == 0.25


def test_round_trip_of_a_leaf_spine(tmp_path: Path) -> None:
    """Written by networkx and read again, a fabric with bundles has the same links and the same paths."""
    fabric = leaf_spine(3, 2, 2, rate=50e9, latency=1e-6, uplinks=2, switch_latency=500e-9)
    graph = nx.MultiGraph()
    for node, name in enumerate(fabric.names):
        graph.add_node(name, kind="host" if node < fabric.hosts else "switch", tier=int(fabric.tier[node]))
    for link in range(fabric.links):
        one, other = (fabric.names[end[link]] for end in (fabric.src, fabric.dst))
        if fabric.tier[fabric.src[link]] < fabric.tier[fabric.dst[link]]:
            graph.add_edge(one, other, rate="400 Gbps", latency_us=1.0)
    file = tmp_path / "g.graphml"
    nx.write_graphml(graph, file)
    found = read_graph(file, switch_latency=500e-9)
    assert found.names == fabric.names
    assert (found.tier == fabric.tier).all()

    def links(given: Fabric) -> Counter[tuple[object, ...]]:
        numbers = (given.src, given.dst, given.capacity, np.round(given.latency, 12))
        return Counter(zip(*(column.tolist() for column in numbers), strict=True))

    assert links(found) == links(fabric)
    flows = permutation(6, 1.0, seed=1)
    assert all_paths(found, flows).path.shape == all_paths(fabric, flows).path.shape


def test_directed_edges_are_single_links(tmp_path: Path) -> None:
    graph = nx.DiGraph([("a", "s"), ("s", "a"), ("b", "s"), ("s", "b"), ("s", "t"), ("t", "s")])
    nx.set_node_attributes(graph, {"t": "switch"}, "kind")
    file = tmp_path / "g.graphml"
    nx.write_graphml(graph, file)
    fabric = read_graph(file, rate=50e9, latency=1e-6)
    assert (fabric.hosts, fabric.links) == (2, 6)
    assert fabric.tier.tolist() == [0, 0, 1, 2]


def test_a_host_may_have_several_ports(tmp_path: Path) -> None:
    text = GOOD.replace('<node id="a"/>', '<node id="a"><data key="kind">host</data></node>').replace(
        '<edge id="1" source="t"', '<edge source="a" target="t"><data key="lat">1 us</data></edge><edge source="t"'
    )
    fabric = read(tmp_path, text)
    assert fabric.hosts == 2
    assert all_paths(fabric, permutation(2, 1.0, seed=1)).path.shape == (2, 1, 2)


def test_unused_attributes_are_told(tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match="not used: edge colour"):
        read(tmp_path, GOOD.replace('<data key="km">2', '<data key="col">red</data><data key="km">2'))


EDGE = '<edge id="1" source="a" target="s"><data key="km">2</data></edge>'
BAD = {
    # name: (text to replace, replacement, the sentence behind the file)
    "not XML": ("</graph>", "", r":\d+:\d+: not XML"),
    "no GraphML": (' xmlns="http://graphml.graphdrawing.org/xmlns"', "", ": 0 graphs found"),
    "entities": ("<graphml", '<!DOCTYPE g [<!ENTITY e "x">]>\n<graphml', ": a DTD or an entity is declared"),
    "two graphs": ("</graphml>", '<graph edgedefault="directed"/></graphml>', ": 2 graphs found"),
    "hyperedge": (EDGE, "<hyperedge/>" + EDGE, ": hyperedge: a cable has two ends"),
    "double node": ('<node id="b"/>', '<node id="b"/><node id="b"/>', ": node b: there are two nodes of this id"),
    "no id": ('<node id="b"/>', '<node id="b"/><node/>', ": node: one has no id"),
    "nested": ('<node id="b"/>', '<node id="b"><graph edgedefault="directed"/></node>', ": node b: holds a graph"),
    "unknown node": ('target="s"><data key="km">', 'target="z"><data key="km">', ": edge a-z: there is no node 'z'"),
    "mixed directions": ('<edge id="1" source="a"', '<edge directed="true" source="a"', ": edge a-s: directed and un"),
    "undeclared": ('key="km">2', 'key="kn">2', ": edge a-s: data under the key 'kn', which is not declared"),
    "wrong type": ('key="km">2', 'key="km">two', ": edge a-s: 'two' is not of the type double"),
    "wrong kind": ('<node id="b"/>', '<node id="b"><data key="kind">router</data></node>', ": node b: kind: 'router'"),
    "two ways": ('key="km">2', 'key="rate">1 Gbps</data><data key="gbps">1</data><data key="km">2',
                 ": edge a-s: rate and rate_gbps say the same; give one"),
    "no unit": ('key="km">2', 'key="rate">400</data><data key="km">2', ": edge a-s: rate: not a rate: '400' has no"),
    "rate without unit": (EDGE, EDGE.replace("km", "lat"), ": edge a-s: latency: not a latency: '2' has no unit"),
    "wrong dimension": ('key="lat">1 us', 'key="lat">1 Gbps', ": edge t-b: latency: not a latency: '1 Gbps' is a rate"),
    "unknown unit in a name": ('key="km">2', 'key="gbit">3</data><data key="km">2',
                               ": edge a-s: rate_gbit: no such attribute; use one of rate, rate_mbps, rate_gbps"),
    "rate of zero": ('key="km">2', 'key="gbps">0</data><data key="km">2', ": edge a-s: rate: 0 given, must be above"),
    "negative": ('key="km">2', 'key="km">-2', ": edge a-s: length_km: -2.0 given, must be a number, 0 or more"),
    "not finite": ('key="km">2', 'key="km">nan', ": edge a-s: length_km: nan given"),
    "latency and length": ('key="km">2', 'key="lat">1 us</data><data key="km">2', ": edge a-s: a latency and a length"),
    "neither": ('<data key="km">2</data>', "", ": edge a-s: no latency; give a latency or a length"),
    "speed above one": ('key="speed">0.25', 'key="speed">2', ": edge s-t: speed: 2 given, must be from 0"),
    "to itself": ('source="a" target="s"', 'source="s" target="s"', ": edge s-s: joins a node to itself"),
    "lonely": ('<node id="b"/>', '<node id="b"/><node id="c"/>', ": node c: no edge joins it"),
    "two hosts": ('<node id="t"/>', '<node id="t"><data key="kind">host</data></node>', ": edge t-b: joins two hosts"),
    "no hosts": ('<node id="b"/>', '<node id="b"><data key="kind">switch</data></node>', ": 1 hosts; at least 2"),
    "name of a link": ('"a"', '"a#1"', ": node a#1: '#' in its id"),
    "tier of a host": ('<node id="b"/>', '<node id="b"><data key="tier">2</data></node>', ": node b: tier: 2 given"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case: str, tmp_path: Path) -> None:
    old, new, sentence = BAD[case]
    assert old in GOOD
    with pytest.raises(InputError, match=rf"g\.graphml{sentence}"):
        read(tmp_path, GOOD.replace(old, new))


def test_all_faults_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, GOOD.replace("20 km", "20").replace('"speed">0.25', '"speed">3'))
    assert len(error.value.sentences) == 2


def test_in_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "g.graphml").write_text(GOOD, encoding="utf-8")
    scenario = {
        "fabric": {
            "kind": "graphml",
            "file": str(tmp_path / "g.graphml"),
            "degraded": [{"link": "s->t#0", "speed": 0}],
        },
        "traffic": [{"kind": "flows", "list": [{"src": 0, "dst": 1, "size": "10 kB"}]}],
    }
    net = fabsim.load(scenario).network()
    assert net.fabric.hosts == 2
    assert net.routes.path.shape == (1, 1, 3)
    scenario["fabric"]["file"] = str(tmp_path / "none.graphml")
    with pytest.raises(InputError, match=r"fabric.file: there is no file"):
        fabsim.load(scenario).network()
