"""The ways to route: one hashed path, all paths, drawn entropy values, a given split.

Hashing is hop by hop, as switches do it: each picks among the next hops that still lead to the destination.
All are deterministic for a seed. All raise InputError for a host that is not there, a flow to itself, and a pair of
hosts without a living route.
"""

from __future__ import annotations

import numpy as np

from fabsim.errors import InputError
from fabsim.routing.hashing import Hash, Word, seeded_hash
from fabsim.routing.paths import Ends, candidates, find_ends, join
from fabsim.routing.routes import Routes
from fabsim.topology.graph import Fabric
from fabsim.typing import Float, Int
from fabsim.workload.flows import Flows

WALKERS = 1 << 20  # entropy values that are hashed at a time: bounds the memory
SPARSE = 4  # with this many times more paths than entropy values, the drawn paths are listed and not all paths


def ecmp(fabric: Fabric, flows: Flows, *, seed: int, polarised: bool = False, queue_pairs: int = 1) -> Routes:
    """One path a flow, hashed by flow number with a salt per switch (one salt for all where `polarised`); with
    `queue_pairs`, so many independent draws, each with an equal part of the flow.

    A host with several ports that lead there hashes each to one of them.
    """
    if queue_pairs < 1:
        raise InputError(f"queue_pairs: {queue_pairs} given, at least 1 is needed")
    ends = find_ends(fabric, flows)
    hashing = seeded_hash(len(fabric.names) - fabric.hosts, seed, polarised)
    flow, number = np.broadcast_arrays(np.arange(flows.count)[:, None], np.arange(queue_pairs))
    block = ends.block(flow, hashing.port(flow + flows.count * number, ends.ways[flow]))
    links, _ = _draw(ends, flow, block, number, hashing)
    return Routes(join(ends.only(block), links[:, :, None]), np.full(flow.shape, 1.0 / queue_pairs))


def all_paths(fabric: Fabric, flows: Flows) -> Routes:
    """All shortest living paths, in equal parts: the ideal spray."""
    found = candidates(fabric, flows)
    return Routes(found.path, found.even())


def drawn(
    fabric: Fabric,
    flows: Flows,
    *,
    entropies: int = 128,
    seed: int,
    polarised: bool = False,
    packets: Int | None = None,
) -> Routes:
    """A finite spray: each flow has `entropies` values, each hashed to a path; weight = share of the packets.

    A sender goes through its values in rounds, a packet each, so that of n packets each value has n / entropies,
    rounded down or up: a short flow uses no more values than it has packets. `packets` [F] says how many there are;
    None: so many that all values weigh the same.

    A host with several ports goes around these, starting at the flow's own: of n ports each has 1 / n of the values,
    rounded down or up.

    K is the number of candidate paths, in their fixed lanes, unless there are over 4 times more of these than values:
    then each port has as many lanes as values (a path may come twice).
    """
    if entropies < 1:
        raise InputError(f"entropies: {entropies} given, at least 1 is needed")
    ends = find_ends(fabric, flows)
    hashing = seeded_hash(len(fabric.names) - fabric.hosts, seed, polarised)
    if ends.lanes > SPARSE * entropies:
        return _listed_draw(ends, rounds(flows, entropies, packets), hashing)
    found = candidates(fabric, flows, ends)
    lanes, per_block = found.path.shape[1], found.path.shape[1] // ends.up.shape[1]
    count = ends.tables.paths[ends.place][ends.pair]
    weight = np.zeros((flows.count, lanes))
    part = rounds(flows, entropies, packets)
    at_a_time = max(WALKERS // entropies, 1)
    for begin in range(0, flows.count, at_a_time):
        flow = np.arange(begin, min(begin + at_a_time, flows.count))[:, None]
        value = np.broadcast_to(np.arange(entropies), (len(flow), entropies))
        block = ends.block(flow, (hashing.port(flow, ends.ways[flow]) + value) % ends.ways[flow])
        _, rank = _draw(ends, flow, block, value, hashing)
        lane = -(-rank * per_block // count[flow, block])  # first lane of the group of that path
        slot = (flow - begin) * lanes + block * per_block + lane
        share = np.bincount(slot.reshape(-1), part[flow[:, 0]].reshape(-1), minlength=len(flow) * lanes)
        weight[flow[:, 0]] = share.reshape(len(flow), lanes)
    return Routes(found.path, weight)


def proportional(fabric: Fabric, flows: Flows) -> Routes:
    """All living paths, split by the capacity of the slowest link between switches on each."""
    found = candidates(fabric, flows)
    middle = found.path[:, :, 1:-1]
    between = (middle >= 0) & (fabric.src[middle] >= fabric.hosts)
    slowest = np.where(between, fabric.capacity[middle], np.inf).min(axis=2, initial=np.inf)
    weight = np.where(np.isinf(slowest), 1.0, slowest) * found.carries
    return Routes(found.path, weight / weight.sum(axis=1, keepdims=True))


def adaptive(fabric: Fabric, flows: Flows) -> Routes:
    """All living paths, where each switch splits by the speed of its own links: the shortest queue is filled as fast as
    it empties, and nobody sees what is slow further on."""
    between = (fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts)
    if len(set(fabric.capacity[between])) <= 1:
        return all_paths(fabric, flows)
    path = candidates(fabric, flows).path
    of_flow = np.broadcast_to(np.arange(flows.count)[:, None, None], path.shape)
    flow, link = np.divmod(np.unique((of_flow * (fabric.links + 1) + path)[path >= 0]), fabric.links + 1)
    return by_link_counts(fabric, flows, flow, link, fabric.capacity[link])


def split(fabric: Fabric, flows: Flows, weight: Float) -> Routes:
    """All candidate paths with given weights: [K] for all flows or [F, K]; lanes as in `Candidates`.

    Weights count on lanes that carry a living path, and are scaled to sum to 1. Raises InputError for a wrong shape,
    a negative or non-finite weight, and a flow that is left without any.
    """
    found = candidates(fabric, flows)
    if weight.shape not in (found.carries.shape, found.carries.shape[1:]):
        given = " x ".join(str(n) for n in weight.shape)
        raise InputError(f"weights: {given} given, {found.carries.shape[1]} are needed, one a path (for each flow)")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise InputError("weights: each must be a number, 0 or more")
    return Routes(found.path, _normalised(weight * found.carries, flows))


def by_link_counts(fabric: Fabric, flows: Flows, flow: Int, link: Int, amount: Float) -> Routes:
    """The split that reproduces what was measured: entry i says that `amount[i]` of `flow[i]` went over `link[i]`.

    Each switch's shares are its measured shares, and a path has the product of those on its way. A switch at which a
    flow has no entries leaves its links equal. Raises InputError where the entries leave a flow without a path.
    """
    found = candidates(fabric, flows)
    entry, inverse = np.unique(flow.astype(np.int64) * fabric.links + link, return_inverse=True)
    count = np.bincount(inverse, weights=amount, minlength=len(entry)).astype(np.float64)
    at, way = np.divmod(entry, fabric.links)
    switch, inverse = np.unique(at * len(fabric.names) + fabric.src[way], return_inverse=True)
    total = np.bincount(inverse, weights=count, minlength=len(switch)).astype(np.float64)

    of_flow = np.arange(flows.count)[:, None, None]
    through = _look_up(entry, count, of_flow * fabric.links + found.path)
    out = _look_up(switch, total, of_flow * len(fabric.names) + fabric.src[found.path])
    share = np.where((found.path >= 0) & (out > 0), through / np.where(out > 0, out, 1.0), 1.0)
    return Routes(found.path, _normalised(share.prod(axis=2) * found.carries, flows))


def _look_up(keys: Int, values: Float, wanted: Int) -> Float:
    """Values of the wanted keys among sorted keys, 0 where a key is not there."""
    if not len(keys):
        return np.zeros(wanted.shape)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0.0)


def _normalised(weight: Float, flows: Flows) -> Float:
    """Rows that sum to 1."""
    total = weight.sum(axis=1, keepdims=True)
    empty = np.flatnonzero(total[:, 0] <= 0)
    if len(empty):
        flow = empty[0]
        raise InputError(
            f"weights of flow {flow} (host {flows.src[flow]} to host {flows.dst[flow]}) are 0 on every living path"
        )
    return weight / total


def _hashed(ends: Ends, flow: Int, block: Int, key: Word, hashing: Hash) -> tuple[Int, Int]:
    """Walk by hash: ([W, H] links between switches, [W] rank of the path among all of that block, healthy fabric)."""
    tables = ends.tables
    rank = np.zeros(len(flow), dtype=np.int64)

    def choose(walker: Int, at: Int) -> Int:
        pick = hashing.pick(key[walker], tables.switch(at), tables.living[at])
        entry = tables.alive[tables.first[at] + pick]
        rank[walker] += tables.entry_base[entry] - tables.base[at]
        return entry

    return tables.walk(ends.place[ends.pair[flow, block]], ends.hops, choose), rank


def _draw(ends: Ends, flow: Int, block: Int, value: Int, hashing: Hash) -> tuple[Int, Int]:
    """Paths of entropy values, in the shape of `value`: ([..., H] links between switches, [...] ranks)."""
    flow, block = (np.broadcast_to(column, value.shape).reshape(-1) for column in (flow, block))
    links, rank = _hashed(ends, flow, block, hashing.keys(flow, value.reshape(-1)), hashing)
    return links.reshape(*value.shape, -1), rank.reshape(value.shape)


def rounds(flows: Flows, entropies: int, packets: Int | None) -> Float:
    """[F, E] share of a flow's packets that each of its entropy values carries."""
    if packets is None:
        return np.full((flows.count, entropies), 1.0 / entropies)
    count = np.maximum(packets, 1)[:, None]
    whole, more = np.divmod(count, entropies)
    return (whole + (np.arange(entropies) < more)) / count


def _listed_draw(ends: Ends, part: Float, hashing: Hash) -> Routes:
    """The drawn paths themselves, in the order of their rank in each block, with their parts of the flow."""
    flows, values = part.shape
    flow = np.arange(flows)[:, None, None]
    ways = ends.ways[:, None, None]
    turn = np.arange(-(-values // int(ends.ways.min(initial=values))))
    begin = (ends.rank[:, :, None] - hashing.port(flow, ways)) % ways  # the first value that goes this way
    last = np.maximum(values - 1 - begin, 0) // ways
    value = begin + ways * np.minimum(turn, last)
    used = (turn <= last) & (value < values) & ends.carries[:, :, None]
    links, rank = _draw(ends, flow, np.arange(ends.up.shape[1])[:, None], value, hashing)
    order = np.argsort(rank, axis=2, kind="stable")
    path = join(ends, np.take_along_axis(links, order[..., None], axis=2))
    weight = np.where(used, part[flow, np.minimum(value, values - 1)], 0.0)
    return Routes(path, np.take_along_axis(weight, order, axis=2).reshape(path.shape[:2]))
