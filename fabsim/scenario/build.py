"""Each section built by the room that knows how: fabric by topology, flows by workload, routes by routing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fabsim import routing, topology, workload
from fabsim.formats import read_flows
from fabsim.formats.htsim import read_matrix, read_path_routes, read_split_routes, read_topology
from fabsim.routing import Routes
from fabsim.scenario.fabric_keys import FatTree, HtsimTopology, LeafSpine, SingleSwitch
from fabsim.scenario.schema import AllPaths, Drawn, Ecmp, Explicit, GivenSplit
from fabsim.scenario.source import KeyPath, PlacedError
from fabsim.scenario.traffic_keys import AllToAll, HtsimMatrix, Incast, ListedFlows, Permutation, Ring, Shift
from fabsim.topology import Fabric, Tier
from fabsim.workload import Flows, Row

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario


def build_fabric(scenario: Scenario) -> Fabric:
    """The healthy fabric. Raises InputError."""
    match scenario.fabric:
        case LeafSpine() as fabric:
            return topology.leaf_spine(
                fabric.leaves,
                fabric.spines,
                fabric.hosts_per_leaf,
                rate=fabric.rate,
                latency=fabric.latency,
                switch_latency=fabric.switch_latency,
                uplinks=fabric.uplinks,
                fabric_rate=fabric.fabric_rate,
                fabric_latency=fabric.fabric_latency,
            )
        case SingleSwitch() as fabric:
            return topology.single_switch(
                fabric.hosts, rate=fabric.rate, latency=fabric.latency, switch_latency=fabric.switch_latency
            )
        case FatTree() as fabric:
            return _fat_tree(scenario, fabric)
        case HtsimTopology(file=file):
            return read_topology(_existing(scenario, ("fabric", "file"), file))


def build_flows(scenario: Scenario, number: int, hosts: int, seed: int) -> Flows:
    """The flows of one entry of `traffic`. Raises InputError."""
    where = ("traffic", number, "file")
    match scenario.traffic[number]:
        case Permutation() as entry:
            return workload.permutation(hosts, entry.size, seed=seed, start=entry.start)
        case Shift() as entry:
            return workload.shift(hosts, entry.size, by=entry.by, start=entry.start)
        case Incast() as entry:
            return workload.incast(
                hosts, entry.size, senders=entry.senders, receiver=entry.receiver, seed=seed, start=entry.start
            )
        case AllToAll() as entry:
            ranks = range(entry.hosts) if isinstance(entry.hosts, int) else entry.hosts
            return workload.all_to_all(hosts, entry.size, window=entry.window, ranks=ranks, start=entry.start)
        case Ring() as entry:
            return _ring(entry, hosts)
        case ListedFlows(file=file, list=rows):
            if file is not None:
                return read_flows(_existing(scenario, where, file), hosts)
            return workload.listed(hosts, [Row(**vars(row)) for row in rows or ()])
        case HtsimMatrix(file=file, start_unit=unit):
            return read_matrix(_existing(scenario, where, file), start_unit=unit, hosts=hosts).flows


def build_routes(scenario: Scenario, fabric: Fabric, flows: Flows) -> Routes:
    """The routes of all flows. Raises InputError."""
    match scenario.routing:
        case Ecmp(polarised=polarised, seed=seed):
            return routing.ecmp(fabric, flows, seed=scenario.seed if seed is None else seed, polarised=polarised)
        case AllPaths():
            return routing.all_paths(fabric, flows)
        case Drawn(entropies=entropies, seed=seed):
            payload = scenario.packet.mtu - scenario.packet.header
            packets = np.ceil(flows.size / payload).astype(np.int64)
            own = scenario.seed if seed is None else seed
            return routing.drawn(fabric, flows, entropies=entropies, seed=own, packets=packets)
        case Explicit(file=file):
            return read_path_routes(_existing(scenario, ("routing", "file"), file), fabric, flows)
        case GivenSplit(weights="proportional"):
            return routing.proportional(fabric, flows)
        case GivenSplit(weights=file):
            return read_split_routes(_existing(scenario, ("routing", "weights"), file), fabric, flows)


def _fat_tree(scenario: Scenario, tree: FatTree) -> Fabric:
    """Three tiers from k and an oversubscription, or from the numbers of each tier."""
    sections = (tree.tiers.leaf, tree.tiers.agg, tree.tiers.core)
    leaf, agg, core = (
        Tier(
            tree.rate if tier.rate is None else tier.rate,
            tree.latency if tier.latency is None else tier.latency,
            tree.switch_latency if tier.switch_latency is None else tier.switch_latency,
            tier.bundle,
        )
        for tier in sections
    )
    half = (tree.k or 0) // 2
    return topology.fat_tree3(
        pods=tree.pods or 2 * half,
        leaves_per_pod=tree.leaves_per_pod or half,
        hosts_per_leaf=tree.hosts_per_leaf or half,
        leaf_uplinks=tree.leaf_uplinks or _up(scenario, half, tree.oversubscription.leaf, "leaf"),
        agg_uplinks=tree.agg_uplinks or _up(scenario, half, tree.oversubscription.agg, "agg"),
        tiers=(leaf, agg, core),
    )


def _up(scenario: Scenario, down: int, ratio: float, tier: str) -> int:
    """Ports up of a switch with `down` ports down."""
    up = down / ratio
    if up != round(up) or up < 1:
        text = f"{down} ports down at {ratio:g} to 1 are {up:g} up; give a ratio that divides {down}"
        raise PlacedError(scenario.source.sentence(("fabric", "oversubscription", tier), text))
    return round(up)


def _ring(entry: Ring, hosts: int) -> Flows:
    groups = entry.groups or (tuple(range(entry.ranks or hosts)),)
    if entry.grain == "steps":
        return workload.ring_steps(hosts, entry.size, groups=groups, start=entry.start)
    parts = []
    for group in groups:
        grain = -(-entry.size // len(group)) if entry.grain == "chunk" else float(entry.grain)
        parts.append(workload.ring_coupled(hosts, entry.size, grain=grain, groups=(group,), start=entry.start))
    return workload.merge(parts)


def _existing(scenario: Scenario, where: KeyPath, name: str) -> Path:
    """A file that the scenario names under the key `where`."""
    path = scenario.file(name)
    if not path.is_file():
        text = f"there is no file {str(path)!r}; paths start at the folder of the scenario"
        raise PlacedError(scenario.source.sentence(where, text))
    return path
