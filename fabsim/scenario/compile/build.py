"""Flows and routes built by the rooms that know how (the fabric: fabrics.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabsim import routing, workload
from fabsim.formats import read_flows
from fabsim.formats.htsim import read_matrix, read_path_routes, read_split_routes
from fabsim.routing import Routes
from fabsim.scenario.compile.files import existing
from fabsim.scenario.keys.counts import site_hosts
from fabsim.scenario.keys.routing import AllPaths, Drawn, Ecmp, Explicit, GivenSplit, SwitchSpray, Valiant, Wcmp
from fabsim.scenario.keys.traffic import AllToAll, HtsimMatrix, Incast, ListedFlows, Permutation, Ring, Shift
from fabsim.topology import Fabric
from fabsim.workload import Flows, Row

if TYPE_CHECKING:
    from fabsim.scenario.text.document import Document


def build_flows(scenario: Document, number: int, hosts: int, seed: int) -> Flows:
    """The flows of one entry of `traffic`. Raises InputError."""
    where = ("traffic", number, "file")
    match scenario.traffic[number]:
        case Permutation(across=True) as entry:
            return workload.permutation_across(site_hosts(scenario), entry.size, seed=seed, start=entry.start)
        case Permutation() as entry:
            return workload.permutation(hosts, entry.size, seed=seed, start=entry.start)
        case Shift() as entry:
            return workload.shift(hosts, entry.size, by=entry.by, start=entry.start)
        case Incast(senders=int(senders), far=int(far)) as entry:
            return workload.incast_from(
                site_hosts(scenario), entry.size,
                near=senders - far, far=far, receiver=entry.receiver, seed=seed, start=entry.start,
            )  # fmt: skip
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
                return read_flows(existing(scenario, where, file), hosts)
            return workload.listed(hosts, [Row(**vars(row)) for row in rows or ()])
        case HtsimMatrix(file=file, start_unit=unit):
            return read_matrix(existing(scenario, where, file), start_unit=unit, hosts=hosts).flows


def build_routes(scenario: Document, fabric: Fabric, flows: Flows) -> Routes:
    """The routes of all flows. Raises InputError."""
    match scenario.routing:
        case Ecmp(polarised=polarised, queue_pairs=pairs, seed=seed):
            own = scenario.seed if seed is None else seed
            return routing.ecmp(fabric, flows, seed=own, polarised=polarised, queue_pairs=pairs)
        case Wcmp():
            return routing.proportional(fabric, flows)
        case SwitchSpray(adaptive=True):
            return routing.adaptive(fabric, flows)
        case AllPaths() | SwitchSpray():
            return routing.all_paths(fabric, flows)
        case Drawn(entropies=entropies, seed=seed):
            packets = scenario.packet.sizes.count(flows.size)
            own = scenario.seed if seed is None else seed
            return routing.drawn(fabric, flows, entropies=entropies, seed=own, packets=packets)
        case Valiant(groups=groups, minimal=minimal, seed=seed):
            own = scenario.seed if seed is None else seed
            return routing.valiant(fabric, flows, seed=own, groups=groups, minimal=minimal)
        case Explicit(file=file):
            return read_path_routes(existing(scenario, ("routing", "file"), file), fabric, flows)
        case GivenSplit(weights=file):
            return read_split_routes(existing(scenario, ("routing", "weights"), file), fabric, flows)


def _ring(entry: Ring, hosts: int) -> Flows:
    groups = entry.groups or (tuple(range(entry.ranks or hosts)),)
    if entry.grain == "steps":
        return workload.ring_steps(hosts, entry.size, groups=groups, start=entry.start)
    parts = []
    for group in groups:
        grain = -(-entry.size // len(group)) if entry.grain == "chunk" else float(entry.grain)
        parts.append(workload.ring_coupled(hosts, entry.size, grain=grain, groups=(group,), start=entry.start))
    return workload.merge(parts)
