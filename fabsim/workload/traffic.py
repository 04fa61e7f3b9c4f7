"""Traffic patterns: permutation, shift, incast, all-to-all. Sizes in bytes, times in seconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabsim.errors import InputError
from fabsim.typing import Int
from fabsim.workload.assemble import assemble, check, check_ranks
from fabsim.workload.flows import Flows


def permutation(hosts: int, size: float, *, seed: int, start: float = 0.0) -> Flows:
    """Every host sends to one other and receives from one other: a random permutation without fixed points."""
    if hosts < 2:
        raise InputError(f"a permutation needs at least 2 hosts, {hosts} given")
    return check(assemble(np.arange(hosts), _derangement(hosts, seed), size, start=start), hosts)


def _derangement(count: int, seed: int) -> Int:
    """A uniformly drawn permutation in which nobody keeps his place: drawn until it is one, e times on average."""
    rng = np.random.default_rng(seed)
    while True:
        drawn = rng.permutation(count)
        if (drawn != np.arange(count)).all():
            return drawn


def shift(hosts: int, size: float, *, by: int, start: float = 0.0) -> Flows:
    """Host i sends to host i + by, around the end."""
    if hosts < 2 or by % hosts == 0:
        raise InputError(f"a shift by {by} over {hosts} hosts sends each host to itself: give another one")
    src = np.arange(hosts)
    return check(assemble(src, (src + by) % hosts, size, start=start), hosts)


def incast(
    hosts: int, size: float, *, senders: int | Sequence[int], receiver: int = 0, seed: int = 0, start: float = 0.0
) -> Flows:
    """Many senders, one receiver. A number of senders is drawn at random from the other hosts."""
    if isinstance(senders, int):
        if not 1 <= senders < hosts:
            raise InputError(f"senders: {senders} given, from 1 to {hosts - 1} are possible with {hosts} hosts")
        others = np.setdiff1d(np.arange(hosts), [receiver])
        senders = np.random.default_rng(seed).permutation(others)[:senders].tolist()
    return check(assemble(senders, receiver, size, start=start), hosts)


def all_to_all(
    hosts: int, size: float, *, window: int | None = None, ranks: Sequence[int] | None = None, start: float = 0.0
) -> Flows:
    """Every rank sends `size` to every other, in shifted order (the next rank first), `window` flows at a time.

    A rank's next flow starts when it knows that one of its earlier ones has been acknowledged. `ranks`: hosts that
    take part (all, where None); `window` None: all at once.
    """
    group = check_ranks(range(hosts) if ranks is None else ranks, hosts, "the all-to-all")
    others = len(group) - 1
    if window is not None and window < 1:
        raise InputError(f"window: {window} given, at least 1 is needed")
    rank, turn = (axis.reshape(-1) for axis in np.indices((len(group), others)))
    need = np.maximum(turn - min(window or others, others) + 1, 0)
    flows = assemble(
        group[rank], group[(rank + turn + 1) % len(group)], size,
        start=np.where(need > 0, 0.0, start),
        trigger=np.where(need > 0, rank, -1),
        need=need,
        fires=rank if need.any() else -1,
        fires_at_sender=True,
    )  # fmt: skip
    return check(flows, hosts)
