"""What comes back to the sender, delayed by each flow's own way back, at any real number of steps."""

from __future__ import annotations

from dataclasses import replace

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
    told = Feedback(acked, back[1], back[2], mean(back[3], acked))
    return told if back.shape[0] == 4 else replace(told, marked_delay=mean(back[4], back[2]))


def mean(waited: Array, of: Array) -> Array:
    """[F] steps that each byte waited; 0 where there is none, or so little that one over its square is no number."""
    some = of > 1e-9
    return jnp.where(some, waited / jnp.where(some, of, 1.0), 0.0)


def tell_apart(reached: Array, onto: Array) -> Array:
    """[C + 1, F] what reached the receivers, with what of the waiting was that of marked bytes.

    Lanes differ in marks and in waits, and where they meet it is known how the two go together: of lanes with d bytes,
    m of them marked, which waited w steps in all, sum(m w / d) - sum(m) sum(w) / sum(d) is what marked bytes waited
    more than their part (a covariance). The last port of a plane, which its lanes share, marks and delays them alike;
    that last ports of several planes may differ is not told.

    Args:
        reached: [C, F] data, trimmed, marked, waited.
        onto: [F, C, K] what comes to the receivers' ports next, by lane.
    """
    data, _, marked, waited = onto.swapaxes(0, 1)
    together = marked * mean(waited, data)
    more = together.sum(-1) - marked.sum(-1) * mean(waited.sum(-1), data.sum(-1))
    of_marked = reached[2] * mean(reached[3], reached[0]) + mean(more, data.sum(-1)) * reached[0]
    return jnp.concatenate([reached, jnp.clip(of_marked, 0.0, reached[3])[None]])
