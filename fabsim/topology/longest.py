"""The longest routes of a fabric, in links and in seconds."""

from __future__ import annotations

import numpy as np

from fabsim.topology.graph import Fabric
from fabsim.typing import Float, Int

_CHUNK = 64  # sources at once: 64 x 250,000 links is 128 MB
_SAME = 15  # digits behind the point: sums of latencies that differ by less than a femtosecond are the same


def longest_in_use(fabric: Fabric, paths: Int) -> tuple[int, float]:
    """The same as `longest_route`, or, where one of these paths [P, H] (right-aligned, -1 in front) is longer, that."""
    links = (paths >= 0).sum(axis=1)
    latency = np.where(paths >= 0, fabric.latency[paths], 0.0).sum(axis=1)
    last = np.lexsort((latency, links) if fabric.site is None else (latency,))[-1:]  # as below
    used = zip(links[last].tolist(), latency[last].tolist(), strict=True)
    measures = slice(0 if fabric.site is None else 1, None)
    return max([longest_route(fabric), *used], key=lambda route: (route[0], round(route[1], _SAME))[measures])


def longest_route(fabric: Fabric) -> tuple[int, float]:
    """Links and one-way latency (s) of the longest of the shortest routes between any two hosts.

    Hosts that nothing connects are left out; a single host gives (0, 0).
    """
    alive = fabric.capacity > 0
    up = alive & (fabric.src < fabric.hosts)
    down = alive & (fabric.dst < fabric.hosts)
    inner = alive & ~up & ~down
    direct = up & (fabric.dst < fabric.hosts)
    longest = max([(1, float(lat)) for lat in fabric.latency[direct]], default=(0, 0.0))
    edges, rise = _largest_by(fabric.dst[up & ~direct], fabric.latency[up & ~direct])
    ends, fall = _largest_by(fabric.src[down & ~direct], fabric.latency[down & ~direct])
    for begin in range(0, len(edges), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        steps, latency = _from_sources(fabric, edges[part], inner)
        links = np.where(steps[:, ends] < 0, -1, steps[:, ends] + 2)
        total = rise[part, None] + latency[:, ends] + fall
        lonely = (edges[part, None] == ends) & (_hosts_below(fabric, ends, down) < 2)
        links[lonely] = -1
        if fabric.site is not None:  # the farthest is not the one with the most switches
            at = np.unravel_index(np.where(links > 0, total, -1.0).argmax(), links.shape)
            longest = max(longest, (int(links[at]), float(total[at])), key=lambda route: route[1])
            continue
        most = int(links.max(initial=-1))
        if most > 0:
            longest = max(longest, (most, float(total[links == most].max())))
    return longest


def _largest_by(node: Int, latency: Float) -> tuple[Int, Float]:
    """The nodes that occur, and the largest latency at each."""
    nodes, row = np.unique(node, return_inverse=True)
    most = np.zeros(len(nodes))
    np.maximum.at(most, row, latency)
    return nodes, most


def _hosts_below(fabric: Fabric, ends: Int, down: np.ndarray) -> Int:
    """How many hosts hang below each of the switches `ends`."""
    pairs = np.unique(np.stack([fabric.src[down], fabric.dst[down]]), axis=1)
    return np.bincount(pairs[0], minlength=len(fabric.names))[ends]


def _from_sources(fabric: Fabric, sources: Int, inner: np.ndarray) -> tuple[Int, Float]:
    """Fewest links from each source switch to each node (-1: none), and the largest latency over such routes."""
    tail, head, wire = fabric.src[inner], fabric.dst[inner], fabric.latency[inner]
    steps = np.full((len(sources), len(fabric.names)), -1)
    latency = np.zeros(steps.shape)
    rows = np.arange(len(sources))
    steps[rows, sources] = 0
    layer = 0
    while (steps == layer).any():
        row, link = np.nonzero((steps[:, tail] == layer) & (steps[:, head] < 0))
        steps[row, head[link]] = layer + 1
        np.maximum.at(latency, (row, head[link]), latency[row, tail[link]] + wire[link])
        layer += 1
    return steps, latency
