"""Faults on the way: closed forms, conservation, gradients by the times of events, and no compilation for new ones."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.faults import Faults, faults
from fabsim.engine.problem import Problem
from fabsim.engine.run import Run, run
from fabsim.engine.simulate import keep_going, simulate
from fabsim.errors import InputError, Stopped
from fabsim.models.ideal import Ideal
from fabsim.models.model import Model
from fabsim.topology import Fabric, find_links, leaf_spine, multi_plane, single_switch
from fabsim.workload import assemble
from tests.small import RATE, case, wire
from tests.test_laws import FABRICS, check_conserved
from tests.test_pfc import pausing
from tests.test_taildrop import LOAD, losing

PAIR = single_switch(2, rate=RATE, latency=1e-6)
WIDE = leaf_spine(2, 4, 4, rate=RATE, latency=1e-6)
SIZE, NEVER = 5e6, 1.0
BEHIND = 4e-6 + 3 * 4150 / RATE
"""Seconds that the last byte needs over four links, behind its injection."""


def events(fabric: Fabric, links: Sequence[str], *, react: float = NEVER, **columns: Any) -> Faults:
    """A schedule, an event for each pattern."""
    return faults([find_links(fabric, link) for link in links], fabric.links, react=react, **columns)


@functools.cache
def pair(size: float = SIZE) -> tuple[Problem, Model[Any]]:
    """One flow over one path."""
    return case(PAIR, assemble([0], [1], [size]), ring=64)


def completion(made: tuple[Problem, Model[Any]], schedule: Faults | None, **options: Any) -> Run:
    """A run with a schedule."""
    return run(replace(made[0], faults=schedule), made[1], progress=False, **options)


@functools.cache
def healthy() -> float:
    """Seconds of the flow of `pair` when nothing happens."""
    return float(completion(pair(), None).trace.completion[0])


def late(link: str, **columns: Any) -> float:
    """Seconds by which an event from 20.4 us on delays the flow of `pair`."""
    return float(completion(pair(), events(PAIR, [link], begin=20.4e-6, **columns)).trace.completion[0]) - healthy()


@pytest.mark.parametrize("link", ["leaf0->h1", "h0->leaf0"])
@pytest.mark.parametrize("down", [0.3e-6, 10e-6, 37.3e-6])
def test_a_dead_link_on_the_only_path_delays_by_as_long(link: str, down: float) -> None:
    assert late(link, end=20.4e-6 + down, speed=0.0) == pytest.approx(down, abs=1e-9)


def test_an_event_that_changes_nothing_changes_nothing() -> None:
    assert late("leaf0->h1", end=60.4e-6, speed=1.0) == 0


@pytest.mark.parametrize("speed", [0.25, 0.5])
def test_a_slow_link_delays_by_what_it_does_not_carry(speed: float) -> None:
    assert late("leaf0->h1", end=60.4e-6, speed=speed) == pytest.approx(40e-6 * (1 - speed), abs=1e-9)


def test_senders_that_know_stay_away_until_they_know_better() -> None:
    """What stands at the port 20 us after its death comes back as lost; sending begins again 20 us after it is up. So
    the port, one link behind the sender, is idle from the death on until then and a link's time more."""
    schedule = events(PAIR, ["leaf0->h1"], begin=20.4e-6, end=57.7e-6, speed=0.0, react=20e-6)
    trace = completion(pair(), schedule).trace
    assert trace.completion[0] - healthy() == pytest.approx(37.3e-6 + 20e-6 + 1e-6, abs=1e-8)
    assert trace.frames.again.sum() == pytest.approx(RATE * 21e-6, rel=1e-3)  # what was sent from 19.4 to 40.4 us


def test_a_flapping_link_gives_its_duty() -> None:
    """Down for 10 us of each 50: 0.8 of the rate, to the byte."""
    size = 5e7
    trace = completion(
        pair(size), events(PAIR, ["leaf0->h1"], begin=20.4e-6, period=50e-6, down=10e-6, speed=0.0)
    ).trace
    work = wire(size) / RATE - (20.4e-6 - 1e-6)  # left at its beginning, a link behind the sender
    whole = np.floor(work / 40e-6)
    assert whole == 24
    want = 20.4e-6 + whole * 50e-6 + 10e-6 + (work - whole * 40e-6) + healthy() - wire(SIZE) / RATE - 1e-6
    assert trace.completion[0] == pytest.approx(want, rel=1e-5)


def test_a_path_less_of_four() -> None:
    """Four flows fill four uplinks; without one they get three quarters, and what was lost is sent again."""
    made = case(WIDE, assemble([0, 1, 2, 3], [4, 5, 6, 7], [2e7] * 4), ring=64)
    plain = completion(made, None).trace.completion
    for link in ("leaf0->spine0", "spine0->leaf1", "spine0"):
        trace = completion(made, events(WIDE, [link], begin=30e-6, speed=0.0, react=10e-6)).trace
        lost = float(trace.frames.again.sum()) / 4
        assert 0.25 * RATE * 10e-6 < lost < 0.25 * RATE * 15e-6
        # From 40 us on at three quarters: what would have been sent by then, and again what was lost.
        rest = plain - BEHIND - 40e-6
        want = 40e-6 + (rest + lost / RATE) * 4 / 3 + BEHIND
        np.testing.assert_allclose(trace.completion, want, atol=0.2e-6)
        np.testing.assert_allclose(trace.frames.sent[-20:-10, find_links(WIDE, "leaf0->spine0")], 0.0)


def test_fair_rates_know_slow_links() -> None:
    """The ideal law never queues at a link that slows down."""
    made = case(PAIR, assemble([0], [1], [SIZE]), transport=Ideal(jnp.float32(1.0)))
    trace = completion(made, events(PAIR, ["leaf0->h1"], begin=20e-6, end=60e-6, speed=0.5)).trace
    assert trace.frames.peak.max() < 0.51 * RATE * 2e-6
    assert trace.completion[0] - healthy() == pytest.approx(20e-6, abs=1.1e-6)


def test_a_dead_plane_leaves_the_others() -> None:
    """One of two ports of a host is dead: the other one takes all."""
    fabric = multi_plane(leaves=2, spines=2, hosts_per_leaf=2, planes=2, rate=RATE, latency=1e-6)
    flows = assemble([0], [2], [SIZE])
    made = case(fabric, flows)
    plain = completion(made, None).trace.completion[0]
    port = fabric.link_name(int(np.asarray(made[0].port_link)[0, 0]))
    got = completion(made, events(fabric, [port], begin=20e-6, speed=0.0, react=10e-6)).trace
    assert got.completion[0] == pytest.approx(20e-6 + 2 * (plain - BEHIND - 20e-6) + BEHIND, abs=1e-8)
    assert got.frames.again.sum() == 0


def test_losses_on_the_way_come_back_by_the_timeout() -> None:
    """A loss of 0.1 for 40 us: a tenth of what crosses in this time is sent again."""
    made = losing(pair(), timeout=100e-6)
    trace = completion(made, events(PAIR, ["leaf0->h1"], begin=20e-6, end=60e-6, loss=0.1)).trace
    assert trace.frames.again.sum() == pytest.approx(0.1 * RATE * 40e-6, rel=1e-3)
    with pytest.raises(InputError, match="recovery"):
        completion(pair(), events(PAIR, ["leaf0->h1"], begin=20e-6, loss=0.1))


def test_who_waits_for_ever() -> None:
    with pytest.raises(Stopped, match=r"flows 1 .* down and stay down"):
        completion(pair(), events(PAIR, ["leaf0->h1"], begin=20e-6, speed=0.0, react=10e-6))
    flap = {"period": [1e9, 1e-4], "down": [1e9, 1e-5]}  # of another link, which helps nobody
    with pytest.raises(Stopped, match="down and stay down"):
        completion(pair(), events(PAIR, ["leaf0->h1", "h1->leaf0"], begin=20e-6, speed=0.0, react=10e-6, **flap))
    late_again = events(PAIR, ["leaf0->h1"], begin=20e-6, end=2e-3, speed=0.0, react=10e-6)
    assert completion(pair(), late_again).trace.completion[0] > 2e-3


@pytest.mark.parametrize("kind", ["trim", "timeout", "pauses"])
def test_conservation(kind: str) -> None:
    """Through flaps, deaths that become known, and back."""
    schedule = events(
        FABRICS["two tiers"], ["leaf0->spine0", "spine1->leaf1", "leaf1->h3", "h1"],
        begin=[10.3e-6, 20e-6, 60.5e-6, 31e-6], end=[50e-6, 1.0, 70e-6, 1.0], speed=[0.0, 0.0, 0.0, 0.3],
        period=[1e9, 30e-6, 1e9, 1e9], down=[1e9, 11.7e-6, 1e9, 1e9], react=5e-6,
    )  # fmt: skip

    def change(model: Model[Any]) -> Model[Any]:
        if kind == "trim":
            return model
        if kind == "pauses":
            return pausing(model, xoff=2e4, headroom=6e4)
        return losing((None, model), timeout=20e-6)[1]  # type: ignore[arg-type]

    assert (check_conserved(LOAD, "float32", 1e-6, change, schedule) > 10) == (kind != "trim")


def test_the_driver_and_the_pure_function_agree_and_places_and_times_need_no_compilation() -> None:
    problem, model = case(WIDE, assemble([0, 1, 2, 3], [4, 5, 6, 7], [2e6] * 4), window=3e5, buffer=5e4)
    compiled = 0
    found = []
    for link, at, left in (("spine0", 11.3e-6, 0.0), ("leaf0->spine2", 20e-6, 0.3), ("h3", 0.0, 0.9)):
        faulty = replace(problem, faults=events(WIDE, [link], begin=at, end=4 * at + 2e-6, speed=left, react=5e-6))
        trace = simulate(faulty, model, steps=200)
        compiled = compiled or keep_going._cache_size()
        found.append(trace.completion)
    assert keep_going._cache_size() == compiled
    assert len({tuple(x.tolist()) for x in found}) == 3
    np.testing.assert_array_equal(completion((faulty, model), faulty.faults).trace.completion, found[-1])


def test_gradients_by_times_and_speeds() -> None:
    """Of completions over two events that overlap, against central differences."""
    with jax.enable_x64(True):
        problem, model = case(
            WIDE, assemble([0, 1, 4, 5], [4, 4, 0, 6], [2e5, 3e5, 5e5, 4e5]), window=3e5, buffer=8e4, dtype="float64"
        )
        schedule = events(
            WIDE, ["leaf0->spine0", "leaf1->h4", "h5->leaf1"], begin=[2.33e-6, 3.21e-6, 1.27e-6],
            end=[6.58e-6, 12.46e-6, 1e9], speed=[0.0, 0.5, 0.0], period=[1e9, 1e9, 4.7e-6], down=[1e9, 1e9, 1.3e-6],
            react=1.7e-6, dtype="float64",
        )  # fmt: skip

        def total(schedule: Faults) -> jax.Array:
            done = simulate(replace(problem, faults=schedule), model, steps=80, every=20, checkpoint=False).completion
            return done.sum() * 1e6

        slope = jax.jit(jax.value_and_grad(total), compiler_options={"xla_backend_optimization_level": 0})
        gradient = slope(schedule)[1]
        places: dict[str, Any] = {"begin": 0, "end": 1, "speed": 1, "down": 2, "react": 0}
        for name, number in places.items():
            column = getattr(schedule, name)
            h = 1e-5 if name == "speed" else 1e-11
            ends = [slope(replace(schedule, **{name: column.at[number].add(sign * h)}))[0] for sign in (1, -1)]
            slopes = float(getattr(gradient, name)[number]), float(ends[0] - ends[1]) / (2 * h)
            assert abs(slopes[0]) > 1
            assert slopes[0] == pytest.approx(slopes[1], rel=1e-6)
