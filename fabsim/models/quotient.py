"""Quotients of amounts that may be next to nothing."""

from __future__ import annotations

import jax

from fabsim.typing import Array


@jax.custom_jvp
def quotient(x: Array, y: Array) -> Array:
    """x / y, whose derivative squares nothing.

    That by y is -(x / y) / y. JAX has it as -x times one over the square of y, which is no number in float32 once y is
    below 1e-19; and what a flow that has ended leaves behind shrinks by a factor a step, and gets there.

    Args:
        x, y: of one shape; y is not 0.
    """
    return x / y


@quotient.defjvp
def _slope(at: tuple[Array, Array], way: tuple[Array, Array]) -> tuple[Array, Array]:
    """The quotient and its change: (dx - (x / y) dy) / y."""
    (x, y), (dx, dy) = at, way
    found = quotient(x, y)
    return found, (dx - found * dy) / y
