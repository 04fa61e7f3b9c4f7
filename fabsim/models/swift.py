"""Swift: a window that aims at an end-to-end delay, which grows as the window shrinks."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SwiftState:
    """[F]. window: units; delay: steps, the last round trip that was measured; since_cut: steps."""

    window: Array
    delay: Array
    since_cut: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Swift:
    """Window W (in packets) and round trip d, with a target (Kumar et al., SIGCOMM 2020):

    T(W) = base + per_hop * hops + clip(a / sqrt(W) + b, 0, range),   a = range / (1 / sqrt(least) - 1 / sqrt(most)),
    b = -a / sqrt(most)

    * d < T: W += increase / W for each packet acknowledged, `increase` where W is below one;
    * d >= T: W *= max(1 - beta (d - T) / d, 1 - deepest), at most once a round trip;
    * a trimmed packet counts as a loss: W *= 1 - deepest, at most once a round trip.

    N flows through a port of rate C settle where N W = C T(W). Where `base` is `auto` in a scenario it is 1.25 base
    round trips of the longest route, ours: the paper's 25 us is that of its machines. Fabric and host delay are one
    here; the host adds none.

    Smooth almost everywhere; jumps at the moment of a cut.

    Attributes: scalars or [F].
        first: B, window at the start.
        base: s, target of a long path with a large window.
        per_hop: s, more target for each switch port on the path.
        hops: switch ports on the path.
        range: s, the most that a small window adds to the target.
        least, most: packets; the window at which it adds all of the range, and from which it adds nothing.
        largest: B, largest window.
        increase: packets a round trip.
        beta: strength of the decrease.
        deepest: largest part that one decrease takes.
    """

    signals: ClassVar[bool] = True
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    first: Array
    base: Array
    per_hop: Array
    hops: Array
    range: Array
    least: Array
    most: Array
    largest: Array
    increase: Array
    beta: Array
    deepest: Array

    def target(self, window: Array) -> Array:
        """[F] s, of windows in packets."""
        most = self.most**-0.5
        a = self.range / (self.least**-0.5 - most)
        return self.base + self.per_hop * self.hops + jnp.clip(a * (window**-0.5 - most), 0.0, self.range)

    def init(self, sender: Sender) -> SwiftState:
        """The first window; nothing was measured."""
        zero = jnp.zeros_like(sender.rtt)
        rtt = sender.base
        return SwiftState(zero + self.first / sender.unit, rtt, rtt)

    def offer(self, state: SwiftState, sender: Sender) -> Array:
        """What the window leaves free. Below one packet this is pacing: a part of a packet each round trip."""
        return jnp.maximum(state.window - sender.in_flight, 0.0)

    def step(self, state: SwiftState, feedback: Feedback, sender: Sender) -> SwiftState:
        """All acknowledgements of a step at once."""
        some = feedback.acked > 0
        delay = jnp.where(some, sender.base + feedback.delay, state.delay)
        packets = state.window / sender.packet
        target = self.target(packets) / sender.dt
        grown = self.increase * feedback.acked / jnp.maximum(packets, 1.0)
        allowed = state.since_cut >= delay
        lost = allowed & (feedback.nacked > 0)
        late = allowed & some & (delay >= target)
        kept = jnp.maximum(1.0 - self.beta * (1.0 - target / delay), 1.0 - self.deepest)
        factor = jnp.where(lost, 1.0 - self.deepest, jnp.where(late, kept, 1.0))
        window = jnp.where(some & (delay < target), state.window + grown, state.window) * factor
        window = jnp.clip(window, self.least * sender.packet, self.largest / sender.unit)
        since = jnp.where(lost | late, 0.0, jnp.minimum(state.since_cut + 1.0, 1e6))
        return SwiftState(window, delay, since)
