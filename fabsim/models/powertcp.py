"""PowerTCP: a window that follows the power of the most loaded port, its rate times what waits and is on the wire."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PowerTcpState:
    """[F].

    Attributes:
        window, before: units; W, and W with a lag of a round trip.
        power: smoothed power of the most loaded port, in those of a full port without a queue.
    """

    window: Array
    before: Array
    power: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PowerTcp:
    """Current (dq/dt + sent) times voltage (q + C T) of a port, in C^2 T; G its largest on the path, smoothed over T:

    W = gamma (W_before / G + beta) + (1 - gamma) W

    at every acknowledgement, with the window of a round trip ago, here W with a lag of that (Addanki, Michel, Schmid,
    PowerTCP, NSDI 2022; T is the base round trip of the network). The current is taken as half the rate of a port at
    least. Over several paths a flow takes the mean of their largest powers, by bytes.

    Flows through a port of rate C settle at windows of C T + sum of beta together, each in proportion to its beta, with
    a queue of the sum of beta. At gamma 0.9 they swing by a few percent around that point, for small gammas they rest
    there. Trims are not seen: what is trimmed is sent again.

    Smooth almost everywhere.

    Attributes: scalars or [F].
        network_rtt: s, T.
        rate: B/s of the NIC; with T the largest window and the first.
        gamma: weight of an acknowledged packet; 0.9.
        beta: B, additive increase.
    """

    signals: ClassVar[bool] = False
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = True
    network_rtt: Array
    rate: Array
    gamma: Array
    beta: Array

    def init(self, sender: Sender) -> PowerTcpState:
        """At line rate, as if ports were just full."""
        window = sender.product(self.rate, self.network_rtt)
        return PowerTcpState(window, window, jnp.ones_like(window))

    def offer(self, state: PowerTcpState, sender: Sender) -> Array:
        """What the window leaves free, at no more than a window a round trip (the law paces)."""
        return sender.paced(state.window, self.network_rtt)

    def step(self, state: PowerTcpState, feedback: Feedback, sender: Sender) -> PowerTcpState:
        """One step of acknowledgements; nothing changes without them."""
        path, heard = feedback.path, feedback.acked > 0
        assert path is not None
        trip = self.network_rtt / sender.dt
        current = jnp.maximum((path.grown + path.sent) / path.capacity, 0.5)
        by_path = jnp.broadcast_to(trip, heard.shape)[:, None]
        now = path.worst(current * (path.queue / (path.capacity * by_path) + 1.0))
        power = jnp.where(heard, state.power + jnp.minimum(1.0 / trip, 1.0) * (now - state.power), state.power)
        weight = 1.0 - (1.0 - self.gamma) ** (feedback.acked / sender.packet)
        beta = self.beta / sender.unit
        window = state.window + weight * (state.before / power + beta - state.window)
        window = jnp.where(heard, jnp.clip(window, beta, sender.product(self.rate, self.network_rtt)), state.window)
        ago = jnp.maximum(sender.base + path.worst(path.queue / path.capacity), 1.0)
        before = state.before + (state.window - state.before) / ago
        return PowerTcpState(window, before, power)
