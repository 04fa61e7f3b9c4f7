"""Traffic between sites: who sends to hosts that are far. Hosts are numbered through, site by site."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabsim.errors import InputError
from fabsim.typing import Int
from fabsim.workload.assemble import assemble, check
from fabsim.workload.flows import Flows
from fabsim.workload.traffic import incast


def permutation_across(sites: Sequence[int], size: float, *, seed: int, start: float = 0.0) -> Flows:
    """Every host sends to one host of another site, and receives from one.

    `sites`: hosts of each site. Those of each site are shuffled, and all stand in a circle, site after site; each sends
    to the one that is as far ahead as the largest site has hosts. For two equal sites that is a uniform draw.
    Raises InputError for a single site, and where one has more hosts than all others.
    """
    hosts, largest = sum(sites), max(sites, default=0)
    if len(sites) < 2 or 2 * largest > hosts:
        raise InputError(f"hosts of a site: one has {largest} of {hosts}, more than all others; not all can send away")
    circle = _shuffled(sites, np.random.default_rng(seed))
    target = np.empty(hosts, int)
    target[circle] = np.roll(circle, -largest)
    return check(assemble(np.arange(hosts), target, size, start=start), hosts)


def incast_from(
    sites: Sequence[int], size: float, *, near: int, far: int, receiver: int = 0, seed: int = 0, start: float = 0.0
) -> Flows:
    """An incast of so many senders of the receiver's own site, and so many of others, drawn at random."""
    hosts = sum(sites)
    of_host = np.repeat(np.arange(len(sites)), sites)
    own = of_host == of_host[receiver]
    pools = np.setdiff1d(np.flatnonzero(own), [receiver]), np.flatnonzero(~own)
    for count, pool, where in ((near, pools[0], "the receiver's site"), (far, pools[1], "other sites")):
        if count > len(pool):
            raise InputError(f"senders: {count} of {where} asked for, and there are {len(pool)}")
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(pool)[:count] for count, pool in zip((near, far), pools, strict=True)]
    return incast(hosts, size, senders=np.concatenate(drawn).tolist(), receiver=receiver, start=start)


def _shuffled(sites: Sequence[int], rng: np.random.Generator) -> Int:
    """All hosts, those of each site in another order."""
    ends = np.cumsum(sites)
    return np.concatenate(
        [rng.permutation(np.arange(end - count, end)) for end, count in zip(ends, sites, strict=True)]
    )
