"""Flows as the sending ports have them: a row a port, a column a flow."""

from __future__ import annotations

from fabsim.engine.setup import Setup
from fabsim.typing import Array


def table(s: Setup, x: Array) -> Array:
    """[F, P] -> [ports, M], zero where a port has fewer flows."""
    # A mask: of a padded copy the compiler makes no vector instructions in a batch.
    return x.reshape(-1).at[s.problem.port_flows].get(mode="fill", fill_value=0.0)


def rows(s: Setup, x: Array) -> Array:
    """[ports, M] -> [F, P]."""
    return x[s.problem.port, s.problem.place]
