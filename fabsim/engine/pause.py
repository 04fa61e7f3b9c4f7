"""Pauses: when a link may send, and what its head holds of what came over it."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from fabsim.engine.across import total
from fabsim.engine.faults import Now
from fabsim.engine.feedback import heard
from fabsim.engine.setup import Setup
from fabsim.engine.state import Fluid, State
from fabsim.models.pfc import PauseState, PfcQueue
from fabsim.models.queue import Signal
from fabsim.typing import Array
from fabsim_kernels.load import load


def opening(s: Setup, state: State) -> Array | None:
    """[L + 1] the share of this step in which each link may send; None where nobody pauses.

    What leaves in a step arrives in the next: that one of the delay's steps is over already.
    """
    if not isinstance(s.queue, PfcQueue) or state.pause is None:
        return None
    return 1.0 - heard(state.pause.ring[:, None], state.step, s.queue.delay - 1.0)[0]


def ingress(
    s: Setup, state: State, waiting: Fluid, down: Array | None, leaves: Array
) -> tuple[PauseState | None, Array | None]:
    """What the heads of links want after this step, and [L + 1] the share of what leaves that is lost on its way: at
    random, and where there is no headroom for it.

    down: [F, K] units that wait at the last port; leaves: [L + 1] units that leave each link.
    """
    if not isinstance(s.queue, PfcQueue) or state.pause is None or down is None:
        return None, s.loss
    held = by_ingress(s, waiting, down)
    coming = leaves if s.loss is None else leaves * (1.0 - s.loss)
    over = s.queue.overflow(state.pause, held, coming)
    after = s.queue.watch(state.pause, held, state.step)
    share = (leaves - coming + over) / jnp.where(leaves > 0, leaves, 1.0)
    return dataclasses.replace(after, came=coming - over), share


def at_down_links(s: Setup, state: State, signal: Signal, events: Now | None) -> Array | None:
    """[F, K] what waits at the receivers' down links after this step, by lane: there the fluid has but one queue for
    the lanes of a plane, which have come over different links. None where nobody pauses."""
    last = state.last
    if last is None:
        return None
    seen = jnp.stack([signal.keep, signal.leave], -1)[s.problem.at.last]
    keep, leave = jnp.moveaxis(jnp.repeat(seen, last.down.shape[1] // s.problem.planes, 1), -1, 0)
    stays = (last.down + last.onto * keep) * (1.0 - leave)
    if events is None:
        return stays
    return stays * (1.0 - jnp.repeat(events.given_up[s.problem.at.last], stays.shape[1] // s.problem.planes, 1))


def by_ingress(s: Setup, waiting: Fluid, down: Array) -> Array:
    """[L + 1] units that came over each link and wait at its head. down: [F, K] those that wait at the last port."""
    p = s.problem
    hops, flows, _, _ = waiting.fabric.shape
    here = jnp.concatenate([waiting.fabric[:, :, 0], down[None]])
    entered = jnp.where(jnp.arange(hops + 1)[:, None, None] == p.first, here, 0.0)
    onward = (here - entered)[1:, :, None]
    held = load(p.at, onward, jnp.zeros_like(waiting.egress[:, :1]), p.queues)[:, 0]
    return total(p, held.at[p.port_link].add(entered.sum(0).reshape(flows, p.planes, -1).sum(-1)))
