"""Go-back-N: what follows a loss is sent again with it."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.quotient import quotient
from fabsim.models.recovery import LITTLE, RecoveryState, SelectiveRepeat, older
from fabsim.typing import Array

SURE = 1e-6
"""Share of flows without a hole that counts as none: holes are a certainty."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GoBackN(SelectiveRepeat):
    """The receiver takes nothing out of order: all that is sent behind a loss is sent again with it, a timeout after.

    A flow is what many alike are on average: of these a share has a hole, some packet that is missing, and for them all
    that is behind it is as good as lost from the moment of the loss, whether it arrives or not: what is on its way to
    the place of the loss, and what is sent until they go back. Behind a hole goes what their windows still take: a
    window of W holds W bytes, of which some were ahead of the hole and are acknowledged. When the timer of a hole runs
    out, they go back, have none, and send all of it again.

    So a burst gives each flow one hole, and it takes what was ahead of it in each timeout. Of packets lost
    independently, a share p, each hole takes the W - 1 that follow: goodput for each packet sent is
    (1 - p) / (1 - p + p W), as long as a window is sent within the timeout. Where receivers report gaps at once (RoCE),
    that is a round trip.
    """

    ordered: ClassVar[bool] = True

    def init(self, like: Array) -> RecoveryState:
        """No flow has a hole."""
        state = super().init(like)
        return replace(state, holed=jnp.zeros_like(state.gone), ahead=jnp.zeros_like(state.gone))

    def expire(self, state: RecoveryState, heard: Array) -> tuple[RecoveryState, Array, Array]:
        """They go back."""
        after, now, when = super().expire(state, heard)
        some = state.gone > LITTLE
        left = jnp.where(some, quotient(after.gone, jnp.where(some, state.gone, 1.0)), 0.0)
        return replace(after, holed=held(state.holed) * left, ahead=held(state.ahead) * left), now, when

    def sound(self, state: RecoveryState) -> tuple[Array, Array]:
        """[F] the share of the flow that has no hole, and that which has something under way ahead of one."""
        holed, waits = held(state.holed), held(state.ahead) > 0
        return jnp.maximum(1.0 - holed.sum(-1), SURE), jnp.maximum(jnp.where(waits, holed, 0.0).sum(-1), SURE)

    def hear(self, state: RecoveryState, acked: Array) -> RecoveryState:
        """[F] units are acknowledged: an equal part of each that has something under way which will be taken."""
        ahead = held(state.ahead)
        each = acked / sum(self.sound(state))
        waits = jnp.where(ahead > 0, held(state.holed), 0.0)
        return replace(state, ahead=ahead - jnp.minimum(ahead, each[:, None] * waits))

    def send(self, state: RecoveryState, sent: Array, window: Array, room: Array) -> tuple[RecoveryState, Array]:
        """Book what is sent behind holes, of [F] units sent in this step: the state, and [F] the share.

        window: [F] units that may be in flight; room: [F] those that may still be sent.
        """
        takes = jnp.maximum(window[:, None] * held(state.holed) - state.gone - held(state.ahead), 0.0)
        takes = takes / jnp.maximum(jnp.maximum(room, takes.sum(-1)), LITTLE)[:, None]
        return replace(state, gone=state.gone + sent[:, None] * takes), takes.sum(-1)

    def tear(
        self, state: RecoveryState, lost: Array, again: Array, share: Array, in_flight: Array
    ) -> tuple[RecoveryState, Array]:
        """Book new holes: the state, and [F] whether a new lot is begun, while there are others.

        lost: [F] units lost in this step, and behind these; again: [F] such of them as were ahead of a hole; share: [F]
        of the flows without a hole, those that have one now; in_flight: [F] units sent, and not acknowledged nor
        missed.
        """
        holed, ahead = held(state.holed), held(state.ahead)
        waits = ahead.sum(-1)
        left = 1.0 - jnp.minimum(again / jnp.maximum(waits, LITTLE), 1.0)
        of_sound = share * jnp.maximum(in_flight - state.gone.sum(-1) - waits, 0.0)
        more = share * jnp.maximum(1.0 - holed.sum(-1), 0.0)
        state, anew = self.book(state, lost, holed[:, 0], more)
        holed = older(anew, holed, 0.0, holed[:, -2:].sum(-1))
        ahead = ahead * left[:, None]
        ahead = older(anew, ahead, 0.0, ahead[:, -2:].sum(-1))
        state = replace(
            state,
            holed=holed.at[:, 0].add(more),
            ahead=ahead.at[:, 0].add(jnp.maximum(of_sound - (lost - again), 0.0)),
        )
        return state, anew


def held(x: Array | None) -> Array:
    """What a state has under go-back-N."""
    assert x is not None
    return x
