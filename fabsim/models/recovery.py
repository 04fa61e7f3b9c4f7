"""Loss recovery: what is lost in silence is missed after a timeout, and sent again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from fabsim.typing import Array

OFF = 1e9
"""Steps of a timer that does not run: finite, so that no gradient meets an infinity."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RecoveryState:
    """What each sender will miss, in lots of what was lost at about the same time, the latest first. Units and steps.

    Attributes:
        gone: [N, F] lost, and not missed yet.
        timer: [N, F] steps until the timeout; OFF for a lot of nothing.
        booked: [N, F] by how much the timeout had grown when a lot was begun.
        factor: [F] by how much it has grown.
        refusing: [F] share of the flow that its receiver refuses, since something before it is missing (go-back-N).
    """

    gone: Array
    timer: Array
    booked: Array
    factor: Array
    refusing: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SelectiveRepeat:
    """Silent losses, and only what was lost is sent again, a timeout after it was lost.

    What is lost within a seventh of a timeout is one lot and is missed together, at its mean time. The timeout grows by
    `backoff`, up to `most` times, with each lot in a row that was sent since it grew last, until something is
    acknowledged (RFC 6298, section 5; the loss itself takes the place of the last acknowledgement before it). Goodput
    for each byte sent is 1 - p, for losses of a share p.

    Smooth almost everywhere, in the timeout too: bytes come back at their time inside the step. Jumps where one timeout
    more fits in before the end.

    Attributes:
        timeout: s, a scalar or [F].
        backoff: factor of the timeout after each timeout in a row, a scalar or [F].
        most: largest factor that the timeout grows by, a scalar or [F].
    """

    ordered: ClassVar[bool] = False
    lots: ClassVar[int] = 8
    timeout: Array
    backoff: Array
    most: Array

    def inside(self, dt: Array) -> Self:
        """The same with times in steps."""
        return dataclasses.replace(self, timeout=self.timeout / dt)

    def init(self, like: Array) -> RecoveryState:
        """Nothing is lost. like: any [F] array."""
        zero = jnp.zeros_like(like)
        lots = jnp.zeros((self.lots, *like.shape), like.dtype)
        return RecoveryState(lots, lots + OFF, lots + 1.0, zero + 1.0, zero)

    def expire(self, state: RecoveryState, acked: Array, outstanding: Array) -> tuple[RecoveryState, Array, Array]:
        """Timers that run out within the step: the state, [F] units missed now, and [F] when, in [0, 1].

        acked, outstanding: [F] units acknowledged in this step, and units to send or under way after that.
        """
        heard = acked > 0
        timer = jnp.where(heard & (state.timer < OFF), jnp.minimum(state.timer, self.timeout), state.timer)
        booked, factor = jnp.where(heard, 1.0, state.booked), jnp.where(heard, 1.0, state.factor)
        fires = timer < 1.0
        now = jnp.where(fires, state.gone, 0.0)
        missed = now.sum(0)
        when = (now * jnp.clip(timer, 0.0, 1.0)).sum(0) / jnp.where(missed > 0, missed, 1.0)
        grown = jnp.minimum(jnp.where(fires, booked * self.backoff, 0.0).max(0), self.most)
        # A sender that has nothing but that to send begins anew at what is missing.
        last = fires.any(0) & (outstanding <= state.gone.sum(0) * (1.0 + 1e-5))
        after = RecoveryState(
            gone=state.gone - now,
            timer=jnp.where(fires | (state.gone <= 0), OFF, timer - 1.0),
            booked=booked,
            factor=jnp.maximum(factor, grown),
            refusing=jnp.where(last, 0.0, state.refusing),
        )
        return after, missed, when

    def refuse(
        self, state: RecoveryState, lost: Array, arrived: Array, window: Array, rate: Array, packet: Array
    ) -> tuple[RecoveryState, Array]:
        """[F] the share of what arrives that the receiver refuses: here nothing. lost, arrived: [F] units in this step;
        window: [F] units that may be in flight; rate: [F] units per step that the sender's ports can send; packet: [F]
        units of a packet."""
        return state, jnp.zeros_like(lost)

    def lose(self, state: RecoveryState, lost: Array) -> RecoveryState:
        """Book [F] units lost in this step: to the latest lot, unless that is full."""
        some, whole = lost > 0, jnp.minimum(self.timeout * state.factor, OFF / 2)
        full = some & self.full(state.timer[0], whole)

        def older(x: Array, empty: float, both: Callable[[Array, Array], Array]) -> Array:
            """All lots one place on, where the latest is full; the last two become one."""
            on = jnp.concatenate([jnp.full_like(x[:1], empty), x[:-1]])
            return jnp.where(full, on.at[-1].set(both(on[-1], x[-1])), x)

        gone = older(state.gone, 0.0, jnp.add)
        timer, booked = older(state.timer, OFF, jnp.minimum), older(state.booked, 1.0, jnp.maximum)
        begins = timer[0] >= OFF
        joined = jnp.where(begins, whole, self.joined(timer[0], whole, lost, gone[0]))
        return dataclasses.replace(
            state,
            gone=gone.at[0].add(lost),
            timer=timer.at[0].set(jnp.where(some, joined, timer[0])),
            booked=booked.at[0].set(jnp.where(some & begins, state.factor, booked[0])),
        )

    def full(self, timer: Array, whole: Array) -> Array:
        """[F] whether the latest lot takes no more: of steady losses it then lasts 1 / (N - 1) of a timeout, so that
        the oldest of N is missed by the time a new one begins."""
        return timer < whole * (1.0 - 0.5 / (self.lots - 1))

    def joined(self, timer: Array, whole: Array, lost: Array, gone: Array) -> Array:
        """[F] the timer of the latest lot, when something joins it: the mean of what is in it."""
        return timer + (whole - timer) * lost / jnp.where(lost > 0, gone + lost, 1.0)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GoBackN(SelectiveRepeat):
    """The receiver takes nothing out of order: with what was lost, what follows it in the window is sent again.

    Each packet lost starts a refusal, unless one is under way, that takes the W - 1 packets which follow it in a window
    of W packets (at most those that the sender's ports can send until the timeout). With a share x of the flow in
    refusal and a share p lost, dx = p (1 - x) - x / (W - 1) for each packet, solved exactly over a step. It settles at
    a goodput for each packet sent of (1 - p) / (1 - p + p W), that of packets lost independently. A refusal is W - 1
    packets long on average and no more than that: of a burst of losses, a part of it meets what is sent again. What
    comes back waits for the timeout of the first that is missing, and all of it together; where receivers report gaps
    at once (RoCE), that is a round trip.
    """

    ordered: ClassVar[bool] = True
    lots: ClassVar[int] = 1

    def full(self, timer: Array, whole: Array) -> Array:
        """[F] never: from what is missing first the sender goes over all that follows."""
        return jnp.zeros_like(whole, bool)

    def joined(self, timer: Array, whole: Array, lost: Array, gone: Array) -> Array:
        """[F] the timer of what is missing first."""
        return timer

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
