"""What packets tell their receiver on the way: it is heard of when they are, in the order in which they were sent."""

from __future__ import annotations

import dataclasses
from typing import Self

import jax
import jax.numpy as jnp

from fabsim.models.quotient import quotient
from fabsim.typing import Array

STEPS = 16
"""Steps of sending that are told apart; what is older than that is heard of in proportion."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Told:
    """A line of what is in flight, by the step in which it was sent, the latest first. [F, STEPS].

    Attributes:
        sent: units in flight.
        words: units that these tell the receiver to add to what it knows.
    """

    sent: Array
    words: Array

    @classmethod
    def nothing(cls, like: Array) -> Self:
        """Empty lines. like: [F]."""
        none = jnp.zeros((*like.shape, STEPS), like.dtype)
        return cls(none, none)

    @property
    def unheard(self) -> Array:
        """[F] units that the receiver has still to hear of."""
        return self.words.sum(-1)

    def after(self, sent: Array, words: Array, heard: Array, passed: Array, trip: Array) -> Told:
        """The line when so much was sent, with these words, and so much has come back. [F] units each.

        passed: [F] the part, 0 to 1, of what was sent `trip` [F] steps ago and before that has told its words though it
        is in flight: headers of trimmed packets pass the data.
        """
        sent, words = _join(self.sent, sent), _join(self.words, words)
        before = jnp.cumsum(sent[:, ::-1], 1)[:, ::-1] - sent  # what was sent earlier
        back = jnp.maximum(heard[:, None] - before, 0.0)
        back = jnp.where(back < sent, back, sent)  # of an empty line all is back: else its slopes grow by 1.4 a step
        some = sent > 0
        stays = jnp.where(some, 1.0 - quotient(back, jnp.where(some, sent, 1.0)), 0.0)
        trip = jnp.minimum(trip, STEPS - 1.0)  # what is older is one entry
        old = jnp.clip(jnp.arange(1.5, STEPS + 1.0, dtype=sent.dtype) - trip[:, None], 0.0, 1.0)
        return Told(sent - back, words * stays * (1.0 - passed[:, None] * old))


def _join(line: Array, new: Array) -> Array:
    """A line with a new head; its last two become one."""
    return jnp.concatenate([new[:, None], line[:, :-2], line[:, -2:].sum(1, keepdims=True)], 1)
