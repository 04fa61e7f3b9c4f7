"""Token buckets: what a shaped class may send, and what a policed class may bring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.problem import Problem
from fabsim.engine.simulate import Trace, simulate
from fabsim.models.bucket import Bucket
from fabsim.models.model import Model
from fabsim.topology import single_switch
from fabsim.typing import Array
from fabsim.workload import assemble
from tests.small import RATE, case, slopes, wire
from tests.test_classes import LAST, classed, port, with_classes

STAR = single_switch(4, rate=RATE, latency=1e-6)
DOWN, NIC = port(STAR, "leaf0->h0"), port(STAR, "h1->leaf0")
R, B = 0.2 * RATE, 5e5
STEPS = 400
FREE = 1e15


def bucket(links: list[int], rate: float = R, burst: float = B, classes: int = 1, dtype: str = "float32") -> Bucket:
    """Buckets of the last class at some links."""
    at = np.array(links) + (classes - 1) * STAR.links
    found = [np.full(classes * STAR.links, FREE) for _ in range(2)]
    for side, value in zip(found, (rate, burst), strict=True):
        side[at] = value
    return Bucket(*(jnp.asarray(side, dtype) for side in found))


def alone(links: list[int], what: str = "shape", size: float = 2e6, **given: float) -> tuple[Trace, Problem]:
    """Two flows of one class into host 0, the second much later, with buckets at some links."""
    problem, model = case(STAR, assemble([1, 1], [0, 0], size, start=[0.0, 3e-4]), window=given.pop("window", 1e12))
    model = with_classes(model, (0,), [1.0], **{what: bucket(links, **given)})
    return simulate(problem, model, steps=STEPS, every=1), problem


def sent(trace: Trace, link: int) -> np.ndarray:
    """[T] bytes that have left a link, by the end of each step."""
    return np.cumsum(np.asarray(trace.frames.sent[:, link], float))


@pytest.mark.parametrize("link", [DOWN, NIC])
def test_a_shaped_class(link: int) -> None:
    """At line rate for b / (C - r), then at r: complete after (S - b) / r, at a switch and at a sender alike; and what
    has left by any time since any other is within b + r t (Cruz, 1991), and meets it."""
    trace, problem = alone([link])
    dt, late = float(problem.dt), 0 if link == NIC else 1  # steps until the bytes are there
    done = (wire(2e6) - B) / R
    assert float(trace.completion[0]) == pytest.approx(done + LAST, rel=1e-5)
    out = sent(trace, link)
    time = np.arange(1, 100) * dt
    np.testing.assert_allclose(out[late : late + 99], np.minimum(RATE * time, B + R * time), rtol=1e-4)
    begins = np.append(0.0, out)
    for span in (1, 7, 50, 250):
        most = (begins[span:] - begins[:-span]).max()
        assert most <= min(B + R * span * dt, RATE * span * dt) * (1 + 1e-5)
    assert (begins[7:] - begins[:-7]).max() == pytest.approx(7 * RATE * dt, rel=1e-4)  # the second flow: full again


def test_the_bucket_is_as_full_as_the_pause_was_long() -> None:
    """A second flow, t after the first has ended with an empty bucket, finds r t tokens."""
    pause = 3e-5
    first = (wire(2e6) - B) / R
    flows = assemble([1, 1], [0, 0], [2e6, 1.5e6], start=[0.0, first + pause])
    problem, model = case(STAR, flows)
    model = with_classes(model, (0,), [1.0], shape=bucket([NIC]))
    done = simulate(problem, model, steps=STEPS, every=1).completion - LAST
    assert R * pause < B
    np.testing.assert_allclose(done, [first, first + pause + (wire(1.5e6) - R * pause) / R], rtol=1e-5)


def test_a_policed_class_loses_what_exceeds() -> None:
    """Of a steady inflow of C at most b + r t comes in; exactly the rest is cut, and goes on as headers."""
    trace, problem = alone([DOWN], "police", size=1e8)
    dt = float(problem.dt)
    cut = np.cumsum(np.asarray(trace.frames.dropped[:, DOWN], float))
    for steps in (50, 120, 300):
        time = (steps - 1) * dt  # the first step's bytes come in the second
        assert cut[steps - 1] == pytest.approx((RATE - R) * time - B, rel=2e-5)
    assert cut[int(B / (RATE - R) / dt)] == 0.0
    assert float(trace.frames.peak[:, DOWN].max()) < 1e-3 * B  # what comes in goes straight through


def test_shaped_beside_an_open_class() -> None:
    """A class that goes first leaves a shaped one its rate; and what a shaped class may not send, others have."""
    flows = assemble([1, 2], [0, 0], [4e6, 2e6])
    problem, model = classed(STAR, flows, [0, 1], (1, 0))
    model = replace(model, classes=replace(model.classes, shape=bucket([DOWN], burst=0.0, classes=2)))
    trace = simulate(problem, model, steps=STEPS, every=1)
    assert trace.frames.by_class is not None
    first, second = np.asarray(trace.frames.by_class.sent)[10:90, :, DOWN].T / (RATE * float(problem.dt))
    np.testing.assert_allclose(second, R / RATE, rtol=1e-4)
    np.testing.assert_allclose(first, 1 - R / RATE, rtol=1e-4)
    done = [wire(4e6) / (RATE - R), wire(2e6) / R]
    np.testing.assert_allclose(trace.completion - LAST, done, rtol=1e-4)


def test_slopes_by_rate_and_burst() -> None:
    """By what shapes and what polices, against differences, from one sweep over all of them."""
    with jax.enable_x64(True):
        flows = assemble([1, 2, 3, 3], [0, 0, 0, 1], [3e5, 2.6e5, 2.2e5, 1.7e5], start=[0.0, 0.3e-6, 0.7e-6, 1e-6])
        problem, model = classed(STAR, flows, [0, 1, 1, 0], (0, 0), (2, 1), window=2e5, dtype="float64")
        both = {
            "shape": bucket([DOWN], 0.31 * RATE, 1.1e5, 2, "float64"),
            "police": bucket([DOWN], 0.4 * RATE, 2.3e5, 2, "float64"),
        }
        model = replace(model, classes=replace(model.classes, **both))

        def total(problem: Problem, model: Model[Any]) -> Array:
            return simulate(problem, model, steps=120, every=20).completion.sum() * 1e6

        leaves = {f"{kind}.{name}": at(kind, name) for kind in both for name in ("rate", "burst")}
        values, found = slopes(total, problem, model, leaves)
    assert np.isfinite(values).all()
    assert found["shape.rate"][1] < -1
    assert found["shape.burst"][1] < -1
    for leaf, (got, want) in found.items():
        assert got == pytest.approx(want, rel=1e-3, abs=1e-6), leaf


def at(kind: str, name: str) -> Any:
    """Picks a field of a bucket."""
    return lambda model: getattr(getattr(model.classes, kind), name)
