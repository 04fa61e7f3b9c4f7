"""Ports that feel packets: a queue stands below saturation where packets arrive at random."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.queue import TrimQueue
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GranularQueue(TrimQueue):
    """A TrimQueue that keeps the mean queue which random arrivals need.

    A fluid below saturation does not queue; packets do. A port at load r whose packets of `packet` bytes arrive at
    random keeps c r^2 / (2 (1 - r)) packets waiting on average (M/D/1 for c = 1: Pollaczek-Khinchine). Read the other
    way, a port with that many waiting sustains the load r: with S standing, room for R and k = c packet / (2 R), what
    leaves is R r with S (1 - r) / R = r (1 - r) + k r^2, a smooth minimum of S and R. At r = 1 the queue grows as the
    square root of the packets that have passed.

    c is how irregular the arrivals are: a flow of which a share w takes this port, packet by packet at random, brings
    c = 1 - w (the variance of a thinned stream), a flow on a single path none. The port has the mean of what arrives.
    At the receiver's port all of a flow arrives: c = 0.

    Attributes:
        packet: [L] bytes of a packet.
    """

    granular: ClassVar[bool] = True
    packet: Array

    def serve(self, stands: Array, room: Array, random: Array | None) -> Array:
        """The smooth minimum; the plain one where arrivals are paced."""
        assert random is not None
        plain = super().serve(stands, room, None)
        safe = jnp.where(room > 0, room, 1.0)
        fill, k = stands / safe, jnp.clip(0.5 * random * self.packet / safe, 0.0, 0.5)
        some = (k > 1e-6) & (stands > 0) & (room > 0)
        k, fill = jnp.where(some, k, 0.25), jnp.where(some, fill, 1.0)
        load = ((1.0 + fill) - jnp.sqrt((1.0 - fill) ** 2 + 4.0 * fill * k)) / (2.0 * (1.0 - k))
        return jnp.where(some, jnp.minimum(room * load, plain), plain)
