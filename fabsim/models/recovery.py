"""Loss recovery: what is lost in silence is missed after a timeout, and sent again."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from fabsim.typing import Array

OFF = 1e9
"""Steps of a timer that does not run: finite, so that no gradient meets an infinity."""

LITTLE = 1e-12
"""Units that are taken for none in a mean."""

BEGUN = -1.0
"""The timer of a lot of which a part has come back."""

EDGE = 1e-3
"""Steps by which a timer may end behind its step: the mean of equal losses is often a whole number, but for a rounding,
which must not say in which step they are missed."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RecoveryState:
    """What each sender will miss, in lots of what was lost at about the same time, the latest first. Units and steps.

    Attributes:
        gone: [F, N] lost, and not missed yet.
        timer: [F, N] steps until the timeout of what is missed first; BEGUN after that, OFF for a lot of nothing.
        span: [F, N] steps from then until that of the last.
        first: [F] steps until the timeout of what was lost first of the latest lot.
        spread: [F] variance of the times at which that lot was lost.
        booked: [F, N] by how much the timeout had grown when a lot was begun.
        takes: [F] steps for which the latest lot takes more.
        factor: [F] by how much the timeout has grown.
        holed: [F, N] how likely it is that the flow has a hole, of these lots; None where order does not matter.
        ahead: [F, N] units under way ahead of these holes, times that; None likewise.
    """

    gone: Array
    timer: Array
    span: Array
    first: Array
    spread: Array
    booked: Array
    takes: Array
    factor: Array
    holed: Array | None = None
    ahead: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SelectiveRepeat:
    """Silent losses, and only what was lost is sent again, a timeout after it was lost.

    What is lost within a sixth of a timeout is one lot, and comes back over as long a time as it was lost in: evenly,
    with the mean and the variance of its times, and none sooner or later than the first and the last of it would. The
    timeout grows by `backoff`, up to `most` times, with each lot in a row that was sent since it grew last, until
    something is acknowledged (RFC 6298, section 5; the loss itself takes the place of the last acknowledgement before
    it). Goodput for each byte sent is 1 - p, for losses of a share p.

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
        return replace(self, timeout=self.timeout / dt)

    def init(self, like: Array) -> RecoveryState:
        """Nothing is lost. like: any [F] array."""
        zero = jnp.zeros_like(like)
        lots = jnp.zeros((*like.shape, self.lots), like.dtype)
        return RecoveryState(lots, lots + OFF, lots, zero + OFF, zero, lots + 1.0, zero, zero + 1.0)

    def expire(self, state: RecoveryState, heard: Array) -> tuple[RecoveryState, Array, Array]:
        """Timers that run out within the step: the state, [F, N] what is missed now, by lots, and [F] when, in [0, 1].

        heard: [F] whether something is acknowledged in this step.
        """
        least = jnp.where(heard, self.timeout, OFF)
        on = state.timer < OFF
        timer = jnp.where(on, jnp.minimum(state.timer, least[:, None]), state.timer)
        booked = jnp.where(heard[:, None], 1.0, state.booked)
        begin = jnp.maximum(timer, 0.0)
        end = jnp.where(on, jnp.minimum(begin + state.span, jnp.maximum(least[:, None], begin)), begin)
        whole, some = end < 1.0 + EDGE, begin < 1.0
        part = (1.0 - begin) / jnp.where(some & ~whole, state.span, 1.0)
        now = state.gone * jnp.where(whole, 1.0, jnp.where(some, part, 0.0))
        when = mean(0.5 * (jnp.minimum(begin, 1.0) + jnp.minimum(end, 1.0)), now)
        starts = (some | whole) & (timer > BEGUN)
        grown = jnp.where(starts, booked, 0.0).max(-1) * self.backoff
        after = replace(
            state,
            gone=state.gone - now,
            timer=jnp.where(whole | (state.gone <= 0), OFF, jnp.where(some, BEGUN, timer - 1.0)),
            span=jnp.where(whole | (state.gone <= 0), 0.0, jnp.where(on, end - jnp.maximum(begin, 1.0), 0.0)),
            first=jnp.minimum(state.first, least) - 1.0,
            booked=booked,
            takes=jnp.where(heard, jnp.minimum(state.takes, self.lasts(self.timeout)), state.takes) - 1.0,
            factor=jnp.maximum(jnp.where(heard, 1.0, state.factor), jnp.minimum(grown, self.most)),
        )
        return after, now, when

    def lose(self, state: RecoveryState, lost: Array) -> tuple[RecoveryState, Array]:
        """Book [F] units lost in this step: the state, and [F] whether a new lot is begun, while there are others.

        A lot takes more for 1 / (N - 2) of a timeout, so that all of the oldest of N is missed by the time that a new
        one is begun. Where the timeout has grown meanwhile it may not be, and the last two become one, at their mean
        time.
        """
        return self.book(state, lost, state.gone[:, 0], lost)

    def book(self, state: RecoveryState, lost: Array, had: Array, comes: Array) -> tuple[RecoveryState, Array]:
        """The same, where the latest lot is at the mean of its losses by the weights [F] that it `had`, and that
        `comes`."""
        some, whole = lost > 0, jnp.minimum(self.timeout * state.factor, OFF / 2)
        latest = state.timer[:, 0] < OFF
        anew = some & latest & (state.takes <= 0)
        begins = some & (anew | ~latest)
        late = jnp.maximum(state.timer[:, -2:], 0.0) + 0.5 * state.span[:, -2:]
        timer = older(anew, state.timer, OFF, mean(late, state.gone[:, -2:], late.min(-1)))
        span = older(anew, state.span, 0.0, jnp.zeros_like(whole))
        gone = older(anew, state.gone, 0.0, state.gone[:, -2:].sum(-1))
        booked = older(anew, state.booked, 1.0, state.booked[:, -2:].max(-1))
        was = timer[:, 0] + 0.5 * span[:, 0]
        middle = joined(was, whole, had, comes)
        spread = joined(state.spread + (was - middle) ** 2, (whole - middle) ** 2, had, comes)
        even = jnp.sqrt(jnp.maximum(3.0 * spread, LITTLE))  # half the span of times that are evenly spread
        half = jnp.maximum(jnp.minimum(even, jnp.minimum(middle - state.first, whole - middle)), 0.0)
        state = replace(
            state,
            gone=gone.at[:, 0].add(lost),
            timer=timer.at[:, 0].set(jnp.where(begins, whole, jnp.where(some, middle - half, timer[:, 0]))),
            span=span.at[:, 0].set(jnp.where(begins, 0.0, jnp.where(some, 2.0 * half, span[:, 0]))),
            first=jnp.where(begins, whole, state.first),
            spread=jnp.where(begins, 0.0, jnp.where(some, spread, state.spread)),
            booked=booked.at[:, 0].set(jnp.where(begins, state.factor, booked[:, 0])),
            takes=jnp.where(begins, self.lasts(whole), state.takes),
        )
        return state, anew

    def lasts(self, whole: Array) -> Array:
        """Steps for which a lot takes more, of a timeout of `whole` steps."""
        return whole / (self.lots - 2)


def joined(old: Array, new: Array, had: Array, comes: Array) -> Array:
    """[F] the mean of two values [F] by weight; the old one where both weigh nothing."""
    return mean(jnp.stack([old, jnp.broadcast_to(new, old.shape)], -1), jnp.stack([had, comes], -1), old)


def older(anew: Array, lots: Array, empty: float, last: Array) -> Array:
    """[F, ..., N] the lots, of those flows [F] that begin one anew one place on, an `empty` one in front; what the
    `last` two [F, ...] are as one."""
    on = jnp.concatenate([jnp.full_like(lots[..., :1], empty), lots[..., :-2], last[..., None]], -1)
    return jnp.where(anew.reshape(-1, *(1,) * (lots.ndim - 1)), on, lots)


def mean(values: Array, weight: Array, none: Array | float = 0.0) -> Array:
    """[F, N] -> [F] the mean by weight; `none` where there is so little that one over its square is no number."""
    whole = weight.sum(-1)
    some = whole > LITTLE
    return jnp.where(some, (values * weight).sum(-1) / jnp.where(some, whole, 1.0), none)


Recovery = SelectiveRepeat
"""What a model's recovery is: this class or one that refines it."""
