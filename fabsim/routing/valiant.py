"""Dragonfly routing: minimal paths (one cable between groups) and Valiant paths (through another group).

Groups are `Fabric.pod`; the routers of a group are joined to each other. A minimal path has at most 3 links between
routers: inside the sender's group, to the receiver's group, inside that; a Valiant path at most 5.
(Valiant, SIAM J. Comput. 11, 1982; Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology,
ISCA 2008.) All shortest paths, as the other ways of routing take them, also have those of two links that cross a
third group where that is as short: minimal paths do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabsim.errors import InputError
from fabsim.routing.paths import check_hosts, nearest_living, ports
from fabsim.routing.routes import Routes
from fabsim.topology.graph import Fabric
from fabsim.typing import Bool, Float, Int
from fabsim.workload.flows import Flows

BROKEN = -2
"""A leg that is not there or dead; -1 is a leg that is not needed."""


def valiant(fabric: Fabric, flows: Flows, *, seed: int, groups: int | None = None, minimal: float = 0.5) -> Routes:
    """Minimal and Valiant paths, each kind in equal parts.

    Lanes: first the minimal paths (the shortest over each cable between the two groups), then one path through each
    of `groups` other groups, drawn for every flow (None: through each other group), in the order of the groups; where
    two groups have several cables, the flow draws one. A flow inside one group goes minimally; so does a flow of
    which all Valiant paths are dead, and the other way round.

    Args:
        groups: intermediate groups of each flow.
        minimal: share of the bytes on minimal paths, 0 to 1.

    Raises InputError for a fabric without groups or with hosts of several ports, a number out of range, a host that is
    not there, and a pair without a living path.
    """
    if not 0 <= minimal <= 1:
        raise InputError(f"minimal: {minimal:g} given, must be a share from 0 to 1")
    if groups is not None and groups < 1:
        raise InputError(f"groups: {groups} given, at least 1 is needed")
    check_hosts(fabric, flows)
    ways = _Ways(fabric, flows)
    direct, alive = _shortest(*ways.minimal())
    around, open_ = ways.around(np.random.default_rng(seed))
    if groups is not None:
        around, open_ = _sample(around, open_, groups, np.random.default_rng([seed, 1]))
    share = np.where(alive.any(axis=1), np.where(open_.any(axis=1), minimal, 1.0), 0.0)[:, None]
    weight = np.concatenate([_even(alive) * share, _even(open_) * (1.0 - share)], axis=1)
    return _routes(flows, _side_by_side(direct, around), weight)


@dataclass(frozen=True)
class _Cables:
    """Living cables between groups, by pair of groups. Shapes: G groups, C cables.

    Attributes:
        link: [C] the links, those of a pair together.
        first, count: [G, G] first of a pair's, and how many.
    """

    link: Int
    first: Int
    count: Int


class _Ways:
    """The legs of all flows on a fabric of groups."""

    def __init__(self, fabric: Fabric, flows: Flows) -> None:
        self.fabric, self.flows = fabric, flows
        up, down = ports(fabric, fabric.src, fabric.dst), ports(fabric, fabric.dst, fabric.src)
        if up.shape[1] > 1 or down.shape[1] > 1 or (up < 0).any() or (down < 0).any():
            raise InputError("valiant routing is for hosts with one port each; give another kind of routing")
        self.up, self.down = up[flows.src, 0], down[flows.dst, 0]
        self.source, self.target = fabric.dst[self.up], fabric.src[self.down]
        self.groups = int(fabric.pod.max()) + 1
        self.home, self.away = fabric.pod[self.source], fabric.pod[self.target]
        between = (fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts)
        inside = between & (fabric.pod[fabric.src] == fabric.pod[fabric.dst])
        self._check_groups(inside)
        self.local = np.flatnonzero(inside & (fabric.capacity > 0))
        key = fabric.src[self.local] * len(fabric.names) + fabric.dst[self.local]
        order = np.argsort(key, kind="stable")
        self.local, self.local_key = self.local[order], key[order]
        self.cables = self._cables(np.flatnonzero(between & ~inside & (fabric.capacity > 0)))

    def minimal(self) -> tuple[Int, Bool]:
        """[F, C, 5] legs over each cable between the two groups (up, local, cable, local, down), and which live."""
        within = self.home == self.away
        count = np.where(within, 1, self.cables.count[self.home, self.away])
        lane = np.arange(max(int(count.max(initial=1)), 1))
        cable = self._cable(self.home[:, None], self.away[:, None], np.minimum(lane, count[:, None] - 1))
        cable[within] = -1
        source, target = self.source[:, None], self.target[:, None]
        enter, leave = self._ends(cable, source)
        legs = self._legs([self._inside(source, enter), cable, self._inside(leave, target)])
        return legs, (legs > BROKEN).all(axis=2) & (lane < count[:, None])

    def around(self, rng: np.random.Generator) -> tuple[Int, Bool]:
        """[F, G, 7] legs through each group, by one cable each way that the flow draws, and which live and are
        neither the sender's group nor the receiver's."""
        group = np.broadcast_to(np.arange(self.groups), (self.flows.count, self.groups))
        home, away = self.home[:, None], self.away[:, None]
        there, on = (
            self._cable(*pair, (rng.random(group.shape) * self.cables.count[pair]).astype(int))
            for pair in ((home, group), (group, away))
        )
        source, target = self.source[:, None], self.target[:, None]
        leave, arrive = self._ends(there, source)
        depart, enter = self._ends(on, target)
        inside = [self._inside(*pair) for pair in ((source, leave), (arrive, depart), (enter, target))]
        legs = self._legs([inside[0], there, inside[1], on, inside[2]])
        other = (group != home) & (group != away) & (home != away)
        return legs, (legs > BROKEN).all(axis=2) & other

    def _cable(self, one: Int, other: Int, number: Int) -> Int:
        """The cable of that number from one group to the other, BROKEN where there is none."""
        if not len(self.cables.link):
            return np.full(np.broadcast_shapes(one.shape, other.shape, number.shape), BROKEN)
        at = np.clip(self.cables.first[one, other] + number, 0, len(self.cables.link) - 1)
        return np.where(self.cables.count[one, other] > 0, self.cables.link[at], BROKEN)

    def _ends(self, cable: Int, none: Int) -> tuple[Int, Int]:
        """Routers at the tail and the head of cables; `none` twice where there is no cable."""
        there = cable >= 0
        return np.where(there, self.fabric.src[cable], none), np.where(there, self.fabric.dst[cable], none)

    def _inside(self, tail: Int, head: Int) -> Int:
        """The link from router to router of a group: -1 for a router and itself, BROKEN where there is none."""
        key = tail * len(self.fabric.names) + head
        at = np.minimum(np.searchsorted(self.local_key, key), max(len(self.local_key) - 1, 0))
        found = self.local_key[at] == key if len(self.local_key) else np.zeros(key.shape, bool)
        link = self.local[at] if len(self.local_key) else key
        return np.where(tail == head, -1, np.where(found, link, BROKEN))

    def _legs(self, inner: list[Int]) -> Int:
        """Legs with those of the two hosts before and behind them, BROKEN where these are dead."""
        shape = np.broadcast_shapes(*(leg.shape for leg in inner))
        ends = [np.where(self.fabric.capacity[link] > 0, link, BROKEN)[:, None] for link in (self.up, self.down)]
        return np.stack([np.broadcast_to(leg, shape) for leg in (ends[0], *inner, ends[1])], axis=2)

    def _cables(self, link: Int) -> _Cables:
        one, other = self.fabric.pod[self.fabric.src[link]], self.fabric.pod[self.fabric.dst[link]]
        pair = one * self.groups + other
        count = np.bincount(pair, minlength=self.groups**2)
        first = (np.cumsum(count) - count).reshape(self.groups, self.groups)
        return _Cables(link[np.argsort(pair, kind="stable")], first, count.reshape(self.groups, self.groups))

    def _check_groups(self, inside: Bool) -> None:
        """There are groups, and each router has a link, dead or alive, to every other one of its group."""
        fabric = self.fabric
        routers = fabric.pod[fabric.hosts :]
        size = np.bincount(np.maximum(routers, 0), minlength=self.groups)
        pairs = np.unique(np.stack([fabric.src[inside], fabric.dst[inside]]), axis=1)
        joined = np.bincount(fabric.pod[pairs[0]], minlength=self.groups)
        if (routers < 0).any() or self.groups < 2 or (joined != size * (size - 1)).any():
            raise InputError(
                "valiant routing needs groups of routers that are all joined to each other, as a dragonfly has; "
                "give another kind of routing, or fabric: {kind: dragonfly, ...}"
            )


def _shortest(legs: Int, alive: Bool) -> tuple[Int, Bool]:
    """Only the paths with the fewest links carry."""
    length = np.where(alive, (legs >= 0).sum(axis=2), legs.shape[2] + 1)
    return legs, alive & (length == length.min(axis=1, keepdims=True))


def _sample(legs: Int, alive: Bool, count: int, rng: np.random.Generator) -> tuple[Int, Bool]:
    """A random `count` of the living paths of each flow, in their order."""
    draw = np.where(alive, rng.random(alive.shape), 2.0)
    chosen = np.sort(np.argsort(draw, axis=1, kind="stable")[:, :count], axis=1)
    return np.take_along_axis(legs, chosen[:, :, None], axis=1), np.take_along_axis(alive, chosen, axis=1)


def _even(alive: Bool) -> Float:
    """Equal shares over what lives."""
    return alive / np.maximum(alive.sum(axis=1, keepdims=True), 1)


def _side_by_side(short: Int, long: Int) -> Int:
    """Lanes of both, the short ones with legs of nothing in front."""
    front = np.full((*short.shape[:2], long.shape[2] - short.shape[2]), -1)
    return np.concatenate([np.concatenate([front, short], axis=2), long], axis=1)


def _routes(flows: Flows, legs: Int, weight: Float) -> Routes:
    """Right-aligned paths; lanes without weight repeat a used one beside them, lanes that nobody uses go."""
    lost = np.flatnonzero(~(weight > 0).any(axis=1))
    if len(lost):
        src, dst = flows.src[lost[0]], flows.dst[lost[0]]
        raise InputError(f"no route from host {src} to host {dst}: every path has a dead link")
    kept = (weight > 0).any(axis=0)
    legs, weight = legs[:, kept], weight[:, kept]
    legs = np.take_along_axis(legs, nearest_living(weight > 0)[:, :, None], axis=1)
    order = np.argsort(legs >= 0, axis=2, kind="stable")
    path = np.take_along_axis(legs, order, axis=2).astype(np.int32)
    return Routes(path[:, :, int((path < 0).all(axis=(0, 1)).sum()) :], weight)
