"""Several fabrics, the sites, joined by long-haul links between border switches.

The uppermost switches of a site (spines, cores, routers of a torus) have cables to its border switches, and the border
switches of two sites have long-haul links to each other, by one route or several. Where hosts have a port into each of
several planes, planes have borders of their own and share none.

Order of nodes: hosts, site by site ("h0", "h1", ...: numbered through), then the switches of each site ("site0.leaf1"),
then the borders of each site ("border0", or "p3.border0" where there are planes; numbered through). Order of links:
those of each site as they stand in it, then the cables to the borders, then the long-haul links, by pair of sites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from fabsim.errors import InputError
from fabsim.topology.graph import Fabric
from fabsim.topology.wiring import BORDER, INSIDE, Block, cable, check_numbers, grid
from fabsim.typing import Float, Int
from fabsim.units import FIBRE_DELAY

KM = 1e3 * FIBRE_DELAY

DISTANCES = {"fairwater": 1127 * KM, "campus": 2 * KM}
"""Seconds, one way, of routes that are known. `fairwater`: Mount Pleasant, Wisconsin, to Fayetteville, Georgia, about
700 miles (Microsoft, 2025, of its two Fairwater data centres); fibres are rarely that straight. `campus`: buildings
within 2 km (Oracle, 2025, of Zettascale10). Capacities are not published."""


@dataclass(frozen=True)
class Site:
    """One of the fabrics.

    Attributes:
        fabric: by itself.
        planes: in how many planes its hosts have ports; the pods of its switches.
        switch_latency: s that its uppermost switches add.
    """

    fabric: Fabric
    planes: int = 1
    switch_latency: float = 0.0


@dataclass(frozen=True)
class Border:
    """The border switches of each site.

    Attributes:
        switches: of each site (of each plane, where there are planes).
        links: parallel cables from each uppermost switch to each of them.
        rate: bytes per second of each of these cables; None: as fast as the fastest port of a host of the site.
        latency: s of each of these cables; None: as long as the longest cable of a host of the site.
        switch_latency: s that a border switch adds.
        buffer: bytes of each output queue of a border switch; NaN: derived later.
    """

    switches: int = 1
    links: int = 1
    rate: float | None = None
    latency: float | None = None
    switch_latency: float = 0.0
    buffer: float = nan


@dataclass(frozen=True)
class Route:
    """Long-haul links between two sites.

    Attributes:
        between: the sites.
        latency: s of each link, one way.
        rate: bytes per second of each link, each way.
        links: parallel links between each border switch and its counterpart at the other site.
    """

    between: tuple[int, int]
    latency: float
    rate: float
    links: int = 1


def join(sites: Sequence[Site], routes: Sequence[Route], border: Border) -> Fabric:
    """One fabric of several. The pod of a border is -1.

    Raises InputError for fewer than two sites, sites with different planes, a route between sites that are not there,
    sites that no route joins, and numbers out of range.
    """
    _check(sites, routes, border)
    fabrics = [site.fabric for site in sites]
    hosts = [fabric.hosts for fabric in fabrics]
    switches = [len(fabric.names) - fabric.hosts for fabric in fabrics]
    first, borders = sum(hosts) + sum(switches), sites[0].planes * border.switches
    place = [
        np.concatenate([sum(hosts[:i]) + np.arange(hosts[i]), sum(hosts) + sum(switches[:i]) + np.arange(switches[i])])
        for i in range(len(sites))
    ]
    count, number = len(sites) * borders, np.arange(len(sites))

    def nodes(name: str, more: Int) -> Int:
        """[N] of hosts, switches and borders."""
        columns = [getattr(fabric, name) for fabric in fabrics]
        parts = [x[:n] for x, n in zip(columns, hosts, strict=True)] + [
            x[n:] for x, n in zip(columns, hosts, strict=True)
        ]
        return np.concatenate([*parts, more])

    blocks = [
        block for i, site in enumerate(sites) for block in _to_borders(site, place[i], first + i * borders, border)
    ]
    for route in routes:
        one, other = (first + i * borders for i in route.between)
        at, _ = grid(borders, route.links)
        blocks += cable(one + at, other + at, route.rate, route.latency, (border.switch_latency, border.switch_latency))
    src, dst, capacity, latency = (np.concatenate(column) for column in zip(*blocks, strict=True))

    def links(name: str, more: Float) -> Float:
        """[L] of the sites and of what joins them."""
        return np.concatenate([*(getattr(fabric, name) for fabric in fabrics), more])

    return Fabric(
        names=tuple(_names(sites, border)),
        hosts=sum(hosts),
        tier=nodes("tier", np.full(count, BORDER)),
        pod=nodes("pod", np.full(count, -1)),
        src=np.concatenate([*(at[fabric.src] for at, fabric in zip(place, fabrics, strict=True)), src]),
        dst=np.concatenate([*(at[fabric.dst] for at, fabric in zip(place, fabrics, strict=True)), dst]),
        capacity=links("capacity", capacity),
        latency=links("latency", latency),
        buffer=links("buffer", np.where(src >= first, border.buffer, nan)),
        speed=links("speed", np.ones(len(src))),
        site=np.concatenate([np.repeat(number, hosts), np.repeat(number, switches), np.repeat(number, borders)]),
    )


def only(fabric: Fabric, site: int) -> Fabric:
    """The fabric in which nothing lives but one site, its borders left out."""
    assert fabric.site is not None
    inside = (fabric.site == site) & (fabric.tier != BORDER)
    mine = inside[fabric.src] & inside[fabric.dst]
    return replace(fabric, capacity=fabric.capacity * mine, speed=fabric.speed * mine)


def long_haul(fabric: Fabric) -> Int:
    """The links that lead from one site to another, by number."""
    none = np.zeros(0, int)
    return none if fabric.site is None else np.flatnonzero(fabric.site[fabric.src] != fabric.site[fabric.dst])


def _names(sites: Sequence[Site], border: Border) -> list[str]:
    """[N] names of hosts, switches and borders."""
    names = [f"h{host}" for host in range(sum(site.fabric.hosts for site in sites))]
    for i, site in enumerate(sites):
        names += [f"site{i}.{name}" for name in site.fabric.names[site.fabric.hosts :]]
    for i, site in enumerate(sites):
        planes = [f"p{plane}." for plane in range(site.planes)] if site.planes > 1 else [""]
        names += [f"{p}border{i * border.switches + at}" for p in planes for at in range(border.switches)]
    return names


def _to_borders(site: Site, place: Int, first: int, border: Border) -> list[Block]:
    """The cables between the uppermost switches of a site and its borders; those of a plane to those of it.

    place: [nodes] of the site in the whole; first: its first border.
    """
    fabric = site.fabric
    up = (fabric.src < fabric.hosts) & (fabric.tier[fabric.dst] != INSIDE)
    rate = float(fabric.capacity[up].max()) if border.rate is None else border.rate
    latency = float(fabric.latency[up].max()) if border.latency is None else border.latency
    tier = np.where(fabric.tier == INSIDE, 0, fabric.tier)
    top = np.flatnonzero(tier == tier.max())
    plane = fabric.pod[top] if site.planes > 1 else np.zeros(len(top), int)
    switch, at, _ = grid(len(top), border.switches, border.links)
    high = first + plane[switch] * border.switches + at
    return cable(place[top[switch]], high, rate, latency, (site.switch_latency, border.switch_latency))


def _check(sites: Sequence[Site], routes: Sequence[Route], border: Border) -> None:
    """Raises InputError with all sentences at once."""
    wrong = []
    if len(sites) < 2:
        wrong.append(f"sites: {len(sites)} given, at least 2 are needed")
    if len({site.planes for site in sites}) > 1:
        given = ", ".join(str(site.planes) for site in sites)
        wrong.append(f"sites: they have different numbers of planes ({given}), and planes are joined each to its like")
    for i, route in enumerate(routes):
        one, other = route.between
        if not (0 <= one < len(sites) and 0 <= other < len(sites)) or one == other:
            wrong.append(f"routes[{i}]: between {one} and {other}; give two of the sites 0 to {len(sites) - 1}")
    if not wrong and apart(len(sites), [route.between for route in routes]):
        far = ", ".join(map(str, apart(len(sites), [route.between for route in routes])))
        wrong.append(f"routes: none leads from site 0 to site {far}; give one")
    if wrong:
        raise InputError(wrong)
    counts = {"border switches": border.switches, "border links": border.links}
    counts |= {f"routes[{i}] links": route.links for i, route in enumerate(routes)}
    rates = {"border rate": border.rate, **{f"routes[{i}] rate": route.rate for i, route in enumerate(routes)}}
    times = {"border latency": border.latency, "border switch latency": border.switch_latency}
    times |= {f"routes[{i}] latency": route.latency for i, route in enumerate(routes)}
    rates, times = ({name: x for name, x in column.items() if x is not None} for column in (rates, times))
    check_numbers(counts, rates, times, border.buffer)


def apart(sites: int, routes: Sequence[tuple[int, int]]) -> list[int]:
    """The sites that no chain of routes joins to the first."""
    reached = {0}
    while more := {b for pair in routes for a, b in (pair, pair[::-1]) if a in reached} - reached:
        reached |= more
    return sorted(set(range(sites)) - reached)
