"""A packet simulator of switches that pause, for the tests: output queues first in, first out, counts by input link.

As uet-htsim's lossless queues: the head of a link counts what came over it and waits there; above `high` bytes it has
the link paused, below `low` it lets it go on. A pause takes effect a link's latency later, after the packet under way.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

import numpy as np

from fabsim.routing import Routes
from fabsim.topology import Fabric

LEAVES, ARRIVES, PAUSES = range(3)


def packets(fabric: Fabric, routes: Routes, size: float, mtu: float, *, high: float, low: float) -> np.ndarray:
    """[F] s at which the last packet of each flow is at its receiver. Single paths; all start at time zero, at line
    rate."""
    paths = [[int(link) for link in path[0] if link >= 0] for path in routes.path]
    count, links = int(np.ceil(size / mtu)), fabric.links
    waiting: list[deque[Any]] = [deque() for _ in range(links)]  # (flow, hop) of each packet
    busy, paused, wants = ([False] * links for _ in range(3))
    held, got, done = [0.0] * links, [0] * len(paths), np.zeros(len(paths))
    events: list[Any] = []
    number = 0

    def later(time: float, what: int, link: int, item: Any = None) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (time, number, what, link, item))

    def send(time: float, link: int) -> None:
        if waiting[link] and not busy[link] and not paused[link]:
            busy[link] = True
            later(time + mtu / fabric.capacity[link], LEAVES, link)

    def count_down(time: float, link: int) -> None:
        held[link] -= mtu
        if wants[link] and held[link] < low:
            wants[link] = False
            later(time + fabric.latency[link], PAUSES, link, False)

    def arrive(time: float, link: int, flow: int, hop: int) -> None:
        if hop == len(paths[flow]):
            got[flow] += 1
            done[flow] = time
            return
        held[link] += mtu
        if held[link] > high and not wants[link]:
            wants[link] = True
            later(time + fabric.latency[link], PAUSES, link, True)
        waiting[paths[flow][hop]].append((flow, hop))
        send(time, paths[flow][hop])

    for flow, path in enumerate(paths):
        waiting[path[0]].extend([(flow, 0)] * count)
        send(0.0, path[0])
    while events:
        time, _, what, link, item = heapq.heappop(events)
        if what == PAUSES:
            paused[link] = item
        elif what == ARRIVES:
            arrive(time, link, *item)
        else:
            busy[link] = False
            flow, hop = waiting[link].popleft()
            if hop:
                count_down(time, paths[flow][hop - 1])
            later(time + fabric.latency[link], ARRIVES, link, (flow, hop + 1))
        send(time, link)
    assert got == [count] * len(paths)
    return done
