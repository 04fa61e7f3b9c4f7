"""What a split brings to each link, without a run."""

from __future__ import annotations

import numpy as np

from fabsim.routing.routes import Routes
from fabsim.typing import Float


def link_load(routes: Routes, demand: Float, links: int) -> Float:
    """[L] what crosses each link, for demands [F]."""
    used = routes.path >= 0
    share = np.broadcast_to((demand[:, None] * routes.weight)[:, :, None], routes.path.shape)
    return np.bincount(routes.path[used], weights=share[used], minlength=links).astype(float)


def utilisation(routes: Routes, demand: Float, capacity: Float) -> Float:
    """[L] load over capacity of each link: seconds at line rate for bytes, a fraction for bytes per second. 0 where
    nothing crosses."""
    load = link_load(routes, demand, len(capacity))
    return np.divide(load, capacity, out=np.zeros_like(load), where=load > 0)
