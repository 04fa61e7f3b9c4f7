"""Flows over several queue pairs: balls in bins, and one pair is plain ECMP."""

from __future__ import annotations

import numpy as np
import pytest

import fabsim
from fabsim.engine.run import run
from fabsim.errors import InputError
from fabsim.models.ideal import Ideal
from fabsim.routing import ecmp
from fabsim.topology import find_links, leaf_spine, multi_plane
from fabsim.workload import assemble
from tests.small import RATE, case, wire

HOSTS = 64
FABRIC = leaf_spine(2, HOSTS, HOSTS, rate=RATE, latency=1e-6)
ACROSS = assemble(list(range(HOSTS)), list(range(HOSTS, 2 * HOSTS)), 2e6)
UP = find_links(FABRIC, "leaf0->spine*")


def loads(pairs: int, seed: int) -> np.ndarray:
    """[64] flows on each uplink."""
    routes = ecmp(FABRIC, ACROSS, seed=seed, queue_pairs=pairs)
    return np.bincount(routes.path[:, :, 1].ravel(), routes.weight.ravel(), FABRIC.links)[UP]


@pytest.mark.parametrize(("pairs", "most"), [(1, 3.9), (8, 1.9), (64, 1.29)])
def test_balls_in_bins(pairs: int, most: float) -> None:
    """The most loaded of 64 uplinks, in the mean over 200 draws: for one and eight as in a table of 200 trials of equal
    flows hashed on as many uplinks; for 64, as numpy draws it."""
    found = [loads(pairs, seed) for seed in range(200)]
    assert np.mean([load.max() for load in found]) == pytest.approx(most, abs=0.05 if pairs > 1 else 0.15)
    random = np.random.default_rng(1).multinomial(HOSTS * pairs, np.full(HOSTS, 1 / HOSTS), 2000).max(1).mean() / pairs
    assert np.mean([load.max() for load in found]) == pytest.approx(random, rel=0.03)
    np.testing.assert_allclose([load.sum() for load in found], HOSTS)


def test_the_first_pair_is_where_a_single_one_would_be() -> None:
    for fabric in (FABRIC, multi_plane(4, 2, 4, HOSTS, rate=RATE / 4, latency=1e-6)):
        one, eight = (ecmp(fabric, ACROSS, seed=3, queue_pairs=pairs) for pairs in (1, 8))
        np.testing.assert_array_equal(one.path[:, 0], eight.path[:, 0])
        np.testing.assert_array_equal(eight.weight, 0.125)
        assert (one.path.shape[1], eight.path.shape[1]) == (1, 8)


def test_the_last_byte_is_that_of_the_fullest_link() -> None:
    """Rates that are fair to all: a flow over the fullest link is as slow as that to the end."""
    problem, model = case(FABRIC, ACROSS, ecmp(FABRIC, ACROSS, seed=1, queue_pairs=8), transport=Ideal(np.float32(1.0)))
    last = run(problem, model, progress=False).trace.completion.max()
    assert last == pytest.approx(loads(8, 1).max() * wire(2e6) / RATE + 4e-6, rel=0.02)


def test_in_a_scenario() -> None:
    given = {
        "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4, "rate": "400 Gbps",
                   "latency": "1 us"},
        "routing": {"kind": "ecmp", "queue_pairs": 4},
        "traffic": [{"kind": "shift", "size": "1 MB", "by": 4}],
    }  # fmt: skip
    assert fabsim.load(given).compile()[1].split.weight.shape == (8, 4)
    single = fabsim.run(fabsim.load(given, {"routing.queue_pairs": 1}), progress=False)
    plain = fabsim.run(fabsim.load(given, {"routing": {"kind": "ecmp"}}), progress=False)
    np.testing.assert_array_equal(single.completion, plain.completion)
    with pytest.raises(InputError, match="queue_pairs"):
        fabsim.load(given, {"routing.queue_pairs": 0}).compile()
    with pytest.raises(InputError, match="queue_pairs"):
        ecmp(FABRIC, ACROSS, seed=1, queue_pairs=0)
