"""The incidence of flows and links: load and read are adjoint, and its two layouts are one."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import fabric_hops
from fabsim.engine.simulate import simulate
from fabsim.routing.choose import all_paths, drawn
from fabsim.topology import Change, degrade, fat_tree, leaf_spine
from fabsim.workload import assemble, incast
from fabsim_kernels.load import Incidence, incidence, load, read
from tests.small import RATE, case

FABRIC = degrade(leaf_spine(3, 2, 2, rate=RATE, latency=1e-6, uplinks=2), [Change("leaf0->spine1#1", speed=0)])
FLOWS = assemble([0, 0, 1, 2, 3, 5, 4], [2, 5, 0, 3, 1, 4, 0], 3e5)
"""With a flow below one leaf, so that paths have two lengths, and lanes that stand twice because one is dead."""


def of_routes(share_rows: bool) -> tuple[Incidence, int]:
    """The incidence of all paths of FLOWS, and the number of links."""
    routes = all_paths(FABRIC, FLOWS)
    path, _ = fabric_hops(routes, FABRIC.links)
    return incidence(path, routes.path[:, :1, -1], FABRIC.links, share_rows, "float64"), FABRIC.links


def test_load_and_read_are_adjoint() -> None:
    rng = np.random.default_rng(0)
    for share_rows in (True, False):
        at, links = of_routes(share_rows)
        hops, flows = at.row.shape
        x = rng.random((hops, flows, 2, at.links.shape[1])).astype(np.float32)
        y = rng.random((flows, 2, 1)).astype(np.float32)
        v = rng.random((links + 1, 2)).astype(np.float32)
        loaded = np.asarray(load(at, jnp.asarray(x), jnp.asarray(y), links), np.float64)
        seen_x, seen_y = read(at, jnp.asarray(v))
        left = (loaded * v).sum()
        right = (x.astype(float) * np.asarray(seen_x)).sum() + (y.astype(float) * np.asarray(seen_y)).sum()
        np.testing.assert_allclose(left, right, rtol=1e-6)


def test_load_is_a_sum_over_subflows() -> None:
    path, _ = fabric_hops(all_paths(FABRIC, FLOWS), FABRIC.links)
    last = all_paths(FABRIC, FLOWS).path[:, :1, -1]
    rng = np.random.default_rng(1)
    x, y = rng.random((path.shape[0], path.shape[1], 1, path.shape[2])), rng.random((len(last), 1, 1))
    want = np.zeros(FABRIC.links + 1)
    np.add.at(want, path, x[:, :, 0])
    np.add.at(want, last, y[:, 0])
    for share_rows in (True, False):
        at, links = of_routes(share_rows)
        got = load(at, jnp.asarray(x, "float32"), jnp.asarray(y, "float32"), links)
        np.testing.assert_allclose(got[:, 0], want, rtol=1e-6)


def test_rows_are_shared_by_the_flows_of_a_leaf() -> None:
    shared, _ = of_routes(True)
    plain, _ = of_routes(False)
    assert shared.row.max() < plain.row.max() == shared.row.size - 1
    np.testing.assert_array_equal(shared.links[shared.row], plain.links[plain.row])


def test_multiplicity_stands_for_equal_subflows() -> None:
    """Three equal flows are one flow with multiplicity three on its links."""
    path, last = np.array([[[0, 1]]]), np.array([[2]])
    three = incidence(np.repeat(path, 3, 1), np.repeat(last, 3, 0), 3, True, "float32")
    one = incidence(path, last, 3, True, "float32")
    one = Incidence(one.row, one.links, 3 * one.many, one.last, 3 * one.last_many)
    x, y = jnp.array([[[[0.25, 0.5]]]]), jnp.array([[[2.0]]])
    np.testing.assert_allclose(load(one, x, y, 3), load(three, jnp.repeat(x, 3, 1), jnp.repeat(y, 3, 0), 3), rtol=1e-6)


def test_both_layouts_simulate_alike() -> None:
    """An incast that fills its buffers, over all paths of a fabric and over drawn ones."""
    flows = incast(8, 2e5, senders=[1, 3, 4, 5, 6, 7], receiver=0)
    fabric = fat_tree(4, rate=RATE, latency=0.5e-6)
    for routes in (all_paths(fabric, flows), drawn(fabric, flows, seed=1, entropies=8)):
        traces = [
            simulate(*case(fabric, flows, routes, window=3e5, buffer=2e5, share_rows=rows), steps=60, every=20)
            for rows in (True, False)
        ]
        assert np.isfinite(traces[0].completion).all()
        assert traces[0].frames.dropped.sum() > 1e5
        for name in ("completion", "sender_completion", "start"):
            np.testing.assert_allclose(getattr(traces[0], name), getattr(traces[1], name), rtol=1e-5)
        np.testing.assert_allclose(traces[0].frames.sent, traces[1].frames.sent, rtol=1e-4, atol=1)
