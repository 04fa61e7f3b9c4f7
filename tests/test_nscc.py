"""NSCC: each branch of the law, and what it does on one bottleneck."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.engine.problem import Problem, build
from fabsim.engine.simulate import simulate
from fabsim.models.acks import delays_apart
from fabsim.models.chance import dice, roll, scatter
from fabsim.models.model import Links, Model, Split
from fabsim.models.nscc import Nscc, nscc
from fabsim.models.protocol import Feedback, Sender
from fabsim.models.queue import TrimQueue
from fabsim.routing import all_paths
from fabsim.topology import single_switch
from fabsim.topology.baseline import baseline, default_queues
from fabsim.workload import incast

RTT, RATE, DT = 12e-6, 50e9, 1e-6
UNIT = RATE * DT
PACKET = 4150 / UNIT
LAW = nscc(RTT, RATE, 4086.0, chance=0.0)
A = RATE * RTT / 150e3


def told(in_flight: float = 10.0) -> Sender:
    one = jnp.ones(1)
    packet = 4150 / UNIT * one
    return Sender(
        jnp.asarray(UNIT),
        jnp.asarray(DT),
        one,
        (RTT / DT - 4150 / UNIT) * one,
        packet,
        one,
        in_flight * one,
        jnp.zeros(1, jnp.uint32),
    )


def back(acked: float = 1.0, nacked: float = 0.0, marked: float = 0.0, delay: float = 0.0) -> Feedback:
    one = jnp.ones(1)
    return Feedback(acked * one, nacked * one, marked * one, delay * one)


def window_after(feedback: Feedback, **state: float) -> float:
    """Bytes of the window after one step from a window of 6 units."""
    start = replace(LAW.init(told()), window=jnp.full(1, 6.0), adapt_in=jnp.full(1, 9.0))
    start = replace(start, **{name: jnp.full(1, value) for name, value in state.items()})
    return float(LAW.step(start, feedback, told()).window[0]) * UNIT


STEADY = 0.15 * A * 4086 * DT / RTT


def test_grows_in_proportion_to_what_is_missing_from_the_target() -> None:
    target = 0.75 * RTT
    for delay in (2e-6, 5e-6, 8e-6):
        gain = 4 * A * (target / 12e-6) * 4086 * (target - delay) / target
        grown = window_after(back(delay=delay / DT)) - 6 * UNIT
        assert grown == pytest.approx(gain * UNIT / (6 * UNIT) + STEADY, rel=1e-3)


def test_grows_fairly_above_the_target_without_marks() -> None:
    grown = window_after(back(delay=10.0)) - 6 * UNIT
    assert grown == pytest.approx(5 * A * 4086 / 6 + STEADY, rel=1e-3)


def test_grows_fast_after_a_window_of_no_delay() -> None:
    grown = window_after(back(delay=0.0), low=7.0) - 6 * UNIT
    assert grown == pytest.approx(0.25 * A * UNIT + STEADY, rel=1e-3)


def test_marks_below_the_target_are_left_to_the_balancer() -> None:
    assert window_after(back(marked=1.0, delay=5.0), average=20.0) == pytest.approx(6 * UNIT + STEADY, rel=1e-5)


@pytest.mark.parametrize(("marked", "goes_on"), [(0.1, True), (0.5, False)])
def test_a_slow_mark_ends_the_fast_increase_though_nothing_is_cut(marked: float, goes_on: bool) -> None:
    """A packet is a twelfth of a unit: a tenth of one is none. The smoothed delay is below the target."""
    start = replace(LAW.init(told()), window=jnp.full(1, 6.0), adapt_in=jnp.full(1, 9.0), low=jnp.full(1, 7.0))
    start = replace(start, rising=jnp.ones(1))
    mixed_delays = replace(back(marked=marked * PACKET, delay=0.0), marked_delay=jnp.full(1, 12.0))
    after = LAW.step(start, mixed_delays, told())
    assert bool(after.rising[0] > 0) == bool(after.low[0] > 0) == goes_on
    assert float(after.window[0]) >= 6.0


def test_cuts_by_the_smoothed_delay_once_a_round_trip_and_by_half_at_most() -> None:
    marked = back(marked=1.0, delay=12.0)
    over = (12.0 - 9.0) / 12.0
    cut = window_after(marked, average=12.0)
    assert cut == pytest.approx((6 * UNIT + STEADY) * (1 - 0.8 * over), rel=1e-2)
    assert window_after(marked, average=12.0, since_cut=3.0) == pytest.approx(6 * UNIT + STEADY, rel=1e-5)
    assert window_after(marked, average=1e3) == pytest.approx((6 * UNIT + STEADY) / 2, rel=1e-3)


def test_a_trim_takes_its_packet_and_quick_adapt_takes_what_arrived() -> None:
    assert window_after(back(acked=0.0, nacked=0.5)) == pytest.approx(5.5 * UNIT, rel=1e-6)
    late = {"adapt_in": 0.5, "achieved": 0.4}
    assert window_after(back(acked=0.1, nacked=0.5, delay=10.0), **late) == pytest.approx(0.5 * UNIT, rel=1e-5)
    much = window_after(back(acked=1.0, nacked=0.5, marked=1.0, delay=5.0), adapt_in=0.5, achieved=2.0)
    assert much == pytest.approx(5.5 * UNIT + STEADY, rel=1e-5)


def by_packet(marked: float, asks: float, many: int) -> tuple[float, float, float]:
    """Acknowledgements of clean and of marked packets, and bytes that the former tell of, all for each packet."""
    chance, waits = np.random.default_rng(1).random((200_000, 2)), 0
    clean_acks = marked_acks = told = 0
    for mark, ask in chance:
        waits += 1
        if mark < marked:
            marked_acks, waits = marked_acks + 1, 0
        elif ask < asks or waits == many:
            clean_acks, told, waits = clean_acks + 1, told + waits, 0
    return clean_acks / len(chance), marked_acks / len(chance), told / len(chance)


@pytest.mark.parametrize("marked", [0.0, 0.03, 0.25, 0.7, 1.0])
@pytest.mark.parametrize("busy", [1.0, 0.4])
def test_clean_packets_share_acknowledgements_and_marked_ones_do_not(marked: float, busy: float) -> None:
    sender = told()
    start = replace(LAW.init(sender), window=jnp.full(1, 10.0))  # all in flight
    feedback = back(acked=busy, marked=marked * busy)
    heard = LAW.by_ack(start, feedback, delays_apart(feedback), sender)
    packets = busy / float(sender.packet[0])
    found = [float(x[0]) for x in (heard.clean_acks, heard.marked_acks, heard.clean)]
    found = [found[0] / packets, found[1] / packets, found[2] / busy]
    run = (1 - (1 - marked) ** 4) / marked if marked else 4.0
    assert found == pytest.approx(by_packet(marked, 1 - busy ** (1 / run), 4), abs=0.01)


def test_a_window_with_room_has_no_packet_ask() -> None:
    sender = told(in_flight=4.0)
    start = replace(LAW.init(sender), window=jnp.full(1, 10.0))
    feedback = back(acked=0.4)
    heard = LAW.by_ack(start, feedback, delays_apart(feedback), sender)
    assert float(heard.clean_acks[0]) == pytest.approx(0.4 / float(sender.packet[0]) / 4, rel=0.01)


def test_bad_paths_are_most_of_the_smoothed_delay() -> None:
    """A fifth of the packets waits 20 us and is marked, the others wait 1 us: 5 us on average, and half the samples."""
    feedback = replace(back(acked=1.0, marked=0.2, delay=4.8), marked_delay=jnp.full(1, 20.0))
    state = replace(LAW.init(told()), window=jnp.full(1, 10.0), adapt_in=jnp.full(1, 1e3))
    for _ in range(400):
        state = LAW.step(replace(state, window=jnp.full(1, 10.0)), feedback, told())
    clean = 0.2 * 0.8**4 / (1 - 0.8**4)
    assert float(state.average[0]) == pytest.approx((0.2 * 20 + clean * 1) / (0.2 + clean), rel=0.01)
    alike = replace(feedback, marked_delay=None)
    state = LAW.init(told())
    for _ in range(400):
        state = LAW.step(replace(state, window=jnp.full(1, 10.0)), alike, told())
    assert float(state.average[0]) == pytest.approx(4.8, rel=0.01)


def test_chance_has_the_mean_and_variance_of_a_binomial() -> None:
    """Of n packets in a step, many or less than one, a share p is trimmed."""
    packet = 0.1
    for packets, share in ((12.0, 0.5), (12.0, 0.01), (3.0, 0.9), (0.3, 0.1)):
        part, rest = (jnp.full(40_000, packets * packet * odds) for odds in (share, 1 - share))
        more = np.asarray(scatter(part, rest, jnp.full(40_000, packet), roll(jnp.asarray(dice(3, 40_000))))) / packet
        variance = packets * share * (1 - share)
        assert more.mean() == pytest.approx(0.0, abs=4 * (variance / 40_000) ** 0.5)
        assert more.var() == pytest.approx(variance, rel=0.05)
        assert more.max() <= packets * (1 - share) + 1e-3
        if packets > 1:
            assert more.min() >= -packets * share - 1e-3


def test_chance_is_seeded_and_another_one_for_each_flow_and_step() -> None:
    one, again, other = (dice(seed, 1000) for seed in (1, 1, 2))
    assert (one == again).all()
    assert len(np.unique(np.concatenate([one, other]))) == 2000
    first = roll(jnp.asarray(one))
    now, then = (np.asarray(x) / 2.0**32 - 0.5 for x in (first, roll(first)))
    for x, y in ((now, np.full(1000, 1.0)), (now, then), (now[1:], now[:-1])):  # mean, next step, next flow
        assert (x * y).mean() == pytest.approx(0.0, abs=0.04)


def test_a_period_does_not_end_while_marks_are_ignored() -> None:
    late = {"adapt_in": 0.5, "achieved": 0.4, "ignore": 5.0, "trimmed": 1.0}
    assert window_after(back(acked=0.1, marked=0.1, delay=10.0), **late) == pytest.approx(6 * UNIT, rel=1e-6)
    assert window_after(back(acked=0.1, delay=10.0), **late) == pytest.approx(0.5 * UNIT, rel=1e-5)


def made(senders: int, chance: float = 0.0) -> tuple[Problem, Model[Nscc]]:
    fabric = single_switch(senders + 1, rate=RATE, latency=1.5e-6)
    flows = incast(senders + 1, 1e7, senders=list(range(1, senders + 1)), receiver=0)
    base = baseline(fabric, 4150, 64)
    queues = default_queues(fabric, base.bdp, 4150)
    routes = all_paths(fabric, flows)
    real = lambda x: jnp.asarray(x, "float32")  # noqa: E731
    model: Model[Any] = Model(
        Links(real(fabric.capacity), real(fabric.latency)),
        TrimQueue(real(queues.buffer), real(queues.ecn_low), real(queues.ecn_high)),
        nscc(base.rtt, base.rate, 4086.0, chance=chance),
        Split(real(routes.weight)),
    )
    return build(fabric, flows, routes, seed=1), model


def test_holds_the_queue_at_the_target_and_the_port_busy() -> None:
    problem, model = made(4)
    trace = simulate(problem, model, steps=700)
    port = int(problem.at.last[0, 0])
    queue = np.asarray(trace.frames.queue)[30:, port] / RATE
    target = float(model.transport.target)
    assert target * 0.9 < queue.mean() < target * 1.5
    assert np.asarray(trace.frames.sent)[30:, port].mean() == pytest.approx(10 * float(problem.unit), rel=1e-3)
    window = np.asarray(trace.state.law.window)
    assert window == pytest.approx(np.full(4, window[0]), rel=1e-4)


def test_by_chance_equal_flows_get_different_windows_and_the_port_stays_busy() -> None:
    """After the first flight, of which most is trimmed: what is left of it has a binomial's variance."""
    problem, model = made(8, chance=1.0)
    trace = simulate(problem, model, steps=30)
    window = np.asarray(trace.state.law.window) * float(problem.unit) / 4150
    assert 0.5 < window.std() / window.mean() ** 0.5 < 1.5
    assert len(np.unique(window)) == 8
    port = int(problem.at.last[0, 0])
    assert np.asarray(trace.frames.sent)[1:, port].sum() > 0.8 * 20 * float(problem.unit)


def test_sweeps_and_differentiates() -> None:
    problem, model = made(4)

    def queue(gamma: jax.Array) -> jax.Array:
        law = replace(model.transport, gamma=gamma)
        frames = simulate(problem, replace(model, transport=law), steps=200).frames
        return frames.queue[:, problem.at.last[0, 0]].mean()

    quick = {"xla_backend_optimization_level": 0}  # half the time to compile
    values = jax.jit(jax.vmap(queue), compiler_options=quick)(jnp.asarray([0.4, 0.8, 1.2]))
    assert (np.diff(np.asarray(values)) <= 0).all()
    assert np.isfinite(float(jax.jit(jax.grad(queue), compiler_options=quick)(jnp.asarray(0.8))))


def test_a_gradient_over_many_losses_is_a_number() -> None:
    """Sixteen senders over four paths each, of which what is left shrinks by a factor a step: one over its square is no
    number in float32, and was in the derivative of what marked bytes waited."""
    scenario = fabsim.load({
        "name": "incast",
        "fabric": {"kind": "leaf_spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 8, "rate": "400 Gbps",
                   "latency": "1 us"},
        "routing": {"kind": "all"},
        "traffic": [{"kind": "incast", "senders": 16, "receiver": 0, "size": "1 MB"}],
        "transport": {"kind": "nscc"},
    })  # fmt: skip
    problem, model = scenario.compile()

    def landed(model: Any) -> Any:
        completion = simulate(problem, model, steps=300).completion
        return jnp.where(jnp.isfinite(completion), completion, 0.0).sum()

    slope = jax.jit(jax.grad(landed))(model)
    assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(slope))
    assert float(jnp.abs(slope.links.capacity).max()) > 0
