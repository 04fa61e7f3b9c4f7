"""A token bucket: how much of a class may pass in any span of time."""

from __future__ import annotations

import dataclasses
from typing import Self

import jax
import jax.numpy as jnp

from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bucket:
    """Tokens come at `rate` up to `burst`, and each byte takes one: in any time t at most burst + rate t passes (the
    arrival curve of Cruz, IEEE Transactions on Information Theory 37(1), 1991; as token bucket in RFC 2697 and 2698).

    As a shaper, what has no token waits: a queue with more to send goes at line rate C for burst / (C - rate), then at
    `rate`. As a policer, what has no token is cut on arrival: of a steady a > rate, after burst / (a - rate), a - rate.
    A bucket is full at the start. Exact in its totals at the end of every step; where it is full in a part of a step
    only, it gains the tokens of the other part, too. Smooth almost everywhere.

    Attributes: [C L], class by class.
        rate: B/s.
        burst: bytes.
    """

    rate: Array
    burst: Array

    def inside(self, unit: Array, dt: Array, none: float) -> Self:
        """The same in units per step and units, with `none` for the entry of no link."""
        rate, burst = self.rate * dt / unit, self.burst / unit
        return dataclasses.replace(self, rate=jnp.append(rate, none), burst=jnp.append(burst, none))

    def most(self, tokens: Array) -> Array:
        """Units that may pass in a step that begins with so many tokens."""
        return tokens + self.rate

    def after(self, tokens: Array, passed: Array) -> Array:
        """The tokens after a step in which so much has passed."""
        return jnp.clip(tokens + self.rate - passed, 0.0, self.burst)
