"""Ports that feel packets: a queue stands below saturation where packets arrive at random."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from fabsim.models.queue import TrimQueue
from fabsim.typing import Array

ENDLESS = 1e9
"""Packets of a round that no flow comes to the end of."""

LITTLE = 1e-4
"""Of the chance that is left at a port where what waits is as much as a round may bring: the root has a slope."""

TIMES = 2
"""Times that what waits and what leaves are found by each other: at saturation within 2 % for rounds of 128 packets."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GranularQueue(TrimQueue):
    """A TrimQueue that keeps the mean queue which random arrivals need.

    A fluid below saturation does not queue; packets do. A port at load r whose packets of `packet` bytes arrive at
    random keeps c r^2 / (2 (1 - r)) packets waiting on average (M/D/1 for c = 1: Pollaczek-Khinchine). Read the other
    way, a port with that many waiting sustains the load r: with S standing, room for R and k = c packet / (2 R), what
    leaves is R r with S (1 - r) / R = r (1 - r) + k r^2, a smooth minimum of S and R. At r = 1 the queue grows as the
    square root of the packets that have passed.

    c is how irregular the arrivals are: of flows that send evenly, and each packet with chance w over this port, no two
    packets of one come at once, so c = 1 - sum of w^2 / (sum of w)^2, by the routing's split; none for a lone flow. At
    the receiver's port all of a flow arrives: c = 0.

    Senders that go through their paths in rounds of N packets are less random: what has come too early is missing
    later. Then the queue at r = 1 does not grow beyond sqrt(c pi N / 8) packets on average (N D/D/1: Roberts and
    Virtamo, IEEE Trans. Commun. 39(2), 1991), as if k were smaller by 8 q^2 / (c pi N) of itself where q packets wait.
    For N of 128 to 512 and r of 0.9 or more that is within 14 % of the exact mean, the integral of exp(- 2 x (x / N + 1
    - r)); rounds that a port passes in a step (N = 16) stand a fifth too high.

    Attributes:
        packet: [L] bytes of a packet.
        turn: packets of a round, a scalar; without end where each packet draws its path by itself.
    """

    granular: ClassVar[bool] = True
    packet: Array
    turn: Array | float = dataclasses.field(default=ENDLESS, kw_only=True)

    def inside(self, unit: Array, dt: Array, none: float) -> Self:
        """As it stands; a round is in packets."""
        sizes = super(GranularQueue, replace(self, turn=self.packet)).inside(unit, dt, none)
        return replace(sizes, turn=self.turn)

    def serve(self, stands: Array, room: Array, random: Array | None) -> Array:
        """The smooth minimum; the plain one where arrivals are paced."""
        assert random is not None
        plain = super().serve(stands, room, None)
        safe = jnp.where(room > 0, room, 1.0)
        fill, k = stands / safe, jnp.clip(0.5 * random * self.packet / safe, 0.0, 0.5)
        some = (k > 1e-6) & (stands > 0) & (room > 0)
        k, fill = jnp.where(some, k, 0.25), jnp.where(some, fill, 1.0)
        sent = room * smooth_least(fill, k)
        for _ in range(TIMES):
            waits = (stands - sent) / jnp.where(some, random * self.packet, 1.0)
            left = jnp.maximum(1.0 - 8.0 / jnp.pi * random * waits * waits / self.turn, LITTLE)
            sent = room * smooth_least(fill, k * left)
        return jnp.where(some, jnp.minimum(sent, plain), plain)


def smooth_least(fill: Array, k: Array) -> Array:
    """Of one and `fill`, as they are to a port that has room for one: less by k where they are equal."""
    return ((1.0 + fill) - jnp.sqrt((1.0 - fill) ** 2 + 4.0 * fill * k)) / (2.0 * (1.0 - k))
