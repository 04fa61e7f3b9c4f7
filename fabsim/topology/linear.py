"""What a link costs in proportion to its rate: the price list as a slope, for tuners that change rates a little.

A list has parts, and parts are whole; a gradient needs a slope. So each end of a cable counts as its share of the
cheapest transceiver that reaches, by the rate, and of a port of the cheapest switch (cost of a cage over its rate); and
the fibre likewise. Half of a cable belongs to each direction.
"""

from __future__ import annotations

import numpy as np

from fabsim.topology.graph import Fabric
from fabsim.topology.prices import Prices
from fabsim.typing import Float
from fabsim.units import FIBRE_DELAY


def cost_per_rate(fabric: Fabric, prices: Prices, switching: Float | float = 0.0) -> tuple[Float, list[str]]:
    """[L] cost of one byte per second of each link, in the currency of the list, and sentences about what it lacks.

    switching: seconds that each node adds to the links that leave it, which are no wire. NaN where no part reaches.
    """
    added = np.broadcast_to(np.asarray(switching, float), (len(fabric.names),))
    wire = fabric.latency - np.where(fabric.src < fabric.hosts, 0.0, added[fabric.src])
    metres = np.round(np.maximum(wire, 0.0) / FIBRE_DELAY)
    port = min(switch.cost / switch.ports / switch.speed for switch in prices.switches)
    ports = (fabric.src >= fabric.hosts).astype(float) + (fabric.dst >= fabric.hosts)
    price = np.full(fabric.links, np.nan)
    missing = []
    for length in np.unique(metres):
        reaching = [optic for optic in prices.optics if optic.reach >= length]
        if not reaching:
            missing.append(f"{length / 1e3:.3g} km is beyond the reach of all optics")
            continue
        ends = min(
            2 * optic.cost / optic.speed + _fibre(prices, optic.pairs / optic.speed, length) for optic in reaching
        )
        price[metres == length] = ends
    return 0.5 * (price + ports * port), missing


def _fibre(prices: Prices, pairs: float, metres: float) -> float:
    return pairs * metres / 1e3 * prices.fibre
