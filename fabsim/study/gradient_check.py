"""Gradients held against finite differences: forward, reverse, and central differences in float64, off the kinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

STEP = 1e-6
"""Of a central difference, in raw numbers."""
AWAY = 0.1
"""How far from the start the points are, in raw numbers: a start is often a tie, and a tie is a kink."""
KINK = 1e-4
"""Where the differences to the left and to the right differ by more than this part, there is a kink between."""
TRIES = 8


@dataclass(frozen=True)
class Slope:
    """A derivative along one direction.

    Attributes:
        forward: by jax.jvp.
        reverse, unsaved: by jax.grad, with checkpoints and without.
        difference: central, over 2 STEP.
        tries: points that were looked at until one was off the kinks; TRIES + 1 where none was.
    """

    forward: float
    reverse: float
    unsaved: float
    difference: float
    tries: int

    @property
    def apart(self) -> float:
        """The largest relative distance of the derivatives from the difference; NaN where one is no number."""
        exact = np.array([self.forward, self.reverse, self.unsaved])
        return float(np.abs(exact - self.difference).max() / max(abs(self.difference), 1e-300))


Raw = tuple[jax.Array, ...]
Value = Callable[[Raw], jax.Array]
Programs = tuple[Callable[[Raw, Raw], tuple[jax.Array, jax.Array]], Callable[[Raw], Raw], Callable[[Raw], Raw]]


def programs(value: Value, without_checkpoints: Value) -> Programs:
    """Value and derivative along a direction, and two gradients; compiled in a hurry: they run but a few times."""
    hurry: Any = {"compiler_options": {"xla_backend_optimization_level": 0}}
    forward = jax.jit(lambda at, way: jax.jvp(value, (at,), (way,)), **hurry)
    return forward, jax.jit(jax.grad(value), **hurry), jax.jit(jax.grad(without_checkpoints), **hurry)


def slope(compiled: Programs, raw: Raw, place: int, random: np.random.Generator) -> Slope:
    """The derivative along a random direction of one of the arguments, at a random point near `raw`.

    Give numbers in float64. At a kink one-sided differences disagree, and another point is taken.
    """
    forward, reverse, unsaved = compiled
    tries, found = 0, None
    while tries < TRIES:
        tries += 1
        point = tuple(x + jnp.asarray(random.normal(0, AWAY, x.shape), x.dtype) for x in raw)
        ways = [random.normal(0, 1, x.shape) * (number == place) for number, x in enumerate(raw)]
        way = tuple(jnp.asarray(one, x.dtype) for one, x in zip(ways, raw, strict=True))
        ends = [forward(jax.tree.map(lambda x, y: x + h * y, point, way), way) for h in (-STEP, 0.0, STEP)]  # noqa: B023
        left, middle, right = (float(end[0]) for end in ends)
        found = point, way, float(ends[1][1]), (right - left) / (2 * STEP)
        if abs((right - middle) - (middle - left)) / STEP <= KINK * abs(found[-1]):
            break
    else:
        tries += 1
    assert found is not None
    point, way, along, central = found
    dots = (jax.tree.map(jnp.vdot, gradient(point), way) for gradient in (reverse, unsaved))
    inner, plain = (float(sum(parts)) for parts in dots)
    return Slope(along, inner, plain, central, tries)
