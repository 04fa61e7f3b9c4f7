"""Clos fabrics: a single switch, leaf-spine, and the fat tree of three tiers.

Order of nodes: hosts, leaves, spines (or aggregation), cores; switches are numbered over the whole fabric.
Order of links, each a block: host up, leaf down to hosts, leaf up, spine down to leaves, spine up, core down.
Within a block the lanes of one leaf (or, to the cores, of one pod) are contiguous and in one order on the way up and
down: lane = (spine * parallel links + parallel link), and for cores (aggregation switch, core, parallel link). So a
sprayed flow meets a contiguous row of links at each hop, and all flows of its leaf meet the same row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, nan

import numpy as np

from fabsim.errors import InputError
from fabsim.topology.graph import Fabric
from fabsim.typing import Float, Int


@dataclass(frozen=True)
class Tier:
    """The switches of one tier and the cables between them and the tier below (hosts, for the leaves).

    Attributes:
        rate: bytes per second of each cable, each way.
        latency: seconds of wire of each cable, each way.
        switch_latency: seconds that a switch of this tier adds to each link that leaves it.
        parallel: cables between one of these switches and one below; each stays a link of its own.
        buffer_up, buffer_down: bytes of an output queue towards the tier above and below; NaN: derived later.
    """

    rate: float
    latency: float
    switch_latency: float = 0.0
    parallel: int = 1
    buffer_up: float = nan
    buffer_down: float = nan


def single_switch(
    hosts: int, *, rate: float, latency: float, switch_latency: float = 0.0, buffer: float = nan
) -> Fabric:
    """Hosts around one switch. Rate in bytes per second, latency in seconds, buffer in bytes.

    Raises InputError for fewer than two hosts or a number out of range.
    """
    return _build("spine", [hosts], [], [Tier(rate, latency, switch_latency, buffer_down=buffer)])


def leaf_spine(
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    *,
    rate: float,
    latency: float,
    switch_latency: float = 0.0,
    buffer: float = nan,
    uplinks: int = 1,
    fabric_rate: float | None = None,
    fabric_latency: float | None = None,
) -> Fabric:
    """Two tiers: every leaf to every spine by `uplinks` parallel cables.

    Rates in bytes per second, latencies in seconds per cable (and per switch), buffer in bytes of every switch port.
    `fabric_rate` and `fabric_latency` are those between leaf and spine, where they differ from the hosts'.
    Raises InputError for a number out of range.
    """
    leaf = Tier(rate, latency, switch_latency, buffer_up=buffer, buffer_down=buffer)
    spine = Tier(
        rate if fabric_rate is None else fabric_rate,
        latency if fabric_latency is None else fabric_latency,
        switch_latency,
        uplinks,
        buffer_down=buffer,
    )
    return two_tiers(leaves, spines, hosts_per_leaf, (leaf, spine))


def two_tiers(leaves: int, spines: int, hosts_per_leaf: int, tiers: tuple[Tier, Tier]) -> Fabric:
    """Leaf-spine from its two tiers (leaf, spine), each with its own rates, latencies and buffers."""
    return _build("spine", [hosts_per_leaf, leaves], [spines], list(tiers))


def fat_tree(
    k: int,
    *,
    rate: float,
    latency: float,
    switch_latency: float = 0.0,
    buffer: float = nan,
    oversubscription: tuple[float, float] = (1.0, 1.0),
) -> Fabric:
    """Three tiers of k-port switches: k pods of k/2 leaves and k/2 aggregation switches, k/2 hosts a leaf.

    `oversubscription` is down:up of the leaves and of the aggregation switches: 4 leaves a quarter of the up ports.
    Rate in bytes per second, latencies in seconds, buffer in bytes of every switch port.
    Raises InputError for odd k, or where the up ports would not be a whole number.
    """
    if k < 2 or k % 2:
        raise InputError(f"a fat tree needs an even number of ports, k = {k}: give 4, 8, 16, ...")
    leaf_uplinks, agg_uplinks = (_uplinks(k // 2, ratio) for ratio in oversubscription)
    tier = Tier(rate, latency, switch_latency, buffer_up=buffer, buffer_down=buffer)
    return fat_tree3(
        pods=k,
        leaves_per_pod=k // 2,
        hosts_per_leaf=k // 2,
        leaf_uplinks=leaf_uplinks,
        agg_uplinks=agg_uplinks,
        tiers=(tier, tier, tier),
    )


def fat_tree3(
    *,
    pods: int,
    leaves_per_pod: int,
    hosts_per_leaf: int,
    leaf_uplinks: int,
    agg_uplinks: int,
    tiers: tuple[Tier, Tier, Tier],
) -> Fabric:
    """Three tiers from their radices. `tiers` are leaf, aggregation and core.

    A leaf has `leaf_uplinks` ports up, so a pod has leaf_uplinks / tiers[1].parallel aggregation switches;
    one of these has `agg_uplinks` ports up, to agg_uplinks / tiers[2].parallel cores of its own.
    Core a + aggs_per_pod * c joins the a-th aggregation switches of all pods.
    Raises InputError for a number out of range, or ports that the parallel cables do not divide.
    """
    for name, ports, parallel in (
        ("leaf_uplinks", leaf_uplinks, tiers[1].parallel),
        ("agg_uplinks", agg_uplinks, tiers[2].parallel),
    ):
        if parallel >= 1 and ports % parallel:
            raise InputError(f"{name} = {ports} cannot be shared out over bundles of {parallel}: give a multiple of it")
    aggs, cores = leaf_uplinks // max(tiers[1].parallel, 1), agg_uplinks // max(tiers[2].parallel, 1)
    return _build("agg", [hosts_per_leaf, leaves_per_pod, pods], [aggs, cores], list(tiers))


def _uplinks(down: int, ratio: float) -> int:
    """Up ports of a switch with `down` ports down, oversubscribed by `ratio`."""
    up = down / ratio if ratio > 0 else 0.0
    if up < 1 or up != round(up):
        raise InputError(f"{down} ports down at oversubscription {ratio:g}:1 is no whole number of ports up: {up:g}")
    return round(up)


def _build(spine_name: str, down: list[int], up: list[int], tiers: list[Tier]) -> Fabric:
    """Lay out nodes and links. `down`: hosts a leaf, leaves a pod, pods; `up`: spines a pod, cores a spine."""
    _check(down, up, tiers)
    per_leaf, leaves, pods = [*down, 1, 1][:3]
    aggs, cores = [*up, 0, 0][:2]
    hosts, all_leaves, all_aggs, all_cores = per_leaf * leaves * pods, leaves * pods, aggs * pods, aggs * cores
    leaf0, agg0, core0 = hosts, hosts + all_leaves, hosts + all_leaves + all_aggs

    host = np.arange(hosts)
    blocks = _cable(host, leaf0 + host // per_leaf, tiers[0], None)
    if aggs:
        leaf, agg, _ = _grid(all_leaves, aggs, tiers[1].parallel)
        blocks += _cable(leaf0 + leaf, agg0 + leaf // leaves * aggs + agg, tiers[1], tiers[0])
    if cores:
        agg, core, _ = _grid(all_aggs, cores, tiers[2].parallel)
        blocks += _cable(agg0 + agg, core0 + agg % aggs + aggs * core, tiers[2], tiers[1])

    names = [f"h{i}" for i in range(hosts)]
    for kind, count in (("leaf", all_leaves), (spine_name, all_aggs), ("core", all_cores)):
        names += [f"{kind}{i}" for i in range(count)]
    tier = np.repeat([0, 1, 2, 3], [hosts, all_leaves, all_aggs, all_cores])
    pod = np.concatenate(
        [
            host // (per_leaf * leaves),
            np.arange(all_leaves) // leaves,
            np.arange(all_aggs) // max(aggs, 1),
            np.full(all_cores, -1),
        ]
    )
    src, dst, capacity, latency, buffer = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return Fabric(tuple(names), hosts, tier, pod, src, dst, capacity, latency, buffer, np.ones(len(src)))


def _grid(*sizes: int) -> tuple[Int, ...]:
    """Flat index arrays that count through a box, the last axis fastest."""
    return tuple(axis.reshape(-1) for axis in np.indices(sizes))


def _cable(low: Int, high: Int, tier: Tier, below: Tier | None) -> list[tuple[Int, Int, Float, Float, Float]]:
    """Both directions of a block of cables: (src, dst, capacity, latency, buffer). `below`: the tier of `low`."""

    def block(src: Int, dst: Int, switching: float, buffer: float) -> tuple[Int, Int, Float, Float, Float]:
        rate, latency = np.full(len(src), float(tier.rate)), np.full(len(src), tier.latency + switching)
        return src, dst, rate, latency, np.full(len(src), float(buffer))

    up = block(low, high, below.switch_latency if below else 0.0, below.buffer_up if below else nan)
    return [up, block(high, low, tier.switch_latency, tier.buffer_down)]


def _check(down: list[int], up: list[int], tiers: list[Tier]) -> None:
    """Every count at least 1, at least two hosts, every physical value in range; all sentences at once."""
    wrong = []
    counts = dict(zip(("hosts per leaf", "leaves (per pod)", "pods"), down, strict=False))
    counts |= dict(zip(("spines (per pod)", "cores per aggregation switch"), up, strict=False))
    counts |= {"parallel links": min(tier.parallel for tier in tiers)}
    wrong += [f"{name}: {n} given, at least 1 is needed" for name, n in counts.items() if n < 1]
    if not wrong and np.prod(down) < 2:
        wrong.append("a fabric needs at least two hosts")
    for tier in tiers:
        if not (isfinite(tier.rate) and tier.rate > 0):
            wrong.append(f"rate: {tier.rate:g} bytes per second given, must be above 0")
        for name, value in (("latency", tier.latency), ("switch latency", tier.switch_latency)):
            if not (isfinite(value) and value >= 0):
                wrong.append(f"{name}: {value:g} s given, must be 0 or more")
        for value in (tier.buffer_up, tier.buffer_down):
            if value < 0:
                wrong.append(f"buffer: {value:g} bytes given, must be 0 or more")
    if wrong:
        raise InputError(dict.fromkeys(wrong))
