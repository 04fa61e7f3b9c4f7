"""Flows to links and back: `load` sums what subflows bring to each link, `read` gives each subflow its link's value.

Flows that leave the same leaf by the same K paths share a *row* of K links. So the incidence is held in two stages,
(hop, flow) -> row and row -> links: flows meet their row by whole rows of K contiguous lanes (fast on every
backend), and only the few rows are scattered to links. Where no two flows share a row (single hashed paths), the
rows are simply the links, and the same two lines are the element table.

`load` and `read` are adjoint where all multiplicities are one: <load(x), v> = <x, read(v)>.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

IN_BOUNDS = "promise_in_bounds"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Incidence:
    """Which link a subflow uses at each hop. Shapes: H hops, F flows, K lanes (paths), R rows, L links,
    P ports of a host (planes; the lanes of a plane stand together, K / P of them).

    Attributes:
        row: [H, F] row of a flow at a hop.
        links: [R, K] link of each lane of a row; L stands for "no link".
        many: [R, K] subflows that one entry stands for, per link (all ones unless the problem is folded).
        last: [F, P] the link that the lanes of a plane share at the end (the receiver's down link).
        last_many: [F, P] subflows that one entry stands for, for that link.
    """

    row: jax.Array
    links: jax.Array
    many: jax.Array
    last: jax.Array
    last_many: jax.Array


def incidence(
    path: NDArray[np.integer],
    last: NDArray[np.integer],
    none: int,
    share_rows: bool = True,
    dtype: str = "float32",
) -> Incidence:
    """Build the two stages from path [H, F, K] and last [F, P].

    `none` is the number that stands for "no link"; `share_rows=False` gives the plain element table.
    """
    hops, flows, lanes = path.shape
    flat = np.ascontiguousarray(path.reshape(hops * flows, lanes)).astype(np.int32)
    links, row = np.unique(flat, axis=0, return_inverse=True) if share_rows else (flat, np.arange(len(flat)))
    # Filled up with "no link" to few different lengths: another draw of paths should not be another program.
    step = 2 ** max(len(links).bit_length() - 3, 0)
    links = np.pad(links, [(0, -len(links) % step), (0, 0)], constant_values=none)
    return Incidence(
        row=jnp.asarray(np.asarray(row, np.int32).reshape(hops, flows)),
        links=jnp.asarray(links.reshape(-1, lanes)),
        many=jnp.asarray(np.ones((links.size // lanes, lanes), dtype)),
        last=jnp.asarray(np.asarray(last, np.int32)),
        last_many=jnp.asarray(np.ones(last.shape, dtype)),
    )


def load(at: Incidence, fabric: jax.Array, egress: jax.Array, links: int) -> jax.Array:
    """Sum per link. fabric [H, F, C, K], egress [F, C, P] -> [L + 1, C]; entry L collects what has no link."""
    hops, flows, channels, lanes = fabric.shape
    rows = at.links.shape[0]
    by_row = (
        jnp.zeros((rows, channels, lanes), fabric.dtype)
        .at[at.row.reshape(-1)]
        .add(fabric.reshape(hops * flows, channels, lanes), mode=IN_BOUNDS)
    )
    by_link = jnp.moveaxis(by_row * at.many[:, None, :], 1, 2)
    total = jnp.zeros((links + 1, channels), fabric.dtype).at[at.links].add(by_link, mode=IN_BOUNDS)
    return total.at[at.last].add(jnp.moveaxis(egress * at.last_many[:, None, :], 1, 2), mode=IN_BOUNDS)


def read(at: Incidence, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Give each subflow its link's value. value [L + 1, C] -> fabric [H, F, C, K], egress [F, C, P]."""
    by_row = jnp.moveaxis(value[at.links], 2, 1)
    return by_row[at.row], jnp.moveaxis(value[at.last], 2, 1)
