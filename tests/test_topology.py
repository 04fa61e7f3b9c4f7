"""Fabrics: counts, wiring, latencies, names, degraded links, and refusals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabsim.errors import InputError
from fabsim.topology import (
    Change,
    Fabric,
    Tier,
    degrade,
    fat_tree,
    fat_tree3,
    find_links,
    leaf_spine,
    link_names,
    single_switch,
)

RATE, LATENCY = 50e9, 1e-6


def cables_pair_up(fabric: Fabric) -> bool:
    """Every directed link has its twin in the other direction."""
    one = Counter(zip(fabric.src.tolist(), fabric.dst.tolist(), strict=True))
    return one == Counter(zip(fabric.dst.tolist(), fabric.src.tolist(), strict=True))


def test_leaf_spine_counts() -> None:
    fabric = leaf_spine(4, 3, 5, rate=RATE, latency=LATENCY, uplinks=2)
    assert fabric.hosts == 20
    assert len(fabric.names) == 20 + 4 + 3
    assert fabric.links == 2 * (20 + 4 * 3 * 2)
    assert cables_pair_up(fabric)
    assert np.isnan(fabric.buffer).all()


def test_single_switch() -> None:
    fabric = single_switch(4, rate=RATE, latency=LATENCY, buffer=1e5)
    assert fabric.names == ("h0", "h1", "h2", "h3", "leaf0")
    down = find_links(fabric, "leaf0->h*")
    assert (fabric.buffer[down] == 1e5).all()


def test_latency_is_wire_and_switch_at_the_tail() -> None:
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=300e-9, switch_latency=500e-9, fabric_latency=2e-6)
    of = dict(zip(link_names(fabric), fabric.latency, strict=True))
    assert of["h0->leaf0"] == pytest.approx(300e-9)
    assert of["leaf0->spine1"] == pytest.approx(2.5e-6)
    assert of["spine1->leaf0"] == pytest.approx(2.5e-6)
    assert of["leaf0->h0"] == pytest.approx(800e-9)


def test_fat_tree_wiring() -> None:
    fabric = fat_tree(4, rate=RATE, latency=LATENCY)
    assert fabric.hosts == 16
    assert Counter(fabric.tier.tolist()) == {0: 16, 1: 8, 2: 8, 3: 4}
    assert fabric.links == 2 * (16 + 16 + 16)
    assert cables_pair_up(fabric)
    names = set(link_names(fabric))
    assert {"leaf0->agg1", "agg1->core1", "agg1->core3", "agg7->core3", "core0->agg6"} <= names
    assert "agg1->core2" not in names
    assert fabric.pod[fabric.names.index("agg7")] == 3
    assert fabric.pod[fabric.names.index("core0")] == -1


def test_oversubscription_takes_up_ports_away() -> None:
    fabric = fat_tree(8, rate=RATE, latency=LATENCY, oversubscription=(1, 4))
    assert (fabric.tier == 3).sum() == 4
    assert len(find_links(fabric, "agg0->core*")) == 1


def test_bundles_keep_every_cable() -> None:
    tier = Tier(RATE, LATENCY)
    bundle = Tier(RATE, LATENCY, parallel=2)
    fabric = fat_tree3(
        pods=2, leaves_per_pod=2, hosts_per_leaf=2, leaf_uplinks=4, agg_uplinks=4, tiers=(tier, bundle, bundle)
    )
    assert (fabric.tier == 2).sum() == 4
    assert (fabric.tier == 3).sum() == 4
    assert link_names(fabric).count("leaf0->agg0#1") == 1
    assert len(set(link_names(fabric))) == fabric.links
    one_dead = degrade(fabric, [Change("leaf0->agg0#1", speed=0)])
    assert [one_dead.link_name(i) for i in np.flatnonzero(one_dead.capacity == 0)] == ["leaf0->agg0#1"]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 4), st.integers(1, 3))
def test_link_names_agree_and_lanes_are_contiguous(leaves: int, spines: int, hosts: int, uplinks: int) -> None:
    fabric = leaf_spine(leaves, spines, hosts, rate=RATE, latency=LATENCY, uplinks=uplinks)
    names = link_names(fabric)
    assert names == [fabric.link_name(link) for link in range(fabric.links)]
    for pattern in ("leaf0->spine*", "spine*->leaf0"):
        lanes = find_links(fabric, pattern)
        assert len(lanes) == spines * uplinks
        assert (np.diff(lanes) == 1).all()


def test_patterns() -> None:
    fabric = leaf_spine(4, 4, 4, rate=RATE, latency=LATENCY)
    assert len(find_links(fabric, "spine0")) == 8
    assert len(find_links(fabric, "leaf*->spine0")) == 4
    assert len(find_links(fabric, "leaf[01]<->spine?")) == 16
    with pytest.raises(InputError, match=r'named "spline0": did you mean "spine0"'):
        find_links(fabric, "spline0")
    with pytest.raises(InputError, match="leaf3->spine"):
        find_links(fabric, "leaf3->spine9")


def test_degrade_scales_and_kills() -> None:
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=LATENCY, buffer=1e6)
    slow = degrade(
        fabric,
        [
            Change("spine0", speed=0.25),
            Change("leaf0->spine1", speed=0),
            Change("h0->leaf0", rate=2 * RATE, latency=1e-3),
            Change("leaf1->h3", buffer=5e5),
        ],
    )
    of = dict(zip(link_names(slow), zip(slow.capacity, slow.latency, slow.buffer, strict=True), strict=True))
    assert of["spine0->leaf1"] == (RATE / 4, LATENCY, 1e6)
    assert of["leaf0->spine1"][0] == 0
    assert of["spine1->leaf0"][0] == RATE
    assert of["h0->leaf0"][:2] == (2 * RATE, 1e-3)
    assert of["leaf1->h3"][2] == 5e5
    assert (fabric.speed == 1).all()
    again = degrade(slow, [Change("spine0", speed=0.5)])
    assert again.capacity[find_links(again, "spine0")] == pytest.approx(RATE / 2)
    with pytest.raises(InputError, match="give a rate too"):
        degrade(slow, [Change("leaf0->spine1", speed=1)])


def test_all_faults_of_a_list_at_once() -> None:
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=LATENCY)
    with pytest.raises(InputError) as caught:
        degrade(
            fabric, [Change("nothing", speed=1), Change("spine0", speed=1.5), Change("spine1", latency=float("nan"))]
        )
    assert len(caught.value.sentences) == 3


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: leaf_spine(0, 2, 2, rate=RATE, latency=LATENCY), "leaves.*: 0 given, at least 1"),
        (lambda: leaf_spine(2, 2, 2, rate=-1, latency=LATENCY), "rate: -1 .* above 0"),
        (lambda: leaf_spine(2, 2, 2, rate=RATE, latency=float("nan")), "latency: nan"),
        (lambda: single_switch(1, rate=RATE, latency=LATENCY), "at least two hosts"),
        (lambda: fat_tree(5, rate=RATE, latency=LATENCY), "even number of ports, k = 5"),
        (lambda: fat_tree(4, rate=RATE, latency=LATENCY, oversubscription=(1, 3)), "no whole number of ports"),
    ],
)
def test_refusals(build: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        build()  # pyright: ignore[reportCallIssue]
