"""Loss recovery: what is lost in silence is missed after a timeout, and sent again."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from fabsim.typing import Array

OFF = 1e9
"""Steps of a timer that does not run: finite, so that no gradient meets an infinity."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RecoveryState:
    """What each sender will miss. [F], units and steps.

    Attributes:
        gone: lost, and not missed yet.
        timer: steps until the timeout; OFF while nothing is gone.
        factor: by how much the timeout has grown.
        refusing: share of the flow that its receiver refuses, since something before it is missing (go-back-N).
    """

    gone: Array
    timer: Array
    factor: Array
    refusing: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SelectiveRepeat:
    """Silent losses, a timer a flow, and only what was lost is sent again.

    The timer starts at the first loss and runs for `timeout`; then all that is gone is sent again, and the timeout
    grows by `backoff`, up to `most` times, until something is acknowledged (RFC 6298, section 5; the loss itself takes
    the place of the last acknowledgement before it). Goodput for each byte sent is 1 - p, for losses of a share p.

    Smooth almost everywhere, in the timeout too: bytes come back at their time inside the step. Jumps where one timeout
    more fits in before the end.

    Attributes:
        timeout: s, a scalar or [F].
        backoff: factor of the timeout after each timeout in a row, a scalar or [F].
        most: largest factor that the timeout grows by, a scalar or [F].
    """

    ordered: ClassVar[bool] = False
    timeout: Array
    backoff: Array
    most: Array

    def inside(self, dt: Array) -> Self:
        """The same with times in steps."""
        return dataclasses.replace(self, timeout=self.timeout / dt)

    def init(self, like: Array) -> RecoveryState:
        """Nothing is lost. like: any [F] array."""
        zero = jnp.zeros_like(like)
        return RecoveryState(zero, zero + OFF, zero + 1.0, zero)

    def expire(self, state: RecoveryState, acked: Array, outstanding: Array) -> tuple[RecoveryState, Array, Array]:
        """Timers that run out within the step: the state, [F] units missed now, and [F] when, in [0, 1].

        acked, outstanding: [F] units acknowledged in this step, and units to send or under way after that.
        """
        heard = acked > 0
        timer = jnp.where(heard, jnp.minimum(state.timer, self.timeout), state.timer)
        factor = jnp.where(heard, 1.0, state.factor)
        fires = timer < 1.0
        missed = jnp.where(fires, state.gone, 0.0)
        grown = jnp.minimum(factor * self.backoff, self.most)
        # A sender that has nothing but that to send begins anew at what is missing.
        last = fires & (outstanding <= state.gone * (1.0 + 1e-5))
        after = RecoveryState(
            gone=state.gone - missed,
            timer=jnp.where(fires | (state.gone <= 0), OFF, timer - 1.0),
            factor=jnp.where(fires, grown, factor),
            refusing=jnp.where(last, 0.0, state.refusing),
        )
        return after, missed, jnp.clip(timer, 0.0, 1.0)

    def refuse(
        self, state: RecoveryState, lost: Array, arrived: Array, window: Array, rate: Array, packet: Array
    ) -> tuple[RecoveryState, Array]:
        """[F] the share of what arrives that the receiver refuses: here nothing. lost, arrived: [F] units in this step;
        window: [F] units that may be in flight; rate: [F] units per step that the sender's ports can send; packet: [F]
        units of a packet."""
        return state, jnp.zeros_like(lost)

    def lose(self, state: RecoveryState, lost: Array) -> RecoveryState:
        """Book [F] units lost in this step, and start the timers."""
        starts = (lost > 0) & (state.timer >= OFF)
        timer = jnp.where(starts, jnp.minimum(self.timeout * state.factor, OFF / 2), state.timer)
        return dataclasses.replace(state, gone=state.gone + lost, timer=timer)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GoBackN(SelectiveRepeat):
    """The receiver takes nothing out of order: with what was lost, what follows it in the window is sent again.

    Each packet lost starts a refusal, unless one is under way, that takes the W - 1 packets which follow it in a window
    of W packets (at most those that the sender's ports can send
    until the timeout). With a share x of the flow in refusal and a share p lost, dx = p (1 - x) - x / (W - 1) for
    each packet, solved exactly over a step. It settles at a goodput for each packet sent of (1 - p) / (1 - p + p W),
    that of packets lost independently. A refusal is W - 1 packets long on average and no more than that: of a burst
    of losses, a part of it meets what is sent again. What comes back waits for the timeout; where receivers report
    gaps at once (RoCE), that is a round trip.
    """

    ordered: ClassVar[bool] = True

    def refuse(
        self, state: RecoveryState, lost: Array, arrived: Array, window: Array, rate: Array, packet: Array
    ) -> tuple[RecoveryState, Array]:
        """The mean of x over the step."""
        total = lost + arrived
        some = total > 0
        p = jnp.where(some, lost / jnp.where(some, total, 1.0), 0.0)
        packet = jnp.where(packet > 0, packet, 1.0)
        follow = jnp.maximum(jnp.minimum(window, rate * self.timeout) / packet - 1.0, 1e-3)
        settled = p * follow / (1.0 + p * follow)
        x = jnp.maximum(total / packet * (p + 1.0 / follow), 1e-6)
        apart = state.refusing - settled
        after = jnp.where(some, settled + apart * jnp.exp(-x), state.refusing)
        share = jnp.where(some, settled - apart * jnp.expm1(-x) / x, 0.0)
        return dataclasses.replace(state, refusing=after), share


Recovery = SelectiveRepeat
"""What a model's recovery is: this class or one that refines it."""
