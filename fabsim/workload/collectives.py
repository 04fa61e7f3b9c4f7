"""Ring all-reduce over groups of hosts: as explicit steps, or as one coupled flow a rank.

A ring of N ranks reduces S bytes in 2 (N - 1) steps; in each, every rank sends a chunk of S / N to the next. S is
padded to a multiple of N, so that all chunks are alike. Both forms take groups of any size from 2, which may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite

import numpy as np

from fabsim.errors import InputError
from fabsim.typing import Int
from fabsim.workload.assemble import assemble, check, check_ranks, merge
from fabsim.workload.flows import Flows

Groups = Sequence[Sequence[int]] | None


def ring_steps(hosts: int, size: float, *, groups: Groups = None, start: float = 0.0) -> Flows:
    """The ring step by step: a rank sends a chunk when its own last one and that of the rank before it have arrived.

    `size` in bytes a rank; `groups`: host numbers of each ring in order (None: one ring of all hosts). Flows are in
    the order of group, rank, step. Raises InputError for a group of one, a host twice or one that is not there.
    """
    return merge([_steps(ring, _chunk(size, ring), start, hosts) for ring in _rings(hosts, groups)])


def ring_coupled(hosts: int, size: float, *, grain: float = 0.0, groups: Groups = None, start: float = 0.0) -> Flows:
    """The ring as one flow a rank of 2 (N - 1) S / N bytes, coupled to the flow of the rank before.

    A rank sends its own chunk at once, and then what comes in, released in grains of `grain` bytes: S / N is the
    step-by-step ring, 0 the perfect stream. Raises InputError as `ring_steps`, and for a grain above S / N, for which
    every rank would wait for the one before it.
    """
    return merge([_coupled(ring, _chunk(size, ring), grain, start, hosts) for ring in _rings(hosts, groups)])


def _rings(hosts: int, groups: Groups) -> list[Int]:
    """Checked groups; one of all hosts where none is given."""
    if groups is None:
        groups = [range(hosts)]
    return [check_ranks(group, hosts, f"ring {number}") for number, group in enumerate(groups)]


def _chunk(size: float, ring: Int) -> float:
    """Bytes of one chunk."""
    if not (isfinite(size) and size >= 0):
        raise InputError(f"size: {size:g} given, must be a number of bytes, 0 or more")
    return float(ceil(size / len(ring)))


def _steps(ring: Int, chunk: float, start: float, hosts: int) -> Flows:
    """Flows of one ring. Trigger rank * steps + step lets that flow go; two flows of the step before fire it."""
    steps = 2 * (len(ring) - 1)
    rank, step = (axis.reshape(-1) for axis in np.indices((len(ring), steps)))
    following = np.stack([rank, (rank + 1) % len(ring)], -1) * steps + step[:, None] + 1
    flows = assemble(
        ring[rank], ring[(rank + 1) % len(ring)], chunk,
        start=np.where(step == 0, start, 0.0),
        trigger=np.where(step > 0, rank * steps + step, -1),
        need=2 * (step > 0),
        fires=np.where(step[:, None] < steps - 1, following, -1),
    )  # fmt: skip
    return check(flows, hosts)


def _coupled(ring: Int, chunk: float, grain: float, start: float, hosts: int) -> Flows:
    """Flows of one ring, each led by the one before."""
    if not 0 <= grain <= chunk:
        raise InputError(f"grain: {grain:g} bytes given, must be from 0 to a chunk, which is {chunk:g} bytes here")
    rank = np.arange(len(ring))
    flows = assemble(
        ring, np.roll(ring, -1), 2 * (len(ring) - 1) * chunk,
        start=start, leader=(rank - 1) % len(ring), head=chunk, grain=grain,
    )  # fmt: skip
    return check(flows, hosts)
