"""The network-wide round trip and what follows from it, against the figures that uet-htsim prints at start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fabsim
from fabsim.routing import numbers
from fabsim.topology import Change, Fabric, degrade, fat_tree, leaf_spine, single_switch
from fabsim.topology.baseline import baseline, default_queues
from fabsim.topology.longest import longest_route
from fabsim.topology.sites import Border, Route, Site, join

US, GBPS = 1e-6, 1e9 / 8


@pytest.mark.parametrize(
    ("fabric", "mtu", "rtt_us", "buffer", "low", "high"),
    [
        (leaf_spine(8, 16, 16, rate=400 * GBPS, latency=US), 4150, 8.33712, 419_150, 87_150, 336_150),
        (leaf_spine(8, 16, 16, rate=400 * GBPS, latency=US), 4160, 8.33792, 420_160, 87_360, 336_960),
        (leaf_spine(8, 16, 16, rate=400 * GBPS, latency=US), 1564, 8.13024, 406_640, 81_328, 325_312),
        (leaf_spine(8, 4, 16, rate=400 * GBPS, latency=US), 4150, 8.33712, 419_150, 87_150, 336_150),
        (leaf_spine(8, 16, 16, rate=400 * GBPS, latency=0.3 * US, switch_latency=0.5 * US), 4150, 5.73712, 290_500,
         58_100, 232_400),
        (fat_tree(8, rate=400 * GBPS, latency=US), 4150, 12.50568, 626_650, 128_650, 502_150),
        (fat_tree(8, rate=800 * GBPS, latency=US), 4150, 12.25284, 1_228_400, 249_000, 983_550),
    ],
)  # fmt: skip
def test_figures_of_the_packet_simulator(
    fabric: Fabric, mtu: float, rtt_us: float, buffer: float, low: float, high: float
) -> None:
    base = baseline(fabric, mtu, 64)
    queues = default_queues(fabric, base.bdp, mtu)
    assert base.rtt * 1e6 == pytest.approx(rtt_us, rel=1e-6)
    assert (queues.buffer[0], queues.ecn_low[0], queues.ecn_high[0]) == (buffer, low, high)


def test_degraded_links_have_smaller_queues() -> None:
    fabric = degrade(leaf_spine(2, 2, 2, rate=1e9, latency=US), [Change("spine0", speed=0.25)])
    queues = default_queues(fabric, 1e5, 1000)
    slow = fabric.speed == 0.25
    assert slow.sum() == 4
    assert set(queues.buffer[slow]) == {25_000}
    assert set(queues.buffer[~slow]) == {100_000}
    assert set(queues.ecn_low[slow]) == {5_000}


def test_a_link_with_its_own_buffer_keeps_it_and_thresholds_follow() -> None:
    fabric = degrade(leaf_spine(2, 2, 2, rate=1e9, latency=US), [Change("leaf0->spine1", buffer=50_000)])
    queues = default_queues(fabric, 1e5, 1000)
    own = ~np.isnan(fabric.buffer)
    assert queues.buffer[own] == 50_000
    assert queues.ecn_high[own] == 40_000


def test_thresholds_follow_a_given_buffer() -> None:
    fabric = leaf_spine(2, 2, 2, rate=1e9, latency=US)
    queues = default_queues(fabric, 1e5, 1000, buffer=30_500)
    assert (queues.buffer[0], queues.ecn_low[0], queues.ecn_high[0]) == (30_500, pytest.approx(6_100), 24_400)


def test_longest_route() -> None:
    assert longest_route(single_switch(4, rate=1e9, latency=US)) == (2, pytest.approx(2e-6))
    assert longest_route(leaf_spine(1, 1, 2, rate=1e9, latency=US))[0] == 2
    far = degrade(leaf_spine(3, 1, 2, rate=1e9, latency=US), [Change("leaf2<->spine0", latency=1e-3)])
    assert longest_route(far) == (4, pytest.approx(1e-3 + 3e-6))
    cut = degrade(leaf_spine(2, 1, 2, rate=1e9, latency=US), [Change("spine0", speed=0)])
    assert longest_route(cut)[0] == 2


def dragonfly_of(minimal: float, **more: Any) -> fabsim.Scenario:
    """One flow between two of five groups, over what routing gives it."""
    fabric = {"kind": "dragonfly", "groups": 5, "routers_per_group": 4, "hosts_per_router": 2, "global_links": 1,
              "rate": "400 Gbps", "latency": "500 ns"}  # fmt: skip
    traffic = [{"kind": "flows", "list": [{"src": 0, "dst": 9, "size": "8 MB"}]}]
    return fabsim.load(
        {"fabric": fabric, "traffic": traffic, "routing": {"kind": "valiant", "minimal": minimal}, **more}
    )


def test_the_base_follows_routes_that_are_longer_than_the_shortest() -> None:
    """Through three groups: a link in each, two between them, two of the hosts. The longest shortest route has 5."""
    shortest, valiant = (dragonfly_of(minimal).network() for minimal in (1.0, 0.0))
    longest = int((valiant.routes.path >= 0).sum(axis=2).max())
    assert shortest.baseline == baseline(shortest.fabric, 4150, 64)
    assert (shortest.baseline.links, valiant.baseline.links) == (5, longest) == (5, 7)
    assert valiant.baseline.rtt == pytest.approx(2 * 7 * 0.5 * US + 7 * 4214 / (400 * GBPS))
    assert valiant.queues.buffer[0] == np.ceil(400 * GBPS * valiant.baseline.rtt / 4150) * 4150


@pytest.mark.parametrize("transport", [{"kind": "swift"}, {"kind": "powertcp"}, {"kind": "window", "window": "1 BDP"}])
def test_a_lone_flow_on_valiant_paths_fills_its_port(transport: dict[str, str]) -> None:
    assert fabsim.run(dragonfly_of(0.0, transport=transport), progress=False).slowdown[0] == pytest.approx(
        1.0, abs=0.01
    )


def test_the_base_follows_a_path_that_is_listed() -> None:
    """From a leaf to itself by a far spine: as many links as the longest shortest route, and more latency; and of
    several sites, the site has its own. Shorter paths change nothing."""
    fabric = degrade(leaf_spine(2, 2, 2, rate=1e9, latency=US), [Change("leaf0<->spine0", latency=1e-3)])
    around, straight = [["h0->leaf0", "leaf0->spine0", "spine0->leaf0", "leaf0->h1"]], [["h0->leaf0", "leaf0->h1"]]
    assert baseline(fabric, 4160, 64, numbers(fabric, straight)) == baseline(fabric, 4160, 64)
    assert baseline(fabric, 4160, 64).latency == pytest.approx(1e-3 + 3e-6)
    assert baseline(fabric, 4160, 64, numbers(fabric, around)).latency == pytest.approx(2e-3 + 2e-6)
    both = join([Site(fabric), Site(fabric)], [Route((0, 1), 1.0, 1e9)], Border())
    inside = [[f"site0.{end}" if end[0] != "h" else end for end in link.split("->")] for link in around[0]]
    found = baseline(both, 4160, 64, numbers(both, [["->".join(link) for link in inside]]))
    assert [own.latency for own in found.own] == pytest.approx([2e-3 + 2e-6, 1e-3 + 3e-6])
    assert found.rtt == baseline(both, 4160, 64).rtt
