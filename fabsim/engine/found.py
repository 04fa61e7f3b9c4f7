"""What senders find out by themselves: which path lost what they miss, what their probes meet, which ports are up.

A loss is missed when the flow's recovery says so, and is then known by the path that it was lost on: a receiver names
what did arrive, and the sender knows where it sent the rest. Probes are small, weigh nothing, and are as quick as a
step: their period is long beside a round trip. The port of a NIC knows its own link, and tells its peers.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from fabsim.engine.faults import passes
from fabsim.engine.network import Missing
from fabsim.engine.setup import Setup, finds
from fabsim.engine.state import Paths
from fabsim.models.protocol import Found
from fabsim.models.quotient import quotient
from fabsim.models.recovery import RecoveryState, older
from fabsim.typing import Array
from fabsim_kernels.load import read


def miss(paths: Paths, lots: Array, left: RecoveryState | None) -> tuple[Paths, Array | None]:
    """The lanes without what is missed now, and [F, K] that; None where nothing can be. lots: [F, N] units of each;
    left: the lots without these."""
    if paths.gone is None or left is None:
        return paths, None
    some, whole = lots > 0, lots + left.gone
    part = jnp.where(some, quotient(lots, jnp.where(some, whole, 1.0)), 0.0)
    known = paths.gone * part[:, None]
    return replace(paths, gone=paths.gone - known), known.sum(-1)


def find(s: Setup, step: Array) -> Found | None:
    """What else a sender finds out in this step."""
    return Found(through(s, step), ports(s, step)) if s.finds else None


def through(s: Setup, step: Array) -> Array:
    """[F, K] share of probes that come through: by the sender's port, the fabric and the down link."""
    p, lanes = s.problem, s.share.shape[1] // s.problem.planes
    if s.faults is None and s.loss is None:
        return jnp.ones_like(s.share)
    kept = passes(s, step)
    fabric, egress = read(p.at, kept[:, None])
    return fabric[:, :, 0].prod(0) * jnp.repeat(egress[:, 0] * kept[p.port_link], lanes, -1)


def ports(s: Setup, step: Array) -> Array:
    """[F, P] 1 where the ports at both ends were up some time ago, as long as it takes to move the values."""
    p = s.problem
    if s.faults is None or not finds(s.balancer):
        return jnp.ones_like(s.rate)
    ago = s.balancer.remap / p.dt
    lives = s.faults.lives(step.astype(s.faults.begin.dtype) - ago)
    return lives[p.port_link] * lives[p.at.last]


def lose(
    s: Setup, gone: Array | None, last: Array, cut_last: Array, cut: Missing, lost: Missing | None, anew: Array | None
) -> Array | None:
    """[F, K, N] what is gone and not missed yet, after this step, in the lots of the recovery.

    last, cut_last: [F, K] units lost behind the last port, and cut there; cut: what all ports cut; lost: what all
    links lost; anew: [F] whether that begins a new lot.
    """
    if gone is None:
        return None
    now = last
    if not s.queue.trims:
        now = now + cut_last + cut.fabric.sum(0)
    if lost is not None:
        now = now + lost.fabric.sum(0)
        if lost.nic is not None:
            now = now + jnp.repeat(lost.nic, s.within.shape[1] // s.problem.planes, -1) * s.within
    if anew is not None:
        gone = older(anew, gone, 0.0, gone[..., -2:].sum(-1))
    return gone.at[..., 0].add(now)
