"""A memory that the ports of a switch share, each up to a part of what is free."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from fabsim.models.taildrop import TailDrop
from fabsim.typing import Array

ROUNDS = 4
"""Newton steps for what is free. Each finds more of the ports that are at their threshold, or none and it is exact; for
equal ports one is enough."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SharedBuffer(TailDrop):
    """Tail drop at a dynamic threshold: a port may hold alpha times the free memory of its switch (Choudhury and Hahne,
    IEEE/ACM Transactions on Networking 6(2), 1998), and never more than its `buffer`.

    n ports that overflow settle at Q = alpha B / (1 + alpha n) each, with B / (1 + alpha n) of B free. What is free is
    that at the end of the step, when all ports hold what they then may: F = B - sum of min(x, alpha F) over the ports
    of a switch, for what would stand there, x, without a threshold. It is solved by Newton's method, which from too
    little free comes to the solution of this concave equation from below. A threshold of the step before would
    oscillate, from alpha n = 1 on. A port above a threshold that falls keeps what it has, and takes nothing.

    Smooth almost everywhere.

    Attributes:
        memory: [L] bytes that the ports of the switch at the link's tail share; equal for all ports of a switch.
        alpha: [L] the part of what is free that a port may hold.
    """

    shares: ClassVar[bool] = True
    memory: Array
    alpha: Array

    def inside(self, unit: Array, dt: Array, none: float) -> Self:
        """The same with sizes in units."""
        return dataclasses.replace(super().inside(unit, dt, none), alpha=jnp.append(self.alpha, 1.0))

    def bound(self, stands: Array, tail: Array | None) -> Array:
        """The threshold."""
        assert tail is not None

        def by_switch(x: Array) -> Array:
            return jnp.zeros_like(x).at[tail].add(x)[tail]

        free = jnp.maximum(self.memory - by_switch(stands), 0.0)
        for _ in range(ROUNDS):
            full = stands > self.alpha * free
            others, part = jnp.moveaxis(
                by_switch(jnp.stack([jnp.where(full, 0.0, stands), jnp.where(full, self.alpha, 0.0)], -1)), -1, 0
            )
            free = jnp.maximum(self.memory - others, 0.0) / (1.0 + part)
        return jnp.minimum(self.alpha * free, self.buffer)
