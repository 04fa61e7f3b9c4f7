"""Where flows meet: what a device must hear from the others when the flows of a problem are spread over several.

Each function hands back what it is given where a problem is on one device (`axis` is None); that program is not
touched.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fabsim.engine.problem import Problem
from fabsim.typing import Array


def total(p: Problem, x: Array) -> Array:
    """The sum over all devices."""
    return x if p.axis is None else jax.lax.psum(x, p.axis)


def least(p: Problem, x: Array) -> Array:
    """The smallest over all devices (gathered, since JAX's pmin has no derivative)."""
    return x if p.axis is None else jax.lax.all_gather(x, p.axis).min(0)


def most(p: Problem, x: Array) -> Array:
    """The largest over all devices."""
    return x if p.axis is None else jax.lax.all_gather(x, p.axis).max(0)


def everyone(p: Problem, x: Array) -> Array:
    """[F] -> [F of all devices] one device's flows after the other's."""
    return x if p.axis is None else jax.lax.all_gather(x, p.axis, tiled=True)


def own(p: Problem, x: Any) -> Any:
    """The same arrays, which all devices have in common, as this device's own.

    For what only some devices look at (under a condition): the derivative by something in common is a sum over all
    devices, and those that do not look would never come to it.
    """
    return x if p.axis is None else jax.lax.pcast(x, p.axis, to="varying")


def all_flows(p: Problem) -> int:
    """Flows of all devices."""
    return p.flows if p.axis is None else p.flows * jax.lax.axis_size(p.axis)


def of_leader(p: Problem, x: Array) -> Array:
    """[F] what the leader of each flow has, 0 for none."""
    return jnp.append(everyone(p, x), jnp.zeros((), x.dtype))[p.leader]
