"""Pauses: when a link may send, and what its head holds of what came over it."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from fabsim.engine.across import total
from fabsim.engine.faults import Now
from fabsim.engine.feedback import heard
from fabsim.engine.layers import Layers, by_place
from fabsim.engine.paths import by_lane
from fabsim.engine.setup import Setup
from fabsim.engine.state import Fluid, State
from fabsim.models.pfc import PauseState, PfcQueue
from fabsim.models.queue import Signal
from fabsim.models.quotient import quotient
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

    down: [F, N, K] units that wait at the last port; leaves: [L + 1] units that leave each link.
    """
    if not isinstance(s.queue, PfcQueue) or state.pause is None or down is None:
        return None, s.loss
    held = by_ingress(s, waiting, down)
    coming = leaves if s.loss is None else leaves * (1.0 - s.loss)
    over = s.queue.overflow(state.pause, held, coming)
    after = s.queue.watch(state.pause, held, state.step)
    share = quotient(leaves - coming + over, jnp.where(leaves > 0, leaves, 1.0))
    return dataclasses.replace(after, came=coming - over), share


def at_down_links(s: Setup, state: State, signal: Signal, layers: Layers | None, events: Now | None) -> Array | None:
    """[F, N, K] what waits at the receivers' down links after this step, by lane: there the fluid has but one queue for
    the lanes of a plane, which have come over different links. None where nobody pauses."""
    last = state.last
    if last is None or layers is None:
        return None
    seen = by_lane(s, jnp.stack([signal.keep, layers.gone, layers.place], -1))
    leave, into = by_place(seen[:, 1:2], seen[:, 2:], s.layers)
    stays = (last.down + last.onto[:, None] * seen[:, :1] * into) * (1.0 - leave)
    if events is None:
        return stays
    return stays * (1.0 - by_lane(s, events.given_up[:, None]))


def by_ingress(s: Setup, waiting: Fluid, down: Array) -> Array:
    """[L + 1] units that came over each link and wait at its head. down: [F, N, K] those that wait at the last port."""
    p = s.problem
    hops, flows, _, _ = waiting.fabric.shape
    here = jnp.concatenate([waiting.data(s.layers).fabric[:, :, 0], down.sum(1)[None]])
    entered = jnp.where(jnp.arange(hops + 1)[:, None, None] == p.first, here, 0.0)
    onward = (here - entered)[1:, :, None]
    held = load(p.at, onward, jnp.zeros_like(waiting.egress[:, :1]), p.queues)[:, 0]
    return total(p, held.at[p.port_link].add(entered.sum(0).reshape(flows, p.planes, -1).sum(-1)))
