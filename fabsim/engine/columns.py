"""Flows as the sending ports have them: a row a port, a column a flow."""

from __future__ import annotations

import jax.numpy as jnp

from fabsim.engine.setup import Setup
from fabsim.typing import Array


def table(s: Setup, x: Array) -> Array:
    """[F, P] -> [ports, M], zero where a port has fewer flows."""
    return jnp.append(x.reshape(-1), 0.0)[s.problem.port_flows]


def rows(s: Setup, x: Array) -> Array:
    """[ports, M] -> [F, P]."""
    return x[s.problem.port, s.problem.place]
