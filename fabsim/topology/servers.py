"""Servers: hosts (GPUs) that have a switch of their own beside the network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fabsim.topology.graph import Fabric
from fabsim.topology.wiring import INSIDE
from fabsim.typing import Bool, Int


def only_servers(fabric: Fabric) -> Fabric:
    """The fabric in which nothing lives but the links inside servers."""
    mine = inner_links(fabric)
    return replace(fabric, capacity=fabric.capacity * mine, speed=fabric.speed * mine)


def inner_links(fabric: Fabric) -> Bool:
    """[L] whether a link leads to a switch in a server, or from one."""
    return (fabric.tier[fabric.src] == INSIDE) | (fabric.tier[fabric.dst] == INSIDE)


def within_server(fabric: Fabric, src: Int, dst: Int) -> Bool:
    """[F] whether these pairs of hosts meet at a switch in a server, over links that live."""
    lives = fabric.capacity > 0
    up = lives & (fabric.src < fabric.hosts) & (fabric.tier[fabric.dst] == INSIDE)
    down = lives & (fabric.dst < fabric.hosts) & (fabric.tier[fabric.src] == INSIDE)
    onto, off = np.full(fabric.hosts, -1), np.full(fabric.hosts, -2)
    onto[fabric.src[up]], off[fabric.dst[down]] = fabric.dst[up], fabric.src[down]
    return onto[src] == off[dst]
