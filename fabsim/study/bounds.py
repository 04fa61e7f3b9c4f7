"""How good a split can be at all: linear programs over the paths given, with a certificate and a price for each link.

Demands are bytes (then a utilisation is the seconds that the busiest link needs at line rate: no run with this split
ends sooner, unless what is trimmed on the way is sent again by other paths) or bytes per second (then it is a fraction,
and 1 is full).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from fabsim.errors import Stopped
from fabsim.routing.routes import Routes
from fabsim.typing import Float, Int


@dataclass(frozen=True)
class Bound:
    """The optimum over all splits of the paths given.

    Attributes:
        utilisation: load over capacity of the busiest link, as small as it can be.
        split: [F, K] shares that reach it.
        price: [L] share of the optimum that each link sets; they sum to 1. A link that is 1 % faster lowers the
            optimum by price x 1 %.
        certificate: what no split can go below, by the prices alone (weak duality): it equals `utilisation` but for
            rounding, and needs no trust in the solver.
    """

    utilisation: float
    split: Float
    price: Float
    certificate: float

    @property
    def concurrent(self) -> float:
        """The largest factor by which all demands can grow together before a link is full (maximum concurrent flow:
        Shahrokhi and Matula, J. ACM 37(2), 1990): scaling demands scales loads, so it is 1 / utilisation."""
        return 1.0 / self.utilisation


def min_max_utilisation(routes: Routes, demand: Float, capacity: Float) -> Bound:
    """The split that keeps the busiest link as idle as possible: a path-split linear program, by HiGHS.

    minimise u, with sum over k of x[f, k] = 1, x >= 0, and for each link the load of x at most u times its capacity.
    (Ahuja, Magnanti, Orlin, Network Flows, 1993, chapter 17, in path form.)

    Args:
        routes: lanes with weight 0 are no choice: give an equal split over all that may be used.
        demand: [F], not all zero.
        capacity: [L] bytes per second.

    Raises:
        Stopped: HiGHS gave up, with its own words.
    """
    flow, lane = np.nonzero((routes.weight > 0) & (demand > 0)[:, None])
    path = routes.path[flow, lane]
    column, hop = np.nonzero(path >= 0)
    link, row = np.unique(path[column, hop], return_inverse=True)
    paths, some = len(flow), float(demand.max())
    need, room = demand / some, capacity[link] / capacity[link].max()
    entries = np.concatenate([need[flow[column]], -room])
    places = np.concatenate([row, np.arange(len(link))]), np.concatenate([column, np.full(len(link), paths)])
    loads = coo_array((entries, places), shape=(len(link), paths + 1))
    senders, at = np.unique(flow, return_inverse=True)
    whole = coo_array((np.ones(paths), (at, np.arange(paths))), shape=(len(senders), paths + 1))
    cost = np.append(np.zeros(paths), 1.0)
    found = linprog(cost, loads.tocsr(), np.zeros(len(link)), whole.tocsr(), np.ones(len(senders)), method="highs")
    if found.x is None:
        raise Stopped(f"the linear program has no answer: {found.message}")
    split = np.where(demand[:, None] > 0, 0.0, routes.weight)
    split[flow, lane] = np.maximum(found.x[:-1], 0.0)
    split /= split.sum(1, keepdims=True)
    dual = np.maximum(-found.ineqlin.marginals, 0.0)
    back = some / capacity[link].max()
    return Bound(
        utilisation=found.fun * back,
        split=split,
        price=np.bincount(link, dual * room, minlength=len(capacity)).astype(float),
        certificate=_certificate(dual / (dual * room).sum(), path, row, column, need, flow, at) * back,
    )


def _certificate(dual: Float, path: Int, row: Int, column: Int, need: Float, flow: Int, at: Int) -> float:
    """Each flow on its cheapest path under link prices whose sum over capacities is 1: no split costs less."""
    cost = np.bincount(column, dual[row], minlength=len(path))
    cheapest = np.full(at.max() + 1, np.inf)
    np.minimum.at(cheapest, at, cost * need[flow])
    return float(cheapest.sum())
