"""Candidate paths: all shortest paths of every flow, laid out in lanes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fabsim.errors import InputError
from fabsim.routing.tables import UNREACHABLE, Tables, build_tables, dead
from fabsim.topology.graph import Fabric
from fabsim.typing import Bool, Float, Int
from fabsim.workload.flows import Flows


@dataclass(frozen=True)
class Ends:
    """Where flows enter and leave the switches. Shapes: F flows, B blocks of lanes, P distinct pairs of edge switches.

    A way of a flow is a pair of ports, the sender's and the receiver's, whose switches are joined; only the ways with
    the fewest links that live count (in a multi-plane fabric: one a plane). Each way has a block of lanes. Where a
    flow has n < B ways its i-th has a contiguous group of blocks, and a dead one gives its place to a living one
    beside it; `carries` marks one block for each living way.

    Attributes:
        up, down: [F, B] link from the sender's port, link to the receiver's.
        pair: [F, B] which pair of edge switches.
        carries: [F, B] bool: blocks that stand for a way of their own.
        rank: [F, B] number of the way of each block among the living ways of its flow.
        source, target: [P] the edge switches of each pair, numbered from 0 (without the hosts).
        tables: forwarding tables of those pairs.
    """

    up: Int
    down: Int
    pair: Int
    carries: Bool
    rank: Int
    source: Int
    target: Int
    tables: Tables

    @property
    def ways(self) -> Int:
        """[F] number of living ways."""
        return self.carries.sum(axis=1)

    @property
    def lanes(self) -> int:
        """Lanes of all paths: as many in each block."""
        return self.up.shape[1] * int(self.tables.paths[self.place].max(initial=1))

    def block(self, flow: Int, way: Int) -> Int:
        """The block that carries the given way (a number among the living ones) of each flow."""
        order = np.argsort(~self.carries, axis=1, kind="stable")
        return order[flow, way]

    def only(self, block: Int) -> Ends:
        """The ends with chosen blocks of each flow [F, Q]."""
        pick = (np.arange(len(block))[:, None], block)
        up, down, pair, rank = (column[pick] for column in (self.up, self.down, self.pair, self.rank))
        return replace(self, up=up, down=down, pair=pair, carries=np.ones(up.shape, bool), rank=rank)

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
    replaced by a living one beside it and carries none. The lanes of hosts with several ports come in blocks, see
    `Ends`.

    Attributes:
        path: [F, K, H] as in Routes.
        carries: [F, K] bool: lanes that stand for a distinct living path.
        count: [F] number of paths n in the healthy fabric (of several ports, over those that live).
    """

    path: Int
    carries: Bool
    count: Int

    def even(self) -> Float:
        """[F, K] equal shares over the living paths."""
        return self.carries / self.carries.sum(axis=1, keepdims=True)


def find_ends(fabric: Fabric, flows: Flows) -> Ends:
    """Ports, distinct pairs of edge switches and tables of the flows.

    Raises InputError for a host that is not there, a flow to itself, and a pair without a route.
    """
    check_hosts(fabric, flows)
    up, down = _port_pairs(fabric, flows)
    there = (up >= 0) & (down >= 0)
    switches = len(fabric.names) - fabric.hosts
    edges = (fabric.dst[up] - fabric.hosts) * switches + fabric.src[down] - fabric.hosts
    distinct, inverse = np.unique(edges[there], return_inverse=True)
    source, target = np.divmod(distinct, switches)
    tables = build_tables(fabric, source, target)

    place = tables.place(source, target)
    distance = np.full(up.shape, UNREACHABLE)
    distance[there] = tables.distance[place][inverse]
    living = np.zeros(up.shape, dtype=bool)
    living[there] = ((tables.distance[place] == 0) | (tables.living[place] > 0))[inverse]
    living &= (distance < UNREACHABLE) & (fabric.capacity[up] > 0) & (fabric.capacity[down] > 0)
    _check_routes(fabric, flows, np.asarray(living.any(axis=1)))

    nearest = np.where(living, distance, UNREACHABLE).min(axis=1, initial=UNREACHABLE)
    chosen, first = _blocks(there & (distance == nearest[:, None]))
    lives = np.take_along_axis(living, chosen, axis=1)
    carries = first & lives
    use = nearest_living(lives)
    chosen = np.take_along_axis(chosen, use, axis=1)
    rank = np.take_along_axis(carries.cumsum(axis=1) - 1, use, axis=1)
    up, down, edges = (np.take_along_axis(column, chosen, axis=1) for column in (up, down, edges))
    distinct, pair = np.unique(edges, return_inverse=True)
    source, target = np.divmod(distinct, switches)
    return Ends(up, down, pair.reshape(up.shape), carries, rank, source, target, tables)


def candidates(fabric: Fabric, flows: Flows, ends: Ends | None = None) -> Candidates:
    """All shortest paths of every flow in lanes; K is the largest number of paths of any way, times the ways."""
    ends = find_ends(fabric, flows) if ends is None else ends
    tables, place = ends.tables, ends.place
    count = tables.paths[place]
    lanes = int(count.max(initial=1))
    index = np.arange(lanes) * count[:, None] // lanes
    links = nth_path(tables, np.repeat(place, lanes), index.reshape(-1), ends.hops)
    links = links.reshape(len(place), lanes, ends.hops)
    first = np.diff(index, axis=1, prepend=-1) > 0
    living = np.asarray(dead(fabric, links).sum(axis=2) == 0)
    use = nearest_living(living)
    links = np.take_along_axis(links, use[:, :, None], axis=1)
    path = join(ends, links[ends.pair])
    carries = (first & living)[ends.pair] & ends.carries[:, :, None]
    return Candidates(path, carries.reshape(path.shape[:2]), (count[ends.pair] * ends.carries).sum(axis=1))


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
    """[F, B * K, H] whole paths from the right-aligned links between switches [F, B, K, H - 2]."""
    flows, blocks, lanes, hops = middle.shape
    path = np.full((flows, blocks, lanes, hops + 2), -1, dtype=np.int32)
    path[..., 1:-1] = middle
    path[..., -1] = ends.down[:, :, None]
    entry = (hops - ends.tables.distance[ends.place])[ends.pair]
    path[np.arange(flows)[:, None], np.arange(blocks), :, entry] = ends.up[:, :, None]
    return path.reshape(flows, blocks * lanes, hops + 2)


def nearest_living(living: Bool) -> Int:
    """[P, K] the lane to use: itself where it lives, else the last living lane before it, else the first after."""
    lane = np.arange(living.shape[1])
    before = np.maximum.accumulate(np.where(living, lane, -1), axis=1)
    return np.where(before >= 0, before, living.argmax(axis=1)[:, None])


def _blocks(ways: Bool) -> tuple[Int, Bool]:
    """[F, B] the way (column of `ways` [F, W]) of each block, and the first block of each way; B: the most of any."""
    count = ways.sum(axis=1)
    blocks = np.arange(int(count.max(initial=1)))
    nth = blocks * count[:, None] // len(blocks)
    order = np.argsort(~ways, axis=1, kind="stable")
    return np.take_along_axis(order, nth, axis=1), np.diff(nth, axis=1, prepend=-1) > 0


def _port_pairs(fabric: Fabric, flows: Flows) -> tuple[Int, Int]:
    """[F, W] up link and down link of every pair of ports of the two hosts of each flow, -1 where there is none."""
    up, down = ports(fabric, fabric.src, fabric.dst), ports(fabric, fabric.dst, fabric.src)
    senders, receivers = up.shape[1], down.shape[1]
    return np.repeat(up[flows.src], receivers, axis=1), np.tile(down[flows.dst], (1, senders))


def ports(fabric: Fabric, near: Int, far: Int) -> Int:
    """[hosts, ports] the links between each host and switches, by number, -1 behind them where a host has fewer.

    `near` and `far` are fabric.src and fabric.dst for the links that leave the hosts, the other way round for those
    that enter.
    """
    link = np.flatnonzero((near < fabric.hosts) & (far >= fabric.hosts))
    link = link[np.argsort(near[link], kind="stable")]
    count = np.bincount(near[link], minlength=fabric.hosts)
    table = np.full((fabric.hosts, max(int(count.max(initial=0)), 1)), -1)
    table[near[link], np.arange(len(link)) - np.repeat(np.cumsum(count) - count, count)] = link
    return table


def check_hosts(fabric: Fabric, flows: Flows) -> None:
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


def _check_routes(fabric: Fabric, flows: Flows, routed: Bool) -> None:
    """Every flow needs a living path; the sentence names the pair of hosts."""
    lost = np.flatnonzero(~routed)
    if len(lost):
        src, dst = flows.src[lost[0]], flows.dst[lost[0]]
        more = f" (and {len(lost) - 1} more flows)" if len(lost) > 1 else ""
        apart = "they are not connected by switches, and hosts do not forward"
        why = "every shortest path has a dead link" if (fabric.capacity <= 0).any() else apart
        raise InputError(f"no route from host {src} to host {dst}{more}: {why}")
