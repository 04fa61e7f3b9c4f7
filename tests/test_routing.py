"""Routes: valid, complete, deterministic, not polarised unless asked, in fixed lanes, and never over dead links."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabsim.errors import InputError
from fabsim.routing import (
    Routes,
    adaptive,
    all_paths,
    by_link_counts,
    candidates,
    check,
    drawn,
    ecmp,
    explicit,
    proportional,
    split,
)
from fabsim.topology import Change, Fabric, Tier, degrade, fat_tree, fat_tree3, find_links, leaf_spine, single_switch
from fabsim.workload import Flows, all_to_all, assemble, permutation

RATE, LATENCY = 50e9, 1e-6
LEAF_SPINE = leaf_spine(4, 8, 4, rate=RATE, latency=LATENCY)
TREE = fat_tree(8, rate=RATE, latency=LATENCY)
KINDS = (
    lambda fabric, flows: ecmp(fabric, flows, seed=1),
    lambda fabric, flows: ecmp(fabric, flows, seed=1, polarised=True),
    lambda fabric, flows: drawn(fabric, flows, seed=1, entropies=16),
    all_paths,
    proportional,
)


def paths_by_search(fabric: Fabric, src: int, dst: int) -> set[tuple[int, ...]]:
    """All shortest paths over living links, by plain breadth-first search."""
    paths: list[tuple[int, ...]] = [()]
    seen = {src}
    while paths:
        grown = []
        for path in paths:
            node = fabric.dst[path[-1]] if path else src
            for link in np.flatnonzero((fabric.src == node) & (fabric.capacity > 0)).tolist():
                if int(fabric.dst[link]) not in seen:
                    grown.append((*path, link))
        seen |= {int(fabric.dst[path[-1]]) for path in grown}
        found = {path for path in grown if fabric.dst[path[-1]] == dst}
        if found:
            return found
        paths = grown
    return set()


def used(routes: Routes, flow: int) -> list[tuple[int, ...]]:
    """Paths of a flow that carry weight."""
    return [
        tuple(link for link in path if link >= 0)
        for path, weight in zip(routes.path[flow].tolist(), routes.weight[flow], strict=True)
        if weight > 0
    ]


def link_share(fabric: Fabric, routes: Routes) -> np.ndarray:
    """[F, L] share of each flow on each link."""
    share = np.zeros((len(routes.path), fabric.links))
    flow, lane, hop = np.nonzero(routes.path >= 0)
    np.add.at(share, (flow, routes.path[flow, lane, hop]), routes.weight[flow, lane])
    return share


fabrics = st.one_of(
    st.builds(
        lambda leaves, spines, uplinks: leaf_spine(leaves, spines, 2, rate=RATE, latency=LATENCY, uplinks=uplinks),
        st.integers(1, 4), st.integers(1, 4), st.integers(1, 2),
    ),
    st.builds(
        lambda pods, aggs, cores, parallel: fat_tree3(
            pods=pods, leaves_per_pod=2, hosts_per_leaf=2, leaf_uplinks=aggs * parallel, agg_uplinks=cores,
            tiers=(Tier(RATE, LATENCY), Tier(RATE, LATENCY, parallel=parallel), Tier(RATE, LATENCY)),
        ),
        st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2),
    ),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(fabrics, st.integers(0, 1000), st.lists(st.floats(0, 1), max_size=3))
def test_candidates_are_all_shortest_living_paths(fabric: Fabric, seed: int, deaths: list[float]) -> None:
    between = np.flatnonzero((fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts))
    dead = [fabric.link_name(int(between[int(x * (len(between) - 1))])) for x in deaths if len(between)]
    broken = degrade(fabric, [Change(name, speed=0) for name in dead])
    flows = permutation(fabric.hosts, 1e6, seed=seed) if fabric.hosts > 1 else all_to_all(2, 1e6)
    healthy = [min(map(len, paths_by_search(fabric, *ends))) for ends in zip(flows.src, flows.dst, strict=True)]
    expected = [
        {path for path in paths_by_search(broken, src, dst) if len(path) == length}
        for src, dst, length in zip(flows.src, flows.dst, healthy, strict=True)
    ]
    if not all(expected):
        with pytest.raises(InputError, match="no route from host"):
            all_paths(broken, flows)
        return
    routes = all_paths(broken, flows)
    check(broken, flows, routes)
    for flow in range(flows.count):
        paths = used(routes, flow)
        assert len(set(paths)) == len(paths)
        assert set(paths) == expected[flow]
    assert (broken.capacity[routes.path[routes.path >= 0]] > 0).all()
    for kind in KINDS:
        found = kind(broken, flows)
        check(broken, flows, found)
        assert found.weight.sum(axis=1) == pytest.approx(1)
        assert all(set(used(found, flow)) <= expected[flow] for flow in range(flows.count))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fabric", [LEAF_SPINE, TREE, single_switch(16, rate=RATE, latency=LATENCY)])
def test_shape_and_determinism(kind: object, fabric: Fabric) -> None:
    flows = permutation(fabric.hosts, 1e6, seed=5)
    one, two = kind(fabric, flows), kind(fabric, flows)  # pyright: ignore[reportCallIssue]
    assert (one.path == two.path).all()
    assert (one.weight == two.weight).all()
    first = (one.path >= 0).argmax(axis=2)
    assert (first == first[:, :1]).all()
    assert (one.path[:, :, -1] == one.path[:, :1, -1]).all()


def test_lanes_of_a_tree() -> None:
    """Lane (a, c) = a * cores + c: cross-pod flows hold a row of links, in-pod flows a group of lanes an agg."""
    flows = assemble([0, 1, 0, 0], [127, 127, 5, 1], 1.0)
    found = candidates(TREE, flows)
    assert found.count.tolist() == [16, 16, 4, 1]
    assert (found.path[0, :, 1:5] == found.path[1, :, 1:5]).all()
    up, row = found.path[0, :, 1], found.path[0, :, 2]
    assert (np.diff(row) == 1).all()
    assert (up == np.repeat(find_links(TREE, "leaf0->agg*"), 4)).all()
    assert (np.diff(found.path[0, :, 3]) == 1).all()
    assert (found.path[2, :, 3] == up).all()
    assert np.flatnonzero(found.carries[2]).tolist() == [0, 4, 8, 12]
    assert np.flatnonzero(found.carries[3]).tolist() == [0]
    assert (found.path[3, :, :4] == -1).all()


def test_parallel_links_are_paths_of_their_own() -> None:
    fabric = leaf_spine(2, 2, 1, rate=RATE, latency=LATENCY, uplinks=2)
    assert len(used(all_paths(fabric, assemble([0], [1], 1.0)), 0)) == 8


def test_hash_spreads_and_seeds_differ() -> None:
    flows = all_to_all(16, 1e6)
    load = link_share(LEAF_SPINE, ecmp(LEAF_SPINE, flows, seed=1)).sum(axis=0)
    up = load[find_links(LEAF_SPINE, "leaf*->spine*")]
    assert up.mean() == pytest.approx(48 / 8)
    assert 1 < up.std() < 4  # binomial: sqrt(48 / 8 * 7 / 8) = 2.3
    other = ecmp(LEAF_SPINE, flows, seed=2)
    assert (other.path != ecmp(LEAF_SPINE, flows, seed=1).path).any()


def test_salt_per_switch_does_not_polarise() -> None:
    """With one salt for all, a core's choice follows from the choice of the leaf; with its own, it does not."""
    flows = all_to_all(128, 1e6)

    def cores_used(polarised: bool) -> int:
        share = link_share(TREE, ecmp(TREE, flows, seed=3, polarised=polarised)).sum(axis=0)
        return int((share[find_links(TREE, "agg*->core*")] > 0).sum())

    assert cores_used(False) == 128
    assert cores_used(True) == 32


def test_drawn_split_is_binomial_and_tends_to_even() -> None:
    flows = permutation(16, 1e6, seed=4)
    cross = flows.src // 4 != flows.dst // 4
    few, many = (drawn(LEAF_SPINE, flows, seed=1, entropies=e).weight[cross] for e in (32, 8192))
    assert (few * 32 == np.round(few * 32)).all()
    assert few.std() == pytest.approx(np.sqrt(1 / 8 * 7 / 8 / 32), rel=0.3)
    assert abs(many - 1 / 8).max() < 0.02


def test_drawn_lists_its_paths_where_these_are_few() -> None:
    flows = permutation(128, 1e6, seed=4)
    routes = drawn(TREE, flows, seed=1, entropies=3)
    assert routes.path.shape[1] == 3
    check(TREE, flows, routes)
    dense = drawn(TREE, flows, seed=1, entropies=4)
    assert dense.path.shape[1] == 16


def test_first_entropy_value_is_the_ecmp_path() -> None:
    flows = permutation(16, 1e6, seed=4)
    two, path = drawn(LEAF_SPINE, flows, seed=7, entropies=2), ecmp(LEAF_SPINE, flows, seed=7)
    assert all(used(path, flow)[0] in used(two, flow) for flow in range(16))


def test_relabelling_flows_relabels_routes() -> None:
    flows = permutation(128, 1e6, seed=4)
    order = np.random.default_rng(0).permutation(128)
    shuffled = Flows(**{name: column[order] for name, column in vars(flows).items()})
    assert (all_paths(TREE, shuffled).path == all_paths(TREE, flows).path[order]).all()


def test_switches_look_at_their_own_links_only() -> None:
    """Adaptive: of a leaf's two links the slow one gets half of the other's; a core behind the next switch is slow, and
    nobody knows."""
    slow = degrade(TREE, [Change("leaf0->agg0", speed=0.5), Change("core0->agg*", speed=0.1)])
    flows = assemble([0], [127], 1.0)
    routes = adaptive(slow, flows)
    up, at_core = (np.isin(routes.path[0], find_links(slow, name)).any(1) for name in ("leaf0->agg0", "core0->agg*"))
    ways = round(1 / all_paths(TREE, flows).weight[0, 0])
    aggs = ways // up.sum()
    assert routes.weight[0, up].sum() == pytest.approx(0.5 / (aggs - 0.5))
    np.testing.assert_allclose(routes.weight[0, up], routes.weight[0, up & at_core][0])
    assert (adaptive(TREE, flows).weight == all_paths(TREE, flows).weight).all()


def test_proportional_and_given_split() -> None:
    slow = degrade(LEAF_SPINE, [Change("spine2", speed=0.5), Change("spine3", speed=0)])
    flows = assemble([0], [15], 1.0)
    weight = proportional(slow, flows).weight[0]
    assert weight == pytest.approx(np.array([1, 1, 0.5, 0, 1, 1, 1, 1]) / 6.5)
    given_ = split(LEAF_SPINE, flows, np.arange(8.0))
    assert given_.weight[0] == pytest.approx(np.arange(8) / 28)
    with pytest.raises(InputError, match="weights: 3 given, 8 are needed"):
        split(LEAF_SPINE, flows, np.ones(3))
    with pytest.raises(InputError, match="0 on every living path"):
        split(LEAF_SPINE, flows, np.zeros(8))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_link_counts_give_back_the_split(seed: int) -> None:
    """On a tree without bundles a core or spine tells the path, so that the shares of links give back the split."""
    flows = permutation(128, 1e6, seed=seed)
    rng = np.random.default_rng(seed)
    given_ = split(TREE, flows, rng.random((128, 16)) + 1e-3)
    share = link_share(TREE, given_)
    share[:, TREE.src < TREE.hosts] = 0
    flow, link = np.nonzero(share)
    found = by_link_counts(TREE, flows, flow, link, 1000 * share[flow, link])
    assert found.weight == pytest.approx(given_.weight)


def test_explicit_paths() -> None:
    flows = assemble([0, 0], [15, 1], 1.0)
    names = [["h0->leaf0", "leaf0->spine3", "spine3->leaf3", "leaf3->h15"], ["h0->leaf0", "leaf0->h1"]]
    routes = explicit(LEAF_SPINE, flows, names)
    assert routes.path.shape == (2, 1, 4)
    assert [LEAF_SPINE.link_name(link) for link in used(routes, 0)[0]] == names[0]
    assert (routes.path[1, 0, :2] == -1).all()


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (["h0->leaf0", "leaf0->spine9", "spine9->leaf3", "leaf3->h15"], '"leaf0->spine9" is no link'),
        (["h0->leaf0", "leaf0->spine3", "spine4->leaf3", "leaf3->h15"], "has a gap"),
        (["h1->leaf0", "leaf0->spine3", "spine3->leaf3", "leaf3->h15"], "does not begin at its sender"),
        (["h0->leaf0", "leaf0->spine3", "spine3->leaf3", "leaf3->h14"], "does not end at its receiver"),
        (["h0->leaf0", "leaf0->spine0", "spine0->leaf3", "leaf3->h15"], "uses a dead link"),
        ([], "has no links"),
    ],
)
def test_explicit_refusals(path: list[str], sentence: str) -> None:
    broken = degrade(LEAF_SPINE, [Change("spine0", speed=0)])
    with pytest.raises(InputError, match=sentence):
        explicit(broken, assemble([0, 0], [15, 1], 1.0), [path, ["h0->leaf0", "leaf0->h1"]])


def test_a_lane_of_a_bundle_must_be_named() -> None:
    fabric = leaf_spine(2, 1, 1, rate=RATE, latency=LATENCY, uplinks=2)
    names = ["h0->leaf0", "leaf0->spine0", "spine0->leaf1#0", "leaf1->h1"]
    with pytest.raises(InputError, match="any of several parallel links"):
        explicit(fabric, assemble([0], [1], 1.0), [names])


def test_a_missing_route_names_the_pair() -> None:
    dead = degrade(LEAF_SPINE, [Change("leaf0->spine*", speed=0)])
    for kind in KINDS:
        with pytest.raises(InputError, match="no route from host 1 to host 9: every shortest path has a dead link"):
            kind(dead, assemble([0, 1], [2, 9], 1.0))
    nic = degrade(LEAF_SPINE, [Change("h3->leaf0", speed=0)])
    with pytest.raises(InputError, match="no route from host 3 to host 2"):
        all_paths(nic, assemble([3], [2], 1.0))


def test_hosts_are_checked() -> None:
    with pytest.raises(InputError, match="host 99, which is not there"):
        ecmp(LEAF_SPINE, assemble([0], [99], 1.0), seed=0)
    with pytest.raises(InputError, match="from host 3 to itself"):
        ecmp(LEAF_SPINE, assemble([3], [3], 1.0), seed=0)


def test_zero_load_latency() -> None:
    """The latencies on a path add up to its propagation: wires and the switches between them."""
    fabric = leaf_spine(4, 8, 4, rate=RATE, latency=300e-9, switch_latency=500e-9)
    path = ecmp(fabric, assemble([0], [15], 1.0), seed=0).path[0, 0]
    assert fabric.latency[path].sum() == pytest.approx(4 * 300e-9 + 3 * 500e-9)
    assert all(fabric.dst[one] == fabric.src[two] for one, two in pairwise(path))
