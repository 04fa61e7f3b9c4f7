"""Forwarding tables: for each switch and destination switch, the links that lead there by a shortest path.

Only what the given pairs of switches need is built, level by level from the longest distance down. A table entry
knows how many paths lie before it, so that "the i-th path" and "the rank of this path" are walks without any list of
paths. Distances are those of the healthy fabric: where links are dead, a switch forwards over what is left of the
shortest paths, and a pair without any is unreachable. (In a Clos that is up-down routing: no detour through a valley.)
Of several sites, one is left only for another, and entered only for a host of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fabsim.topology.graph import Fabric
from fabsim.topology.wiring import BORDER
from fabsim.typing import Bool, Int

UNREACHABLE = 127


@dataclass(frozen=True)
class Tables:
    """Next hops. Shapes: S switches, D destinations, E entries. A "place" is switch * D + destination column.

    Attributes:
        column: [S] destination column of a switch, -1 where it is no destination.
        distance: [S * D] hops on the healthy fabric, UNREACHABLE where there is no path.
        paths: [S * D] number of shortest paths of the healthy fabric (0 where not built).
        base: [S * D] paths of all places before this one, in the order of the entries.
        first, living: [S * D] first entry of a place in `alive`, and how many there are.
        entry_link: [E] link of each entry, the entries of a place together, in order of their link.
        entry_place: [E] place at the head of that link.
        entry_base: [E] `base` of the entry's place plus the paths of the entries before it; ascending.
        alive: entries that lead to the destination by living links only, in order.
    """

    column: Int
    distance: Int
    paths: Int
    base: Int
    first: Int
    living: Int
    entry_link: Int
    entry_place: Int
    entry_base: Int
    alive: Int

    def place(self, source: Int, target: Int) -> Int:
        """Places of pairs of switches (numbered from 0, that is, without the hosts)."""
        return source * int(self.column.max(initial=-1) + 1) + self.column[target]

    def switch(self, place: Int) -> Int:
        """The switches of places."""
        return place // int(self.column.max(initial=-1) + 1)

    def walk(self, place: Int, hops: int, choose: Callable[[Int, Int], Int]) -> Int:
        """[W, hops] links from each place to its destination, right-aligned, -1 in front.

        `choose(walker, place)` gives the entries that some walkers follow from where they are.
        """
        links = np.full((len(place), hops), -1, dtype=np.int32)
        place = place.copy()
        for hop in range(hops):
            moving = np.flatnonzero(self.distance[place] == hops - hop)
            if len(moving):
                entry = choose(moving, place[moving])
                links[moving, hop] = self.entry_link[entry]
                place[moving] = self.entry_place[entry]
        return links


def build_tables(fabric: Fabric, source: Int, target: Int) -> Tables:
    """Tables that lead from each source switch to the target switch of the same index (numbered without the hosts)."""
    switches = len(fabric.names) - fabric.hosts
    link, start, degree = _links_by_tail(fabric)
    tail, head = fabric.src[link] - fabric.hosts, fabric.dst[link] - fabric.hosts
    targets = np.unique(target)
    column = np.full(switches, -1)
    column[targets] = np.arange(len(targets))
    open_ = passable(fabric, link, targets)
    found = _distances if open_ is None else _by_site(open_)
    distance = found(tail, head, targets, switches)

    wanted = np.zeros(distance.size, dtype=bool)
    wanted[source * len(targets) + column[target]] = True
    wanted &= (distance > 0) & (distance < UNREACHABLE)
    levels = []
    for remaining in range(int(distance[wanted].max(initial=0)), 0, -1):
        places = np.flatnonzero(wanted & (distance == remaining))
        node, at = np.divmod(places, len(targets))
        owner = np.repeat(np.arange(len(places)), degree[node])
        slot = start[node][owner] + _count_up(degree[node])
        ahead = head[slot] * len(targets) + at[owner]
        keep = distance[ahead] == remaining - 1
        keep = keep if open_ is None else keep & open_[slot, at[owner]]
        levels.append((places[owner[keep]], link[slot[keep]], ahead[keep]))
        wanted[ahead[keep]] = True
    return _number(fabric, column, distance, levels)


def passable(fabric: Fabric, link: Int, targets: Int) -> Bool | None:
    """[links, D] whether a link may be taken to each target switch; None where there are no sites."""
    if fabric.site is None:
        return None
    tail, head = fabric.src[link], fabric.dst[link]
    leaves = (fabric.tier[head] == BORDER) & (fabric.tier[tail] != BORDER)
    enters = (fabric.tier[tail] == BORDER) & (fabric.tier[head] != BORDER)
    own = fabric.site[tail][:, None] == fabric.site[targets + fabric.hosts]
    return np.where(own, ~leaves[:, None], ~enters[:, None])


def _by_site(open_: Bool) -> Callable[[Int, Int, Int, int], Int]:
    """Distances where what may be taken depends on the target: targets with the same links together."""
    kinds, kind = np.unique(open_, axis=1, return_inverse=True)

    def distances(tail: Int, head: Int, targets: Int, switches: int) -> Int:
        distance = np.empty((switches, len(targets)), dtype=np.int8)
        for number, column in enumerate(kinds.T):
            mine = np.flatnonzero(kind.reshape(-1) == number)
            found = _distances(tail[column], head[column], targets[mine], switches)
            distance[:, mine] = found.reshape(switches, -1)
        return distance.reshape(-1)

    return distances


def _number(fabric: Fabric, column: Int, distance: Int, levels: list[tuple[Int, Int, Int]]) -> Tables:
    """Count paths and living entries of every place, from the destinations upwards."""
    paths = (distance == 0).astype(np.int64)
    reachable = paths > 0
    for place, link, head in reversed(levels):
        np.add.at(paths, place, paths[head])
        reachable[place[(fabric.capacity[link] > 0) & reachable[head]]] = True
    empty = np.zeros(0, dtype=np.int64)
    place, link, head = (np.concatenate([empty, *(level[i] for level in levels)]) for i in range(3))
    before = np.cumsum(paths[head]) - paths[head]
    alive = np.flatnonzero((fabric.capacity[link] > 0) & reachable[head])
    return Tables(
        column=column,
        distance=distance,
        paths=paths,
        base=before[_first(place, distance.size)] if len(place) else np.zeros(distance.size, dtype=np.int64),
        first=_first(place[alive], distance.size),
        living=np.bincount(place[alive], minlength=distance.size),
        entry_link=link,
        entry_place=head,
        entry_base=before,
        alive=alive,
    )


def _first(place: Int, places: int) -> Int:
    """[places] index of the first entry of each place (entries of a place are together), 0 where it has none."""
    first = np.zeros(places, dtype=np.int64)
    begins = np.flatnonzero(np.diff(place, prepend=-1))
    first[place[begins]] = begins
    return first


def _distances(tail: Int, head: Int, targets: Int, switches: int) -> Int:
    """[S * D] hops from every switch to each target: all breadth-first searches at once, on packed bits.

    `tail` and `head` are the switches at the ends of the links, grouped by tail.
    """
    tails, starts = np.unique(tail, return_index=True)
    distance = np.full((switches, len(targets)), UNREACHABLE, dtype=np.int8)
    distance[targets, np.arange(len(targets))] = 0
    reached = np.packbits(distance == 0, axis=1)
    for hop in range(1, UNREACHABLE if len(tail) else 0):
        grown = reached.copy()
        grown[tails] |= np.bitwise_or.reduceat(reached[head], starts, axis=0)
        new = grown & ~reached
        if not new.any():
            break
        distance[np.unpackbits(new, axis=1, count=len(targets)).astype(bool)] = hop
        reached = grown
    return distance.reshape(-1)


def _links_by_tail(fabric: Fabric) -> tuple[Int, Int, Int]:
    """Links between switches, grouped by tail: (links in order, [S] start of a tail's group, [S] its length)."""
    between = np.flatnonzero((fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts))
    tail = fabric.src[between] - fabric.hosts
    degree = np.bincount(tail, minlength=len(fabric.names) - fabric.hosts)
    return between[np.argsort(tail, kind="stable")], np.cumsum(degree) - degree, degree


def _count_up(lengths: Int) -> Int:
    """0, 1, ..., n-1 for each length n, one after the other."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def dead(fabric: Fabric, links: Int) -> Bool:
    """True where a (padded) link is dead."""
    return (links >= 0) & (fabric.capacity[links] <= 0)
