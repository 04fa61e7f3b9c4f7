"""First in, first out: what stands at a port in layers by age, of which the older leave first."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fabsim.engine.faults import Now
from fabsim.engine.remade import remade
from fabsim.models.queue import NOTHING, Signal
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Layers:
    """What stands at each port by age; a layer is well mixed. N layers.

    Attributes:
        held: [L + 1, N] units in each, the oldest first.
        place: [L + 1] where in the N places of a subflow (see Fluid) the newest is; the oldest is in the next, round.
        gone: [L + 1] how many left in the last step, less all but the newest: 0.3 are 0.3 of the newest, and all that
            are older; -0.7 none of it, and 0.3 of the next. (So it is as exact as a share where little stays.)
    """

    held: Array
    place: Array
    gone: Array


def no_layers(like: Array, count: int) -> Layers | None:
    """Empty ones; None where a port is but one layer. like: any [L + 1] array."""
    zero = jnp.zeros_like(like)
    return None if count == 1 else Layers(jnp.zeros((*like.shape, count), like.dtype), zero, zero)


@remade
def turn(layers: Layers | None, queue: Array, signal: Signal, events: Now | None) -> Layers | None:
    """The layers after a step that leaves `queue` [L + 1] at each port, before dead ports are given up.

    What comes joins the newest. This is closed once it has its part of all that stands, if the oldest is empty, which
    is the newest from then on: so layers are as thick as the queue asks for.
    """
    if layers is None:
        return None
    count, stood = layers.held.shape[-1], layers.held.sum(-1)
    closes = (layers.held[:, -1] * (count - 1) >= stood) & (layers.held[:, 0] <= NOTHING)
    held = jnp.where(closes[:, None], jnp.roll(layers.held, -1, -1), layers.held)
    held = held.at[:, -1].add(jnp.maximum(signal.sent + queue - stood, 0.0))
    over = signal.sent[:, None] - (held.cumsum(-1) - held)  # what leaves besides the older ones
    whole = jnp.where(held > NOTHING, held, 1.0)
    share = jnp.where(over >= held - NOTHING, 1.0, jnp.maximum(over, 0.0) / whole)
    gone = jnp.where(signal.leave >= 1.0, 1.0, share[:, -1] - (1.0 - share[:, :-1]).sum(-1))
    held = held * (1.0 - leaving(gone[:, None], jnp.arange(count)[::-1]))
    if events is not None:
        held = held * (1.0 - events.given_up[:, None])
    return Layers(held, (layers.place + closes) % count, gone)


def leaving(gone: Array, newer: Array) -> Array:
    """The share that leaves of a layer that has so many newer ones (see Layers.gone)."""
    return jnp.clip(gone + newer, 0.0, 1.0)


def by_place(gone: Array, place: Array, count: int) -> tuple[Array, Array]:
    """[..., N, K] the share that leaves of each layer of a subflow, and 1 where what comes joins. gone, place:
    [..., 1, K] of its port."""
    newer = (place - jnp.arange(count)[:, None]) % count
    return leaving(gone, newer), (newer == 0).astype(gone.dtype)
