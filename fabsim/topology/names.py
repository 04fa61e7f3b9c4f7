"""Names of links, and links by name."""

from __future__ import annotations

import re
from difflib import get_close_matches
from fnmatch import translate

import numpy as np

from fabsim.errors import InputError
from fabsim.topology.graph import Fabric
from fabsim.typing import Bool, Int


def lane_numbers(fabric: Fabric) -> tuple[Int, Int]:
    """[L] place of each link among its parallels, and [L] how many parallels there are."""
    pair = fabric.src * len(fabric.names) + fabric.dst
    _, inverse, count = np.unique(pair, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    starts = np.cumsum(count) - count
    lane = np.empty(fabric.links, dtype=np.int64)
    lane[order] = np.arange(fabric.links) - starts[inverse[order]]
    return lane, count[inverse]


def link_names(fabric: Fabric) -> list[str]:
    """[L] names as `Fabric.link_name` gives them, all at once."""
    lane, parallels = lane_numbers(fabric)
    names = fabric.names
    return [
        f"{names[src]}->{names[dst]}#{number}" if many > 1 else f"{names[src]}->{names[dst]}"
        for src, dst, number, many in zip(
            fabric.src.tolist(), fabric.dst.tolist(), lane.tolist(), parallels.tolist(), strict=True
        )
    ]


def find_links(fabric: Fabric, pattern: str) -> Int:
    """Link numbers that a pattern names, ascending.

    The pattern is a link ("leaf0->spine3": all its parallels; "leaf0->spine3#1": one), both directions of a cable
    ("leaf0<->spine3"), or a node ("spine0": all its links, in and out). `*`, `?` and `[...]` match as in a shell.
    Raises InputError, with near names, where nothing matches.
    """
    if "<->" in pattern:
        one, other = pattern.split("<->", 1)
        other, _, lane = other.partition("#")
        lane = f"#{lane}" if lane else ""
        ways = [find_links(fabric, f"{one}->{other}{lane}"), find_links(fabric, f"{other}->{one}{lane}")]
        return np.union1d(*ways)
    if "->" in pattern:
        tail, head = pattern.split("->", 1)
        head, hash_, lane = head.partition("#")
        found = _nodes(fabric, tail)[fabric.src] & _nodes(fabric, head)[fabric.dst]
        if hash_:
            lanes, _ = lane_numbers(fabric)
            found &= np.array([re.match(translate(lane), str(number)) is not None for number in lanes.tolist()])
    else:
        nodes = _nodes(fabric, pattern)
        found = nodes[fabric.src] | nodes[fabric.dst]
    if not found.any():
        raise InputError(_nothing(fabric, pattern))
    return np.flatnonzero(found)


def _nodes(fabric: Fabric, pattern: str) -> Bool:
    """[N] bool: nodes whose name matches."""
    match = re.compile(translate(pattern)).match
    return np.array([match(name) is not None for name in fabric.names])


def _nothing(fabric: Fabric, pattern: str) -> str:
    """The sentence for a pattern that names no link."""
    near = get_close_matches(pattern, fabric.names, 3, 0.6) if "->" not in pattern else _near_links(fabric, pattern)
    examples = near or [fabric.link_name(fabric.links - 1), fabric.names[-1]]
    hint = "did you mean" if near else "names look like"
    return f'no link or node is named "{pattern}": {hint} ' + " or ".join(f'"{name}"' for name in examples)


def _near_links(fabric: Fabric, pattern: str) -> list[str]:
    """Real links near a name: the links of its tail where that exists, else of near tails."""
    tail = pattern.split("->")[0]
    tails = get_close_matches(tail, fabric.names, 3, 0.6)
    nodes = [fabric.names.index(name) for name in tails]
    links = np.flatnonzero(np.isin(fabric.src, nodes))
    return get_close_matches(pattern, [fabric.link_name(int(link)) for link in links], 3, 0.6)
