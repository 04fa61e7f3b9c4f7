"""HPCC: a window that aims at a utilisation which switches report (in-band telemetry)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class HpccState:
    """[F].

    Attributes:
        window, reference: units; W and W_c.
        load: smoothed utilisation of the most loaded port (U).
        stage: round trips of additive increase in a row.
        left: units to be acknowledged before the next update of the reference.
    """

    window: Array
    reference: Array
    load: Array
    stage: Array
    left: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Hpcc:
    """With the load of a port u = sent / C + min(q, q before) / (C T), and U its largest on the path, smoothed over T:

    * U >= eta, or `stages` increases behind: W = W_c eta / U + increase;
    * else: W = W_c + increase;

    at every acknowledgement, and W_c = W once what was in flight at the last time is acknowledged (Li et al., HPCC,
    SIGCOMM 2019; T is the base round trip of the network). Over several paths a flow takes the mean of their largest
    loads, by bytes.

    N flows through a port settle at U = eta + N increase / (C T), with a queue of max(0, U - 1) C T. Trims are not
    seen: what is trimmed is sent again.

    Smooth almost everywhere; jumps where the stages are used up.

    Attributes: scalars or [F].
        network_rtt: s, T.
        rate: B/s of the NIC; with T the largest window and the first.
        eta: utilisation that is aimed at; 0.95.
        increase: B, additive increase (W_AI); 80 B in the paper.
        stages: additive increases in a row before U is followed upwards; 5.
    """

    signals: ClassVar[bool] = False
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = True
    network_rtt: Array
    rate: Array
    eta: Array
    increase: Array
    stages: Array

    def init(self, sender: Sender) -> HpccState:
        """At line rate."""
        window = sender.product(self.rate, self.network_rtt)
        zero = jnp.zeros_like(window)
        return HpccState(window, window, zero, zero, zero)

    def offer(self, state: HpccState, sender: Sender) -> Array:
        """What the window leaves free, at no more than a window a round trip (the law paces)."""
        return sender.paced(state.window, self.network_rtt)

    def step(self, state: HpccState, feedback: Feedback, sender: Sender) -> HpccState:
        """One step of acknowledgements; nothing changes without them."""
        path, heard = feedback.path, feedback.acked > 0
        assert path is not None
        trip = self.network_rtt / sender.dt
        settled = jnp.minimum(path.queue, path.queue - path.grown)
        by_path = jnp.broadcast_to(trip, heard.shape)[:, None]
        now = path.worst((path.sent + settled / by_path) / path.capacity)
        load = jnp.where(heard, state.load + jnp.minimum(1.0 / trip, 1.0) * (now - state.load), state.load)
        increase = self.increase / sender.unit
        follows = (load >= self.eta) | (state.stage >= self.stages)
        aimed = state.reference * self.eta / jnp.maximum(load, 0.01)
        window = jnp.where(follows, aimed, state.reference) + increase
        window = jnp.where(heard, jnp.clip(window, increase, sender.product(self.rate, self.network_rtt)), state.window)
        left = state.left - feedback.acked - feedback.nacked
        ends = heard & (left <= 0.0)
        stage = jnp.where(ends, jnp.where(follows, 0.0, state.stage + 1.0), state.stage)
        left = jnp.where(ends, sender.in_flight, left)
        return HpccState(window, jnp.where(ends, window, state.reference), load, stage, left)
