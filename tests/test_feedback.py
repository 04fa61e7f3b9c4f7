"""What marked bytes waited, where lanes meet."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.feedback import as_feedback, tell_apart

GOOD, BAD = (8.0, 0.0, 0.0, 8.0), (2.0, 0.0, 2.0, 40.0)  # data, trimmed, marked, waited: 1 and 20 steps a byte


def told(lanes: list[tuple[float, ...]], last: float = 0.0) -> tuple[float, float]:
    """Steps that all bytes, and marked ones, waited; `last` of them at the port that all lanes share."""
    onto = jnp.asarray(np.array(lanes).T[None])
    reached = onto.sum(-1).T
    reached = reached.at[3].add(last * reached[0])
    feedback = as_feedback(tell_apart(reached, onto))
    assert feedback.marked_delay is not None
    return float(feedback.delay[0]), float(feedback.marked_delay[0])


def test_marked_bytes_waited_as_long_as_those_of_their_lane() -> None:
    assert told([GOOD, BAD]) == pytest.approx((4.8, 20.0))
    assert told([BAD, GOOD], last=3.0) == pytest.approx((7.8, 23.0))


def test_lanes_that_are_alike_have_one_delay() -> None:
    assert told([BAD, BAD]) == pytest.approx((20.0, 20.0))
    assert told([(5.0, 0.0, 1.0, 10.0)] * 3, last=2.0) == pytest.approx((4.0, 4.0))


def test_nothing_waits_where_nothing_comes() -> None:
    assert told([(0.0, 0.0, 0.0, 0.0)] * 2) == (0.0, 0.0)
