"""The lines of `fabsim check` about sites and the routes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.topology import Fabric, long_haul
from fabsim.topology.servers import inner_links
from fabsim.units import FIBRE_DELAY, show_rate, show_size, show_time

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network


def site_lines(net: Network) -> list[tuple[str, str]]:
    """Figures of each site by itself, and the links between each two; none where there is one fabric."""
    return [*_sites(net), *_routes(net.fabric)]


def _sites(net: Network) -> list[tuple[str, str]]:
    fabric, lines = net.fabric, []
    far = long_haul(fabric)
    for number, own in enumerate(net.baseline.own):
        assert fabric.site is not None
        mine = fabric.site == number
        ports = (fabric.src < fabric.hosts) & ~inner_links(fabric)
        hosts = float(fabric.capacity[ports & mine[fabric.src]].sum())
        away = float(fabric.capacity[far][mine[fabric.src[far]]].sum())
        ratio = f"{hosts / away:.3g} to 1" if away else "none lives"
        text = f"{int(mine[: fabric.hosts].sum())} hosts, base RTT {show_time(own.rtt)}, BDP {show_size(own.bdp)}; "
        lines.append((f"site {number}", f"{text}hosts over long-haul links: {ratio}"))
    return lines


def _routes(fabric: Fabric) -> list[tuple[str, str]]:
    if fabric.site is None:
        return []
    far, lines = long_haul(fabric), []
    ends = np.stack([fabric.site[fabric.src[far]], fabric.site[fabric.dst[far]]], 1)
    for one, other in np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0).tolist():
        links = far[(ends == (one, other)).all(1)]
        kinds = np.unique(np.stack([fabric.latency[links], fabric.capacity[links]], 1), axis=0, return_counts=True)
        each = [
            f"{count} of {show_rate(rate)} over {show_time(latency)} ({latency / FIBRE_DELAY / 1e3:,.4g} km)"
            for (latency, rate), count in zip(kinds[0].tolist(), kinds[1].tolist(), strict=True)
        ]
        lines.append(("long haul", f"site {one} to site {other}: {', '.join(each)}"))
    return lines
