"""Explicit paths: the links of each flow, given by name or by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabsim.errors import InputError
from fabsim.routing.routes import Routes
from fabsim.routing.tables import dead
from fabsim.topology.graph import Fabric
from fabsim.topology.names import link_names
from fabsim.typing import Int
from fabsim.workload.flows import Flows


def explicit(fabric: Fabric, flows: Flows, paths: Sequence[Sequence[str]] | Int) -> Routes:
    """One given path a flow: names such as "leaf0->spine3", or link numbers [F, H], right-aligned, -1 in front.

    Raises InputError for a name that is not there, and for a path that is not one: see `check`.
    """
    if not isinstance(paths, np.ndarray):
        paths = numbers(fabric, paths)
    if len(paths) != flows.count:
        raise InputError(f"paths: {len(paths)} given for {flows.count} flows, one each is needed")
    routes = Routes(paths[:, None, :], np.ones((flows.count, 1)))
    check(fabric, flows, routes)
    return routes


def numbers(fabric: Fabric, paths: Sequence[Sequence[str]]) -> Int:
    """[F, H] link numbers of paths given by name, right-aligned.

    Raises InputError for a name that is not there, or that could be any of several parallel links.
    """
    index = {name: link for link, name in enumerate(link_names(fabric))}
    longest = max((len(path) for path in paths), default=0)
    found = np.full((len(paths), longest), -1, dtype=np.int32)
    for row, path in enumerate(paths):
        for place, name in enumerate(path, start=longest - len(path)):
            if name not in index:
                raise InputError(f'path of flow {row}: "{name}" {_hint(index, name)}')
            found[row, place] = index[name]
    return found


def check(fabric: Fabric, flows: Flows, routes: Routes) -> None:
    """Every path leads from its flow's sender to its receiver, link by link, and every used one lives.

    Raises InputError that names the first flow for which it does not.
    """
    path = routes.path
    if (path >= fabric.links).any():
        raise InputError(f"a path names link {path.max()}, which is not there: the fabric has {fabric.links} links")
    first = (path >= 0).argmax(axis=2)
    start = np.take_along_axis(path, first[:, :, None], axis=2)[:, :, 0]
    joined = (path[:, :, :-1] < 0) | (fabric.dst[path[:, :, :-1]] == fabric.src[path[:, :, 1:]])
    faults = {
        "has no links": path[:, :, -1] < 0,
        "does not begin at its sender": fabric.src[start] != flows.src[:, None],
        "does not end at its receiver": fabric.dst[path[:, :, -1]] != flows.dst[:, None],
        "has a gap: a link does not begin where the one before it ends": ~joined.all(axis=2),
        "uses a dead link": dead(fabric, path).any(axis=2) & (routes.weight > 0),
    }
    for fault, where in faults.items():
        if where.any():
            flow = int(np.flatnonzero(where.any(axis=1))[0])
            ends = f"host {flows.src[flow]} to host {flows.dst[flow]}"
            raise InputError(f"path of flow {flow} ({ends}) {fault}")


def _hint(index: dict[str, int], name: str) -> str:
    """Why a name is not found."""
    if f"{name}#0" in index:
        return f'could be any of several parallel links: say "{name}#0", "{name}#1", ...'
    return f'is no link of this fabric: names look like "{next(iter(index))}"'
