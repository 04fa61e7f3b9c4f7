"""Delay lines: what goes in comes out any real number of steps later, from memory that does not grow with the delay.

A line is a ring of cells, and a cell holds what came in the steps of one stride, as if it had come evenly: the
cumulative inflow is known at the strides and linear between them. So the outflow of a step is the difference of that
curve over the step, a delay ago; over all steps, what comes out of a cell adds up to what went in, and the mean of its
times is later by the delay. A stride of one step keeps every step apart. A delay is at least a stride, and at most as
many strides as there are cells, less two.

Shapes: D cells, N lines, any axes behind these. Strides [N] are whole numbers of steps. Smooth in the delay as the
linear curve is, almost everywhere.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fabsim.typing import Array


def put(line: Array, step: Array, stride: Array, entering: Array) -> Array:
    """The line [D, N, ...] with what enters it [N, ...] in this step."""
    at = (step // stride) % line.shape[0], jnp.arange(line.shape[1])
    fresh = (step % stride == 0)[(..., *(None,) * (line.ndim - 2))]
    return line.at[at].set(jnp.where(fresh, 0.0, line[at]) + entering)


def take(line: Array, step: Array, stride: Array, delay: Array) -> Array:
    """[N, ...] what leaves the line in this step, that of this step put in; delay [N] steps."""
    whole = jax.lax.stop_gradient(jnp.floor(delay)).astype(jnp.int32)
    lines = jnp.arange(line.shape[1])
    late, later = (line[((step - whole - ago) // stride) % line.shape[0], lines] for ago in (0, 1))
    behind = (..., *(None,) * (line.ndim - 2))
    part, share = (delay - whole)[behind], (1.0 / stride)[behind].astype(line.dtype)
    return (late * (1.0 - part) + later * part) * share


def held(line: Array, step: Array, stride: Array, delay: Array) -> Array:
    """[N, ...] what is on the line before this step."""
    cells = jnp.arange(line.shape[0])[:, None]
    bucket = (step - 1) // stride
    bucket = bucket - (bucket - cells) % line.shape[0]
    left = ((bucket + 1) * stride - step + delay) / stride
    share = jnp.clip(left, 0.0, 1.0)
    return (line * share[(..., *(None,) * (line.ndim - 2))]).sum(0)
