"""htsim files: topologies, connection matrices, measured routes; and our own tables. Small files stand in data/."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from fabsim.errors import InputError, InputWarning
from fabsim.formats import htsim, read_flows, read_paths
from fabsim.routing import all_paths, ecmp
from fabsim.topology import Fabric, link_names
from fabsim.workload import Flows, assemble

DATA = Path(__file__).parent / "data"


@pytest.fixture
def pods() -> Fabric:
    """Two pods of four leaves, two aggregation switches and two cores each."""
    return htsim.read_topology(DATA / "pods.topo")


@pytest.fixture
def three() -> Flows:
    """Across pods, on one leaf, in one pod."""
    return assemble([0, 0, 2], [15, 1, 5], 1e6)


def write(folder: Path, text: str, name: str = "x.topo") -> Path:
    """A file with this text."""
    path = folder / name
    path.write_text(text)
    return path


def test_two_tiers_with_bundle() -> None:
    fabric = htsim.read_topology(DATA / "small.topo")
    assert fabric.hosts == 8
    assert (fabric.tier == 2).sum() == 2
    of = dict(zip(link_names(fabric), zip(fabric.capacity, fabric.latency, strict=True), strict=True))
    assert of["leaf3->spine1#1"] == pytest.approx((25e9, 1.5e-6))
    assert of["h0->leaf0"] == pytest.approx((50e9, 0.3e-6))
    assert of["leaf0->h1"] == pytest.approx((50e9, 0.8e-6))


def test_three_tiers(pods: Fabric) -> None:
    assert np.bincount(pods.tier).tolist() == [16, 8, 4, 4]
    names = set(link_names(pods))
    assert {"agg0->core0", "agg0->core2", "agg3->core1", "agg3->core3"} <= names
    assert "agg0->core1" not in names
    path = ecmp(pods, assemble([0], [15], 1.0), seed=0).path[0, 0]
    wires = 4 * 1e-6 + 2 * 2e-6
    assert pods.latency[path].sum() == pytest.approx(wires + 2 * 100e-9 + 2 * 200e-9 + 300e-9)


def test_failed_links(pods: Fabric) -> None:
    small = htsim.degrade_failed(htsim.read_topology(DATA / "small.topo"), 1)
    names = link_names(small)
    assert {names[i].split("#")[0] for i in np.flatnonzero(small.speed == 0.25)} == {
        f"leaf{i}->spine0" for i in range(4)
    } | {f"spine0->leaf{i}" for i in range(4)}
    assert small.capacity[names.index("leaf0->spine0#1")] == pytest.approx(6.25e9)
    failed = htsim.degrade_failed(pods, 3)
    slow = [failed.link_name(i) for i in np.flatnonzero(failed.speed < 1)]
    assert slow == ["core0->agg0", "core2->agg0", "core1->agg1"]  # l + 2 a < 3
    assert (htsim.degrade_failed(pods, 0).speed == 1).all()


def test_unknown_keyword_warns_with_its_line(tmp_path: Path) -> None:
    text = (DATA / "small.topo").read_text().replace("Tier 1\n", "Tier 1\nColour 3\n")
    with pytest.warns(InputWarning, match=r"x\.topo:14: Colour: unknown keyword"):
        htsim.read_topology(write(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("Radix_Down 8", "Radix_Down 7", r":15: Radix_Down: 7 given, but the links to the leaves need 8"),
        ("Radix_Down 8", "Radix_Down 8\nRadix_Up 2", r"Radix_Up: the top tier"),
        ("Radix_Down 2", "Radix_Down 3", r":2: Nodes: 8 hosts cannot be shared out"),
        ("Bundle 2", "Bundle 3", r"Radix_Down"),
        ("Tiers 2", "Tiers 4", r":3: Tiers: 4 given, 2 or 3"),
        ("Tiers 2", "Tiers 3", r"tiers 0 to 2 are needed, given: 0, 1"),
        ("Nodes 8", "Nodes eight", r":2: Nodes: 'eight' is not a whole number"),
        ("Nodes 8", "Nodes 8 9", r":2: Nodes: one whole number must follow"),
        ("Nodes 8", "", r"Nodes is missing"),
        ("Podsize 8", "Podsize 4", r":4: Podsize: 4 given"),
        ("Radix_Up 4", "Radix_Up 4\nRadix_Up 4", r"Radix_Up comes twice, first at .*:9"),
        ("Radix_Up 4", "Radix_Up 4\nOversubscribed 2", r"Oversubscribed: 2 given, but the ports are 2 down to 4 up"),
        ("Tier 1", "Tier 0", r"Tier 0 comes twice"),
        ("Downlink_Latency_ns 300", "", r"Downlink_Latency_Ns is missing"),
    ],
)
def test_topology_refusals(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    text = (DATA / "small.topo").read_text()
    assert old in text
    with pytest.raises(InputError, match=sentence):
        htsim.read_topology(write(tmp_path, text.replace(old, new, 1)))


def test_matrix_triggers() -> None:
    matrix = htsim.read_matrix(DATA / "triggers.cm", start_unit="us", hosts=8)
    flows = matrix.flows
    assert matrix.ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert flows.trigger.tolist() == [-1, -1, 0, 0, 1, 2]
    assert flows.need.tolist() == [0, 0, 1, 2, 2, 1]
    assert flows.fires[:, 0].tolist() == [0, 0, 1, 1, 2, -1]
    assert flows.fires_at_sender.tolist() == [True, True, True, True, False, False]
    assert flows.start[1] == pytest.approx(2e-6)
    assert flows.size[3] == 3e9
    assert htsim.read_matrix(DATA / "triggers.cm", start_unit="ps").flows.start[1] == pytest.approx(2e-12)


def test_matrix_gzipped_and_unused_words(tmp_path: Path) -> None:
    path = tmp_path / "a.cm.gz"
    path.write_bytes(gzip.compress(b"Nodes 4\nConnections 1\n0->3 start 0 size 7 prio 2\n"))
    with pytest.warns(InputWarning, match=r"a\.cm\.gz:3: prio: not used"):
        matrix = htsim.read_matrix(path, start_unit="us")
    assert matrix.flows.size.tolist() == [7]
    assert matrix.ids.tolist() == [1]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("Connections 6", "Connections 5", r":2: Connections: 5 given, but there are 6"),
        ("Triggers 3", "Triggers 3\nFailures 1", r":4: failures in a matrix are not read"),
        ("Nodes 8", "Nodes 16", r":1: Nodes: 16 given, but the fabric has 8 hosts"),
        ("0->4", "0->9", r":5: there is no host 9: hosts are 0 to 7"),
        ("0->4", "4->4", r":5: a flow goes from host 4 to itself"),
        ("0->4 id 1 start 0", "0->4 id 1 start -1", r":5: start: -1 given"),
        ("0->4 id 1 start 0", "0->4 id 1", r":5: either start or trigger is needed"),
        ("id 6 trigger 3 size 500", "id 6 trigger 3", r":10: size: none or 0"),
        ("id 6 trigger 3", "id 6 trigger 4", r":10: trigger 4 is not in the file"),
        ("id 6 trigger", "id 5 trigger", r":10: id: 5 comes twice"),
        ("id 6 trigger", "id 0 trigger", r":10: id: 0 given, must be 1 or more"),
        ("count 2", "count 3", r":9: waits for activation 3 of trigger 2, which 2 flow"),
        ("oneshot", "twoshot", r"must be oneshot, multishot or barrier"),
        ("size 500\ntrigger id 1", "size 500 7.5\ntrigger id 1", None),
    ],
)
def test_matrix_refusals(tmp_path: Path, old: str, new: str, sentence: str | None) -> None:
    text = (DATA / "triggers.cm").read_text()
    assert old in text
    path = write(tmp_path, text.replace(old, new, 1), "x.cm")
    if sentence is None:
        with pytest.warns(InputWarning, match=":10: 7.5: not used"):
            htsim.read_matrix(path, start_unit="us", hosts=8)
        return
    with pytest.raises(InputError, match=sentence):
        htsim.read_matrix(path, start_unit="us", hosts=8)


def test_matrix_needs_a_unit_and_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='start_unit: "ms" given, must be "us" or "ps"'):
        htsim.read_matrix(DATA / "triggers.cm", start_unit="ms")
    with pytest.raises(InputError, match="there is no such file"):
        htsim.read_matrix(tmp_path / "none.cm", start_unit="us")


def test_measured_paths(pods: Fabric, three: Flows) -> None:
    routes = htsim.read_path_routes(DATA / "measured_paths.csv", pods, three)
    names = [[pods.link_name(link) for link in path[0] if link >= 0] for path in routes.path]
    assert names[0] == ["h0->leaf0", "leaf0->agg1", "agg1->core3", "core3->agg3", "agg3->leaf7", "leaf7->h15"]
    assert names[1] == ["h0->leaf0", "leaf0->h1"]
    assert names[2][1:3] == ["leaf1->agg0", "agg0->leaf2"]


def test_measured_split(pods: Fabric, three: Flows) -> None:
    routes = htsim.read_split_routes(DATA / "measured_split.csv", pods, three)
    assert (routes.path == all_paths(pods, three).path).all()
    assert routes.weight == pytest.approx(np.array([[0.1, 0.2, 0.7, 0], [1, 0, 0, 0], [0.25, 0, 0.75, 0]]))


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("paths", "LS0->US1", "LS0->US9", 'path of flow 0: "leaf0->US9" is no link'),
        ("paths", "2,0,1,", "2,0,3,", ":3: dst: 3 given, but flow 2 has 1"),
        ("paths", "\n3,2,5", "\n2,0,1", ":4: flow_id: flow 2 comes twice"),
        ("paths", "\n3,2,5,SRC2->LS1|LS1->US0|US0->LS2|LS2->DST5", "", "flow 3 has no path"),
        ("paths", "flow_id,", "flow,", ":1: no column flow_id"),
        ("split", "1,LS0->US0,30", "1,LS0->US7,30", ":2: link: LS0->US7 is no link"),
        ("split", "1,LS0->US0,30", "9,LS0->US0,30", ":2: flow_id: flow 9 is not there"),
        ("split", "1,LS0->US0,30", "1,LS0->US0,-30", ":2: pkts: -30 given"),
    ],
)
def test_measured_refusals(
    tmp_path: Path, pods: Fabric, three: Flows, name: str, old: str, new: str, sentence: str
) -> None:
    text = (DATA / f"measured_{name}.csv").read_text()
    assert old in text
    path = write(tmp_path, text.replace(old, new, 1), "x.csv")
    read = htsim.read_path_routes if name == "paths" else htsim.read_split_routes
    with pytest.raises(InputError, match=sentence):
        read(path, pods, three)


def test_table_of_flows(tmp_path: Path) -> None:
    flows = read_flows(write(tmp_path, "src,dst,bytes,start_us\n0,3,4000000000,0\n1,2,5,2.5\n", "f.csv"), 4)
    assert flows.size.tolist() == [4e9, 5]
    assert flows.start.tolist() == pytest.approx([0, 2.5e-6])
    with pytest.warns(InputWarning, match="columns not used: colour"):
        read_flows(write(tmp_path, "src,dst,bytes,colour\n0,3,4,red\n", "f.csv"), 4)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("0,9,1", ":2: dst: there is no host 9"),
        ("2,2,1", ":2: a flow goes from host 2 to itself"),
        ("0,1,many", ":2: bytes: 'many' is not a number"),
        ("0,1,nan", ":2: bytes: nan given"),
        ("0,1", ":2: 3 fields are needed"),
        ("", "there are no flows"),
    ],
)
def test_table_refusals(tmp_path: Path, rows: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_flows(write(tmp_path, f"src,dst,bytes\n{rows}\n", "f.csv"), 4)


def test_table_of_paths_takes_ids(tmp_path: Path) -> None:
    flows = assemble([0, 1], [1, 0], 1.0)
    path = write(tmp_path, "flow_id,links\n8,a->b\n7,c->d|d->e\n", "p.csv")
    assert read_paths(path, flows, [7, 8]) == [["c->d", "d->e"], ["a->b"]]
