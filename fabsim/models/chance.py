"""Chance of whole packets: a fluid has the mean of what is trimmed or marked, and a flow of few packets meets more or
less of it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fabsim.typing import Array


def dice(seed: int, flows: int) -> NDArray[np.uint32]:
    """[F] one generator for each flow; the same seed gives the same numbers."""
    number = np.arange(flows, dtype=np.uint32) + np.uint32(seed * 65537 % 2**32)
    for factor in (2654435761, 2246822519, 3266489917):  # neighbours must not be alike (xxHash's primes)
        number = number * np.uint32(factor)
        number = number ^ (number >> np.uint32(15))
    return number


def roll(dice: Array) -> Array:
    """[F] the next numbers (linear congruences: Press et al., Numerical Recipes, 3rd ed., section 7.1)."""
    return dice * jnp.uint32(1664525) + jnp.uint32(1013904223)


def uniform(dice: Array, dtype: jnp.dtype) -> Array:
    """[F] numbers between 0 and 1, neither of them."""
    return ((dice >> 9).astype(dtype) + 0.5) * 2.0**-23  # one bit more would round to 1 in float32


def exponential(dice: Array, lanes: int, dtype: jnp.dtype) -> Array:
    """[F, K] exponential numbers of a mean of 1, for each flow and each of its lanes."""
    number = dice[:, None] + jnp.arange(1, lanes + 1, dtype=jnp.uint32) * jnp.uint32(2654435769)
    for factor in (2246822519, 3266489917):  # as in dice
        number = (number ^ (number >> 15)) * jnp.uint32(factor)
    return -jnp.log(((number >> 8).astype(dtype) + 0.5) * 2.0**-24)


def scatter(part: Array, rest: Array, packet: Array, dice: Array) -> Array:
    """[F] how much more than its mean `part` is, where each packet falls into `part` or `rest` by chance.

    Of n packets with odds p, n p do on average, with variance n p (1 - p) (binomial). Two outcomes have that mean and
    variance: a down and b up with a b = n p (1 - p), the first with probability b / (a + b). They are as near to each
    other as they can be without more in `part` or `rest` than there is: for less than a packet it is a whole one now
    and then. The sum over many steps is binomial in its mean and variance. Derivatives are those of the outcome, not of
    its odds.

    Args:
        part, rest, packet: [F] units; nothing is drawn where there is no part or no rest.
        dice: [F] uint32.
    """
    some = (part > 1e-6) & (rest > 1e-6)
    part, rest = jnp.where(some, part, 1.0), jnp.where(some, rest, 1.0)
    variance = part * rest * packet / (part + rest)
    up = jnp.minimum(variance / jnp.minimum(jnp.sqrt(variance), part), rest)
    down = variance / up
    fell = (dice >> 8).astype(part.dtype) * 2.0**-24 * (up + down) < down
    return jnp.where(some, jnp.where(fell, up, -down), 0.0)
