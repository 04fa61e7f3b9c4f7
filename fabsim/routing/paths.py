"""Candidate paths: all shortest paths of every flow, laid out in lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabsim.errors import InputError
from fabsim.routing.tables import UNREACHABLE, Tables, build_tables, dead
from fabsim.topology.graph import Fabric
from fabsim.typing import Bool, Float, Int
from fabsim.workload.flows import Flows


@dataclass(frozen=True)
class Ends:
    """Where flows enter and leave the switches. Shapes: F flows, P distinct pairs of edge switches.

    Attributes:
        up, down: [F] link from the sender's NIC, link to the receiver.
        pair: [F] which pair of edge switches.
        source, target: [P] the edge switches of each pair, numbered from 0 (without the hosts).
        tables: forwarding tables of those pairs.
    """

    up: Int
    down: Int
    pair: Int
    source: Int
    target: Int
    tables: Tables

    @property
    def place(self) -> Int:
        """[P] places of the pairs in the tables."""
        return self.tables.place(self.source, self.target)

    @property
    def hops(self) -> int:
        """Links between switches on the longest path."""
        distance = self.tables.distance[self.place]
        return int(distance.max(initial=0))


@dataclass(frozen=True)
class Candidates:
    """All shortest paths of every flow. Shapes: F flows, K lanes, H links.

    A lane is a place in a fixed order of paths (lexicographic by link: in a Clos by spine, or by aggregation switch
    and core), so that flows of one leaf have the same row of links at each hop. A flow with n < K paths has its i-th
    path in a contiguous group of lanes; the first lane of a group carries the weight. A path with a dead link is
    replaced by a living one beside it and carries none.

    Attributes:
        path: [F, K, H] as in Routes.
        carries: [F, K] bool: lanes that stand for a distinct living path.
        count: [F] number of paths n in the healthy fabric.
    """

    path: Int
    carries: Bool
    count: Int

    def even(self) -> Float:
        """[F, K] equal shares over the living paths."""
        return self.carries / self.carries.sum(axis=1, keepdims=True)


def find_ends(fabric: Fabric, flows: Flows) -> Ends:
    """NIC links, distinct switch pairs and tables of the flows.

    Raises InputError for a host that is not there, a flow to itself, and a pair without a route (all dead).
    """
    _check_hosts(fabric, flows)
    up, down = _nic(fabric, fabric.src, "sends"), _nic(fabric, fabric.dst, "receives")
    ups, downs = up[flows.src], down[flows.dst]
    switches = len(fabric.names) - fabric.hosts
    ways = (fabric.dst[ups] - fabric.hosts) * switches + fabric.src[downs] - fabric.hosts
    distinct, pair = np.unique(ways, return_inverse=True)
    source, target = np.divmod(distinct, switches)
    ends = Ends(ups, downs, pair, source, target, build_tables(fabric, source, target))
    _check_routes(fabric, flows, ends)
    return ends


def candidates(fabric: Fabric, flows: Flows, ends: Ends | None = None) -> Candidates:
    """All shortest paths of every flow in lanes; K is the largest number of paths of any flow."""
    ends = find_ends(fabric, flows) if ends is None else ends
    tables, place = ends.tables, ends.place
    count = tables.paths[place]
    lanes = int(count.max(initial=1))
    index = np.arange(lanes) * count[:, None] // lanes
    links = nth_path(tables, np.repeat(place, lanes), index.reshape(-1), ends.hops)
    links = links.reshape(len(place), lanes, ends.hops)
    first = np.diff(index, axis=1, prepend=-1) > 0
    living = np.asarray(dead(fabric, links).sum(axis=2) == 0)
    use = _nearest_living(living)
    links = np.take_along_axis(links, use[:, :, None], axis=1)
    path = join(ends, links[ends.pair])
    return Candidates(path, (first & living)[ends.pair], count[ends.pair])


def nth_path(tables: Tables, place: Int, index: Int, hops: int) -> Int:
    """[W, hops] links of the index-th path (lexicographic, healthy fabric) from each place, right-aligned."""
    index = index.copy()

    def choose(walker: Int, at: Int) -> Int:
        rank = tables.base[at] + index[walker]
        entry = np.searchsorted(tables.entry_base, rank, side="right") - 1
        index[walker] = rank - tables.entry_base[entry]
        return entry

    return tables.walk(place, hops, choose)


def join(ends: Ends, middle: Int) -> Int:
    """[F, K, H] whole paths from the right-aligned links between switches [F, K, H - 2]."""
    flows, lanes, hops = middle.shape
    path = np.full((flows, lanes, hops + 2), -1, dtype=np.int32)
    path[:, :, 1:-1] = middle
    path[:, :, -1] = ends.down[:, None]
    entry = (hops - ends.tables.distance[ends.place])[ends.pair]
    path[np.arange(flows), :, entry] = ends.up[:, None]
    return path


def _nearest_living(living: Bool) -> Int:
    """[P, K] the lane to use: itself where it lives, else the last living lane before it, else the first after."""
    lane = np.arange(living.shape[1])
    before = np.maximum.accumulate(np.where(living, lane, -1), axis=1)
    return np.where(before >= 0, before, living.argmax(axis=1)[:, None])


def _nic(fabric: Fabric, ends: Int, verb: str) -> Int:
    """[hosts] the one link of each host on this side (`ends`: fabric.src or fabric.dst)."""
    link = np.flatnonzero(ends < fabric.hosts)
    count = np.bincount(ends[link], minlength=fabric.hosts)
    if (count != 1).any():
        host = int(np.flatnonzero(count != 1)[0])
        raise InputError(f"host {host} {verb} over {count[host]} links: exactly one is needed")
    nic = np.empty(fabric.hosts, dtype=np.int64)
    nic[ends[link]] = link
    return nic


def _check_hosts(fabric: Fabric, flows: Flows) -> None:
    """Hosts must be there, and two different ones."""
    for end in (flows.src, flows.dst):
        out = np.flatnonzero((end < 0) | (end >= fabric.hosts))
        if len(out):
            raise InputError(
                f"flow {out[0]} names host {end[out[0]]}, which is not there: the fabric has hosts 0 to "
                f"{fabric.hosts - 1}"
            )
    own = np.flatnonzero(flows.src == flows.dst)
    if len(own):
        raise InputError(f"flow {own[0]} goes from host {flows.src[own[0]]} to itself")


def _check_routes(fabric: Fabric, flows: Flows, ends: Ends) -> None:
    """Every flow needs a living path; the sentence names the pair of hosts."""
    place = ends.place
    distance = ends.tables.distance[place]
    open_ = (distance == 0) | ((distance < UNREACHABLE) & (ends.tables.living[place] > 0))
    route = open_[ends.pair] & (fabric.capacity[ends.up] > 0) & (fabric.capacity[ends.down] > 0)
    lost = np.flatnonzero(~route)
    if len(lost):
        src, dst = flows.src[lost[0]], flows.dst[lost[0]]
        more = f" (and {len(lost) - 1} more flows)" if len(lost) > 1 else ""
        why = "every shortest path has a dead link" if (fabric.capacity <= 0).any() else "they are not connected"
        raise InputError(f"no route from host {src} to host {dst}{more}: {why}")
