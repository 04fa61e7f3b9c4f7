"""What a split brings to each link, and what every split does, without a run."""

from __future__ import annotations

import numpy as np

from fabsim.routing.routes import Routes
from fabsim.typing import Float


def link_load(routes: Routes, demand: Float, links: int) -> Float:
    """[L] what crosses each link, for demands [F]."""
    used = routes.path >= 0
    share = np.broadcast_to((demand[:, None] * routes.weight)[:, :, None], routes.path.shape)
    return np.bincount(routes.path[used], weights=share[used], minlength=links).astype(float)


def certain_load(routes: Routes, demand: Float, links: int) -> Float:
    """[L] what crosses each link however flows are split over their paths: the demands [F] of those that have it on all
    of them."""
    first = routes.path[:, 0]
    certain = [(routes.path == link[:, None, None]).any(2).all(1) for link in first.T]
    crossed = np.stack(certain, axis=1) & (first >= 0)
    whole = np.broadcast_to(demand[:, None], first.shape)
    return np.bincount(first[crossed], weights=whole[crossed], minlength=links).astype(float)


def utilisation(routes: Routes, demand: Float, capacity: Float) -> Float:
    """[L] load over capacity of each link: seconds at line rate for bytes, a fraction for bytes per second. 0 where
    nothing crosses."""
    return _over(link_load(routes, demand, len(capacity)), capacity)


def certain_utilisation(routes: Routes, demand: Float, capacity: Float) -> Float:
    """[L] the same of what crosses each link however flows are split over their paths."""
    return _over(certain_load(routes, demand, len(capacity)), capacity)


def _over(load: Float, capacity: Float) -> Float:
    return np.divide(load, capacity, out=np.zeros_like(load), where=load > 0)
