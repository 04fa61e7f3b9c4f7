"""What comes back to the sender, delayed by each flow's own way back, at any real number of steps."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback
from fabsim.typing import Array


def heard(ring: Array, step: Array, delay: Array) -> Array:
    """[C, F] what reached the receivers `delay` [F] steps ago, linearly interpolated between two steps.

    ring: [D, C, F], where entry k mod D is what reached them in step k.
    """
    whole = jax.lax.stop_gradient(jnp.floor(delay)).astype(jnp.int32)
    part = delay - whole
    depth, flows = ring.shape[0], jnp.arange(ring.shape[2])
    late, later = (step - whole) % depth, (step - whole - 1) % depth
    return (ring[late, :, flows] * (1.0 - part)[:, None] + ring[later, :, flows] * part[:, None]).T


def as_feedback(back: Array) -> Feedback:
    """[C, F] channels data, trimmed (marked, waited) as the law reads them."""
    acked = back[0]
    if back.shape[0] == 2:
        return Feedback(acked, back[1], jnp.zeros_like(acked), jnp.zeros_like(acked))
    some = acked > 1e-9
    return Feedback(acked, back[1], back[2], jnp.where(some, back[3] / jnp.where(some, acked, 1.0), 0.0))
