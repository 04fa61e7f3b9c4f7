"""The network-wide round trip and what follows from it, against the figures that uet-htsim prints at start."""

from __future__ import annotations

import numpy as np
import pytest

from fabsim.topology import Change, Fabric, degrade, fat_tree, leaf_spine, single_switch
from fabsim.topology.baseline import baseline, default_queues, longest_route

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
