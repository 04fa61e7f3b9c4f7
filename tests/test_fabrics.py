"""Fabrics beside the Clos: multi-plane, rails, torus, dragonfly, and the routes over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fabsim
from fabsim.errors import InputError
from fabsim.routing import Routes, all_paths, candidates, check, drawn, ecmp, proportional, valiant
from fabsim.topology import (
    PRESETS,
    Change,
    Fabric,
    NvLink,
    degrade,
    dragonfly,
    find_links,
    leaf_spine,
    multi_plane,
    rail_only,
    rail_optimised,
    torus,
)
from fabsim.topology.baseline import baseline
from fabsim.workload import all_to_all, assemble, permutation, shift

WIRE = {"rate": 50e9, "latency": 1e-6}
NVLINK = NvLink(450e9, 1e-7)
PLANES = multi_plane(4, 3, 2, 4, **WIRE)
RAILS = rail_optimised(2, 3, 4, 2, nvlink=NVLINK, **WIRE)
RAIL_ONLY = rail_only(3, 4, nvlink=NVLINK, **WIRE)
TORUS = torus((4, 3, 2), **WIRE)
DRAGONFLY = dragonfly(9, 4, 2, 2, **WIRE)
KINDS: tuple[Callable[..., Routes], ...] = (
    lambda fabric, flows: ecmp(fabric, flows, seed=1),
    lambda fabric, flows: drawn(fabric, flows, seed=1, entropies=64),
    lambda fabric, flows: drawn(fabric, flows, seed=1, entropies=3),
    lambda fabric, flows: drawn(fabric, flows, seed=1, entropies=32, packets=np.full(flows.count, 5)),
    all_paths,
    proportional,
)


def paths_by_search(fabric: Fabric, src: int, dst: int) -> set[tuple[int, ...]]:
    """All shortest paths through switches, dead links included, by plain breadth-first search."""
    paths: list[tuple[int, ...]] = [()]
    seen = {src}
    while paths:
        grown = [
            (*path, int(link))
            for path in paths
            for link in np.flatnonzero(fabric.src == (fabric.dst[path[-1]] if path else src))
            if int(fabric.dst[link]) not in seen
        ]
        found = {path for path in grown if fabric.dst[path[-1]] == dst}
        if found:
            return found
        seen |= {int(fabric.dst[path[-1]]) for path in grown}
        paths = [path for path in grown if fabric.dst[path[-1]] >= fabric.hosts]
    return set()


def used(routes: Routes, flow: int) -> list[tuple[int, ...]]:
    """Paths of a flow that carry weight."""
    paths = zip(routes.path[flow].tolist(), routes.weight[flow], strict=True)
    return [tuple(link for link in path if link >= 0) for path, weight in paths if weight > 0]


def plane_of(fabric: Fabric, routes: Routes) -> np.ndarray:
    """[F, K] plane of each lane: that of the first switch."""
    first = (routes.path >= 0).argmax(axis=2)
    link = np.take_along_axis(routes.path, first[:, :, None], axis=2)[:, :, 0]
    return fabric.pod[fabric.dst[link]]


@pytest.mark.parametrize(
    ("fabric", "hosts", "switches", "cables"),
    [
        (PLANES, 12, 4 * 5, 4 * (12 + 3 * 2)),
        (multi_plane(2, 2, 3, 2, uplinks=2, **WIRE), 4, 10, 2 * (4 + 2 * 3 * 2)),
        (RAILS, 24, 8 + 2 + 6, 24 + 24 + 8 * 2),
        (rail_optimised(1, 4, 8, 4, **WIRE), 32, 8 + 4, 32 + 32),
        (RAIL_ONLY, 12, 4 + 3, 24),
        (TORUS, 24, 24, 24 + 24 + 24 + 12),
        (torus((5,), **WIRE), 5, 5, 10),
        (torus((2, 1), **WIRE), 2, 2, 3),
        (DRAGONFLY, 72, 36, 72 + 9 * 6 + 9 * 8 // 2),
        (dragonfly(3, 4, 1, 2, **WIRE), 12, 12, 12 + 3 * 6 + 3 * 4),
        (dragonfly(1, 4, 1, 1, **WIRE), 4, 4, 4 + 6),
    ],
)
def test_counts_and_cables(fabric: Fabric, hosts: int, switches: int, cables: int) -> None:
    assert (fabric.hosts, len(fabric.names), fabric.links) == (hosts, hosts + switches, 2 * cables)
    one = Counter(zip(fabric.src.tolist(), fabric.dst.tolist(), strict=True))
    assert one == Counter(zip(fabric.dst.tolist(), fabric.src.tolist(), strict=True))
    assert len(set(fabric.names)) == len(fabric.names)
    assert len(fabric.tier) == len(fabric.pod) == len(fabric.names)
    assert (fabric.src != fabric.dst).all()


@pytest.mark.parametrize("fabric", [PLANES, RAILS, TORUS, DRAGONFLY], ids=["planes", "rails", "torus", "dragonfly"])
@pytest.mark.parametrize("kind", KINDS)
def test_routes_of_every_pair(fabric: Fabric, kind: Callable[..., Routes]) -> None:
    """Every pair is connected, every path is one, and the paths are those of a plain search."""
    flows = permutation(fabric.hosts, 1e6, seed=2)
    routes = kind(fabric, flows)
    check(fabric, flows, routes)
    assert routes.weight.sum(axis=1) == pytest.approx(1)
    for flow in range(0, flows.count, 5):
        expected = paths_by_search(fabric, int(flows.src[flow]), int(flows.dst[flow]))
        assert set(used(routes, flow)) <= expected
        if kind is all_paths:
            assert set(used(routes, flow)) == expected
    all_paths(fabric, all_to_all(fabric.hosts, 1.0))


def test_planes_share_no_switch_and_a_path_stays_in_its_plane() -> None:
    between = (PLANES.src >= PLANES.hosts) & (PLANES.dst >= PLANES.hosts)
    assert (PLANES.pod[PLANES.src[between]] == PLANES.pod[PLANES.dst[between]]).all()
    routes = all_paths(PLANES, all_to_all(PLANES.hosts, 1.0))
    plane = plane_of(PLANES, routes)
    inner = np.where(routes.path[:, :, :-1] >= 0, PLANES.pod[PLANES.dst[routes.path[:, :, :-1]]], plane[:, :, None])
    assert (inner == plane[:, :, None]).all()
    assert (PLANES.pod[PLANES.src[routes.path[:, :, -1]]] == plane).all()


def test_lanes_are_contiguous_by_plane_and_rows_of_links() -> None:
    routes = all_paths(PLANES, assemble([0, 1, 0], [11, 4, 1], 1.0))
    assert routes.path.shape == (3, 8, 4)
    assert (plane_of(PLANES, routes) == np.repeat(np.arange(4), 2)).all()
    assert (np.diff(routes.path[0, :, 1:3], axis=0) == 1).all()
    assert (routes.path[0, :, 1] == routes.path[1, :, 1]).all()
    assert routes.weight[0] == pytest.approx(1 / 8)
    assert routes.weight[2].tolist() == [0.25, 0] * 4
    assert candidates(PLANES, assemble([0, 0], [11, 1], 1.0)).count.tolist() == [8, 4]


def test_a_spray_goes_around_its_planes() -> None:
    flows = permutation(PLANES.hosts, 1.0, seed=1)
    for entropies, lanes in ((64, 8), (1, 4)):
        routes = drawn(PLANES, flows, seed=3, entropies=entropies)
        assert routes.path.shape[1] == lanes
        shares = [routes.weight[plane_of(PLANES, routes) == plane].sum() / flows.count for plane in range(4)]
        assert sum(shares) == pytest.approx(1)
        if entropies == 64:
            assert shares == pytest.approx([0.25] * 4)
    path = ecmp(PLANES, flows, seed=3)
    assert len(set(plane_of(PLANES, path)[:, 0])) > 1
    few = drawn(PLANES, flows, seed=3, entropies=2)
    assert all(used(path, flow)[0] in used(few, flow) for flow in range(flows.count))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.lists(st.floats(0, 1), max_size=6))
def test_dead_ports_and_links_of_planes(planes: int, leaves: int, spines: int, deaths: list[float]) -> None:
    """Lanes stay in their plane while it lives; what is left carries everything; nothing dead is on any path."""
    healthy = multi_plane(planes, leaves, spines, 2, **WIRE)
    dead = {int(x * (healthy.links - 1)) for x in deaths}
    fabric = degrade(healthy, [Change(healthy.link_name(link), speed=0) for link in dead])
    flows = permutation(fabric.hosts, 1.0, seed=1)
    expected = [
        {path for path in paths_by_search(fabric, src, dst) if not dead & set(path)}
        for src, dst in zip(flows.src.tolist(), flows.dst.tolist(), strict=True)
    ]
    if not all(expected):
        with pytest.raises(InputError, match="no route from host"):
            all_paths(fabric, flows)
        return
    for kind in KINDS:
        routes = kind(fabric, flows)
        check(fabric, flows, routes)
        assert routes.weight.sum(axis=1) == pytest.approx(1)
        assert (fabric.capacity[routes.path[routes.path >= 0]] > 0).all()
        assert all(set(used(routes, flow)) <= expected[flow] for flow in range(flows.count))
    routes = all_paths(fabric, flows)
    assert [set(used(routes, flow)) for flow in range(flows.count)] == expected
    wanted = np.repeat(np.arange(planes), routes.path.shape[1] // planes)
    living = [{int(fabric.pod[fabric.dst[path[0]]]) for path in paths} for paths in expected]
    for flow, plane in enumerate(plane_of(fabric, routes)):
        alive = np.isin(wanted, list(living[flow])) & (routes.path.shape[1] % planes == 0)
        assert len(living[flow]) < planes or (plane[alive] == wanted[alive]).all()


def test_presets_fill_their_switches() -> None:
    """arXiv:2605.04333: 512 leaves of 256 hosts are 131,072 NICs; 4 planes of 256-port switches are 32,768."""
    assert {name: preset.full for name, preset in PRESETS.items()} == {"8x100G": 131_072, "4x200G": 32_768}
    assert {preset.planes * preset.rate * 8 for preset in PRESETS.values()} == {800e9}
    assert {(p.hosts_per_leaf + p.spines) * p.rate * 8 for p in PRESETS.values()} == {51.2e12}


def test_the_round_trip_is_that_of_a_port_and_the_nic_has_them_all() -> None:
    base = baseline(PLANES, 4150, 64)
    assert (base.rate, base.nic, base.nic_bdp) == (50e9, 200e9, 4 * base.bdp)
    rails = baseline(RAILS, 4150, 64)
    assert (rails.rate, rails.nic, rails.links) == (50e9, 50e9, 4)
    clos = baseline(leaf_spine(2, 2, 2, **WIRE), 4150, 64)
    assert clos.nic_bdp == clos.bdp


def test_flows_inside_a_server_know_its_own_figures() -> None:
    """100 ns to the NVLink switch and back; two packets and two headers at its rate."""
    base = baseline(RAILS, 4150, 64)
    scope = base.of_flows(RAILS, np.array([0, 0, 3]), np.array([3, 4, 0]))
    assert scope.nic == pytest.approx([NVLINK.rate, 50e9, NVLINK.rate])
    own = 2 * (2 * NVLINK.latency + NVLINK.switch_latency) + 2 * (4150 + 64) / NVLINK.rate
    assert scope.rtt == pytest.approx([own, base.rtt, own])
    off = degrade(RAILS, [Change("h0->nvlink0", speed=0)])
    assert baseline(off, 4150, 64).of_flows(off, np.array([0, 3]), np.array([3, 0])).nic == pytest.approx(
        [50e9, NVLINK.rate]
    )
    assert base.of_flows(RAILS, np.array([0]), np.array([4])).nic == 50e9


def test_servers_of_each_site_have_their_own_figures() -> None:
    def rails(rate: str) -> dict[str, Any]:
        return {"kind": "rail_optimised", "servers": 2, "rails": 4, "rate": "400 Gbps", "latency": "1 us",
                "spines": 2, "nvlink_rate": rate}  # fmt: skip

    fabric = {"kind": "sites", "fabrics": [rails("200 GB/s"), rails("900 GB/s")],
              "routes": [{"latency": "20 km", "rate": "800 Gbps"}]}  # fmt: skip
    traffic = [{"kind": "flows", "list": [{"src": 0, "dst": 3, "size": "1 MB"}]}]
    net = fabsim.load({"fabric": fabric, "traffic": traffic}).network()
    scope = net.baseline.of_flows(net.fabric, np.array([0, 8, 0]), np.array([3, 11, 8]))
    assert scope.nic == pytest.approx([200e9, 900e9, 50e9])
    assert np.all(np.diff(scope.rtt) * [-1, 1] > 0)


@pytest.mark.parametrize("kind", ["nscc", "dcqcn", "hpcc"])
def test_a_flow_inside_a_server_has_the_rate_of_its_links(kind: str) -> None:
    scenario = fabsim.load({
        "fabric": {"kind": "rail_only", "servers": 2, "rails": 4, "rate": "400 Gbps", "latency": "1 us",
                   "nvlink_rate": "450 GB/s"},
        "traffic": [{"kind": "flows", "list": [{"src": 0, "dst": 3, "size": "16 MB"}]}],
        "transport": {"kind": kind},
    })  # fmt: skip
    took = float(fabsim.run(scenario, progress=False).completion[0])
    assert took == pytest.approx(16e6 * 4150 / 4086 / 450e9 + 0.2e-6, rel=0.06)  # HPCC leaves 5 % free


def test_rails() -> None:
    """Own rail: over its leaf; own server: over NVLink; else over the spines."""
    routes = all_paths(RAILS, assemble([0, 0, 0, 0], [4, 3, 5, 12], 1.0))
    names = [[RAILS.link_name(link) for link in used(routes, flow)[0]] for flow in range(4)]
    assert names[0] == ["h0->g0.rail0", "g0.rail0->h4"]
    assert names[1] == ["h0->nvlink0", "nvlink0->h3"]
    assert names[2] == ["h0->g0.rail0", "g0.rail0->spine0", "spine0->g0.rail1", "g0.rail1->h5"]
    assert [len(used(routes, flow)) for flow in range(4)] == [1, 1, 2, 2]
    assert RAILS.pod[12] == 1
    off = degrade(RAILS, [Change("h0->nvlink0", speed=0)])
    detour = used(all_paths(off, assemble([0], [3], 1.0)), 0)
    assert len(detour) == 2
    assert "spine" in off.link_name(detour[0][1])


def test_rail_only_refuses_what_needs_a_gpu_to_forward() -> None:
    all_paths(RAIL_ONLY, shift(12, 1.0, by=4))
    all_paths(RAIL_ONLY, assemble([0], [3], 1.0))
    with pytest.raises(
        InputError, match="no route from host 0 to host 5: they are not connected by switches, and hosts"
    ):
        all_paths(RAIL_ONLY, assemble([0], [5], 1.0))


@pytest.mark.parametrize("dims", [(6,), (4, 4), (4, 3, 2), (5, 1, 3)])
def test_torus_distances(dims: tuple[int, ...]) -> None:
    fabric = torus(dims, **WIRE)
    flows = all_to_all(fabric.hosts, 1.0)
    links = (ecmp(fabric, flows, seed=1).path >= 0).sum(axis=2)[:, 0]
    one, other = (np.array(np.unravel_index(end, dims)) for end in (flows.src, flows.dst))
    apart = np.abs(one - other)
    size = np.array(dims)[:, None]
    assert (links == np.minimum(apart, size - apart).sum(axis=0) + 2).all()


def test_torus_diversity() -> None:
    """From a corner to (1, 1, 1): any order of the three steps. Half way around a ring: both ways."""
    fabric = torus((5, 5, 5), **WIRE)
    assert len(used(all_paths(fabric, assemble([0], [31], 1.0)), 0)) == 6
    assert len(used(all_paths(torus((4,), **WIRE), assemble([0], [2], 1.0)), 0)) == 2
    assert fabric.names[125 + 31] == "r1.1.1"


def test_dragonfly_wiring() -> None:
    """Every pair of groups has as many cables, every router as many global ports, and no pair is left out."""
    for groups, routers, ports in ((9, 4, 2), (3, 4, 2), (5, 2, 4), (4, 3, 2)):
        fabric = dragonfly(groups, routers, 1, ports, **WIRE)
        far = fabric.pod[fabric.src] != fabric.pod[fabric.dst]
        pairs = Counter(zip(fabric.pod[fabric.src[far]].tolist(), fabric.pod[fabric.dst[far]].tolist(), strict=True))
        assert len(pairs) == groups * (groups - 1)
        assert set(pairs.values()) == {routers * ports // (groups - 1)}
        assert max(Counter(fabric.src[far].tolist()).values()) <= ports


def groups_on(fabric: Fabric, path: tuple[int, ...]) -> list[int]:
    """Groups that a path visits, in order."""
    pods = [int(fabric.pod[fabric.src[link]]) for link in path] + [int(fabric.pod[fabric.dst[path[-1]]])]
    return [pods[0]] + [two for one, two in pairwise(pods) if one != two]


@pytest.mark.parametrize("groups", [None, 3])
def test_minimal_and_valiant_paths(groups: int | None) -> None:
    flows = permutation(DRAGONFLY.hosts, 1e6, seed=3)
    routes = valiant(DRAGONFLY, flows, seed=1, groups=groups, minimal=0.25)
    check(DRAGONFLY, flows, routes)
    visited = Counter()
    for flow in range(flows.count):
        ends = [int(DRAGONFLY.pod[end]) for end in (flows.src[flow], flows.dst[flow])]
        paths = used(routes, flow)
        assert len(set(paths)) == len(paths)
        assert groups_on(DRAGONFLY, paths[0]) == ends[: 1 + (ends[0] != ends[1])]
        assert len(paths[0]) - 2 <= 3
        if ends[0] == ends[1]:
            assert len(paths) == 1
            continue
        assert len(paths) == 1 + (groups or 7)
        assert routes.weight[flow].max() == pytest.approx(0.25)
        for path in paths[1:]:
            one, through, other = groups_on(DRAGONFLY, path)
            assert [one, other] == ends
            assert through not in ends
            assert 4 - 2 <= len(path) - 2 <= 5
            visited[through] += 1
    assert set(visited) == set(range(9))
    again = valiant(DRAGONFLY, flows, seed=1, groups=groups, minimal=0.25)
    assert (again.path == routes.path).all()


def test_all_minimal_or_all_valiant() -> None:
    flows = shift(72, 1.0, by=8)
    minimal = valiant(DRAGONFLY, flows, seed=1, minimal=1)
    assert minimal.path.shape[1:] == (1, 5)
    load = Counter(minimal.path[minimal.path >= 0].tolist())
    assert max(load.values()) == 8  # all hosts of a group share one cable
    spread = valiant(DRAGONFLY, flows, seed=1, minimal=0)
    assert all(len(groups_on(DRAGONFLY, path)) == 3 for flow in range(72) for path in used(spread, flow))


def test_valiant_avoids_dead_links() -> None:
    cable = next(
        DRAGONFLY.link_name(int(link))
        for link in np.flatnonzero(DRAGONFLY.pod[DRAGONFLY.src] == 0)
        if DRAGONFLY.pod[DRAGONFLY.dst[link]] == 1
    )
    fabric = degrade(DRAGONFLY, [Change(cable, speed=0), Change("g0.r0->g0.r1", speed=0)])
    flows = shift(72, 1.0, by=8)
    routes = valiant(fabric, flows, seed=1)
    check(fabric, flows, routes)
    assert (fabric.capacity[routes.path[routes.path >= 0]] > 0).all()
    assert all(len(groups_on(fabric, path)) == 3 for path in used(routes, 0))
    with pytest.raises(InputError, match="no route from host 0 to host 8: every path has a dead link"):
        valiant(degrade(fabric, [Change("h0->g0.r0", speed=0)]), flows, seed=1)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: multi_plane(0, 2, 2, 2, **WIRE), "planes: 0 given"),
        (lambda: multi_plane(2, 2, 2, 2, rate=0.0, latency=0.0), "rate: 0 bytes per second given, must be above 0"),
        (lambda: multi_plane(2, 1, 1, 1, **WIRE), "at least two hosts"),
        (lambda: torus((1, 1), **WIRE), "at least two hosts"),
        (lambda: rail_optimised(1, 2, 2, 0, **WIRE), "spines: 0 given"),
        (lambda: rail_only(2, 2, nvlink=NvLink(-1, 0), **WIRE), "NVLink rate: -1"),
        (lambda: torus((), **WIRE), "dimensions: 0 given"),
        (lambda: torus((3, 0), **WIRE), r"dims\[1\]: 0 given"),
        (lambda: torus((400,), **WIRE), "more than 120 links apart"),
        (lambda: dragonfly(9, 2, 1, 2, **WIRE), "reaches 4 of 8 other groups; give at least 4"),
        (lambda: valiant(TORUS, permutation(24, 1.0, seed=1), seed=1), "needs groups of routers"),
        (lambda: valiant(PLANES, permutation(12, 1.0, seed=1), seed=1), "hosts with one port each"),
        (lambda: valiant(DRAGONFLY, permutation(72, 1.0, seed=1), seed=1, minimal=2), "minimal: 2 given"),
        (lambda: valiant(DRAGONFLY, permutation(72, 1.0, seed=1), seed=1, groups=0), "groups: 0 given"),
    ],
)
def test_refusals(build: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        build()


def test_patterns_name_planes_and_ports() -> None:
    assert len(find_links(PLANES, "p1.*")) == 2 * (12 + 3 * 2)
    assert [PLANES.link_name(int(link)) for link in find_links(PLANES, "h5->p2.*")] == ["h5->p2.leaf1"]
