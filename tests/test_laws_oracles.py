"""Published fixed points of the transports, met by the very classes that simulate, on one bottleneck.

Long flows of n senders into one port behind a switch; what is asked of them is solved for here, in the test.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from fabsim.engine.flags import sentences
from fabsim.engine.problem import Problem
from fabsim.engine.setup import prepare
from fabsim.engine.simulate import Trace, simulate
from fabsim.models.dcqcn import Dcqcn
from fabsim.models.dctcp import Dctcp, cuts
from fabsim.models.hpcc import Hpcc
from fabsim.models.model import Model
from fabsim.models.powertcp import PowerTcp
from fabsim.models.rccc import Rccc
from fabsim.models.swift import Swift
from fabsim.models.timely import PatchedTimely, Timely
from fabsim.topology import single_switch
from fabsim.workload import assemble
from fabsim.workload.packet import Packet
from tests.small import case

ACK = 64.0


def law_of(kind: Any, **values: Any) -> Any:
    """A law with these parameters."""
    return kind(**{name: jnp.asarray(value, "float32") for name, value in values.items()})


@dataclasses.dataclass(frozen=True)
class Settled:
    """A run, and of its later half queue, peak: [T] bytes at the bottleneck; sent: [T] bytes a frame."""

    trace: Trace
    model: Model[Any]
    problem: Problem
    queue: np.ndarray
    peak: np.ndarray
    sent: np.ndarray


def settle(
    law: Any,
    senders: int,
    *,
    rate: float,
    rtt: float,
    mtu: float,
    dt: float,
    steps: int,
    most: int = 10,
    **queue: Any,
) -> Settled:
    """n senders at `rate` into a port of `rate`, with a round trip `rtt` without queues, a packet's time apart.

    There are `most` senders, of whom the others have nothing to send: one program a law is enough.
    """
    latency = (rtt - (mtu + 2 * ACK) / rate) / 4
    fabric = single_switch(most + 1, rate=rate, latency=latency)
    flows = assemble(np.arange(1, most + 1), 0, np.where(np.arange(most) < senders, 1e10, 0.0))
    problem, model = case(fabric, flows, transport=law, packet=Packet(mtu, 0.0, ACK), dt=dt, ring=24, **queue)
    assert float(prepare(problem, model).round_trip[0] * problem.dt) == pytest.approx(rtt, rel=1e-5)
    trace = simulate(problem, model, steps=steps, every=100)
    assert not sentences(int(trace.flags))
    port, half = int(problem.at.last[0, 0]), trace.frames.queue.shape[0] // 2
    queue, peak, sent = (np.asarray(x)[half:, port] for x in (trace.frames.queue, trace.frames.peak, trace.frames.sent))
    return Settled(trace, model, problem, queue, peak, sent)


# DCTCP


def dctcp(senders: int, gain: float = 1 / 16) -> tuple[Settled, float]:
    """Steps of marks at 40 packets of 1,500 B, 10 Gbps, 100 us; and the packets of a window at that queue."""
    rate, mtu, rtt, step = 1.25e9, 1500.0, 100e-6, 40.0
    law = law_of(Dctcp, first=60e3 / senders, largest=1e9, gain=gain, increase=1)
    ecn = (step * mtu / 1e6, step * mtu / 1e6 * (1 + 1e-5))
    run = settle(law, senders, rate=rate, rtt=rtt, mtu=mtu, dt=2e-6, steps=50_000, buffer=1e6, ecn=ecn)
    return run, (rate * rtt / mtu + step) / senders


@pytest.mark.parametrize("senders", [2, 10])
def test_dctcp_reaches_its_largest_queue(senders: int) -> None:
    """K + N packets (Alizadeh et al., SIGCOMM 2010) where a mark is set on arrival; where it is set when a packet
    leaves, as here, it is a queueing delay younger: windows have grown for d of the d + K / C less."""
    run, _ = dctcp(senders)
    base, waits = 100e-6, 40 * 1500 / 1.25e9
    found = run.peak.max() / 1500
    assert found == pytest.approx(40 + senders * base / (base + waits), rel=0.05)
    if senders == 2:
        assert found == pytest.approx(40 + senders, rel=0.05)


@pytest.mark.parametrize("senders", [2, 10])
def test_dctcp_marks_as_many_as_its_window_wants(senders: int) -> None:
    """alpha = sqrt(2 / W) (the same paper), for windows of many packets; smoothed over many periods."""
    run, window = dctcp(senders, gain=1 / 128)
    share = np.asarray(run.trace.state.law.share)[:senders]
    assert share == pytest.approx(np.full(senders, (2 / window) ** 0.5), rel=0.05)


@pytest.mark.parametrize("senders", [2, 10])
def test_dctcp_settles_where_marks_are_a_ramp(senders: int) -> None:
    """A window of n packets is cut once if any of them is marked: 1 = n a / 2 (1 - (1 - p)^n) with a = p, and the queue
    at which the ramp, of a tenth over 200 packets, has these odds."""
    rate, mtu, rtt = 1.25e9, 1500.0, 100e-6
    law = law_of(Dctcp, first=60e3 / senders, largest=1e9, gain=1 / 16, increase=1)
    ramp: dict[str, Any] = {"buffer": 1e6, "ecn": (0.0, 200 * mtu / 1e6), "ecn_max": 0.1}
    run = settle(law, senders, rate=rate, rtt=rtt, mtu=mtu, dt=2e-6, steps=20_000, **ramp)

    def growth(queue: float) -> float:
        packets, odds = (rate * rtt / mtu + queue) / senders, 0.1 * queue / 200
        return 1 - packets * odds / 2 * (1 - (1 - odds) ** packets)

    assert run.queue.mean() / mtu == pytest.approx(brentq(growth, 1.0, 199.0), rel=0.02)


@pytest.mark.parametrize(("marked", "heard"), [(0.0, 3.0), (3.0, 3.0), (0.0, 0.0), (0.3, 3.0)])
def test_dctcp_cuts_once_a_window(marked: float, heard: float) -> None:
    """The odds that one of twelve packets is marked, with a slope where none is, where all are, and without news."""
    odds, slope = jax.value_and_grad(cuts)(marked, heard, 6.0, 0.5)
    assert odds == pytest.approx(1 - (1 - marked / max(heard, 1.0)) ** 12, rel=1e-5)
    assert slope == pytest.approx(4.0 * (1 - marked / heard) ** 11 if heard else 0.0, rel=1e-4)
    assert cuts(0.0, 0.0, 1.0, 0.0) == 0.0  # an empty flow has no packet


# Swift


@pytest.mark.parametrize("senders", [8, 32])
def test_swift_settles_where_its_windows_make_its_target(senders: int) -> None:
    """N W = C T(W), at 100 Gbps with a base target of 20 us and 5 times that for small windows."""
    rate, mtu, rtt = 12.5e9, 4096.0, 12e-6
    law = law_of(
        Swift, first=50e3 / senders, base=20e-6, per_hop=0, hops=1, range=100e-6, least=0.1, most=100, largest=1e9,
        increase=1, beta=0.8, deepest=0.5,
    )  # fmt: skip
    run = settle(law, senders, rate=rate, rtt=rtt, mtu=mtu, dt=1e-6, steps=10_000, most=32)
    window = brentq(lambda w: senders * w * mtu / rate - float(law.target(w)), 0.1, 1e3)
    delay = rtt + mtu / rate + run.queue.mean() / rate
    assert delay == pytest.approx(float(law.target(window)), rel=0.01)
    windows = np.asarray(run.trace.state.law.window)[:senders] * float(run.problem.unit) / mtu
    assert windows == pytest.approx(np.full(senders, window), rel=0.01)


# DCQCN


def dcqcn_point(senders: int) -> tuple[float, float]:
    """Marked share and queue (B) of the exact fixed point of Zhu et al. (CoNEXT 2016), for its constants at 40 Gbps.

    Its formula in the paper is a Taylor expansion, 13 % and more above this.
    """
    rounds, counter, timer, cut, gain = 5, 10e6 / 1e3, 55e-6, 50e-6, 55e-6
    increase, rate = 5e6 / 1e3, 5e9 / 1e3 / senders

    def lacks(p: float) -> float:
        a, share = 1 - (1 - p) ** (cut * rate), 1 - (1 - p) ** (gain * rate)
        b, d = p / ((1 - p) ** -counter - 1), p / ((1 - p) ** (-timer * rate) - 1)
        c, e = b * (1 - p) ** (rounds * counter), d * (1 - p) ** (rounds * timer * rate)
        return a * a * share / ((b + d) * (c + e)) - cut**2 * increase * rate

    p = brentq(lacks, 1e-6, 0.02)
    return p, 5e3 + p / 0.01 * 195e3


def dcqcn(senders: int, rtt: float, dt: float) -> Settled:
    """The constants of the papers. It starts at fair rates and at its cut strength, with an empty queue: from line rate
    it comes to the same point, after some hundred milliseconds."""
    strength = 1 - (1 - dcqcn_point(senders)[0]) ** (55e-6 * 5e6 / senders)
    law = law_of(
        Dcqcn, first=5e9 / senders, strength=strength, gain=1 / 256, increase=5e6, cut_period=50e-6, gain_period=55e-6,
        raise_period=55e-6, raise_bytes=10e6, recovery=5, least=1e6,
    )  # fmt: skip
    marks = {"buffer": 1e6, "ecn": (0.005, 0.2), "ecn_max": 0.01}
    return settle(law, senders, rate=5e9, rtt=rtt, mtu=1000.0, dt=dt, steps=80_000, **marks)


@pytest.mark.parametrize(("senders", "queue"), [(2, 20.151e3), (10, 122.623e3)])
def test_dcqcn_settles_at_its_fixed_point_where_feedback_is_fast(senders: int, queue: float) -> None:
    p, want = dcqcn_point(senders)
    assert want == pytest.approx(queue, rel=1e-4)
    run = dcqcn(senders, rtt=4e-6, dt=0.9e-6)
    assert run.queue.mean() == pytest.approx(want, rel=0.01)
    assert np.ptp(run.queue[-100:]) < 0.01 * want
    law = run.trace.state.law
    assert np.asarray(law.share)[:senders] == pytest.approx(1 - (1 - p) ** (55e-6 * 5e6 / senders), rel=0.01)
    assert np.asarray(law.rate)[:senders] == pytest.approx(1 / senders, rel=0.01)


def test_dcqcn_swings_where_feedback_is_slow() -> None:
    """Ten flows at 85 us, from an empty queue to above ecn_high (the same paper); two flows do not."""
    run = dcqcn(10, rtt=85e-6, dt=5e-6)
    assert run.queue.min() == 0
    assert run.peak.max() == pytest.approx(234e3, rel=0.05)
    assert run.sent.mean() / (100 * float(run.problem.unit)) == pytest.approx(0.95, abs=0.02)
    calm = dcqcn(2, rtt=85e-6, dt=5e-6)
    assert calm.queue.mean() == pytest.approx(dcqcn_point(2)[1], rel=0.01)
    assert calm.queue.min() > 0.9 * calm.queue.mean()


# TIMELY


def timely(kind: Any, senders: int, first: Any, slow: float = 1.0, most: int = 10, dt: float = 2e-6) -> Settled:
    """The constants of Zhu et al. (CoNEXT 2016) at 10 Gbps; increase and decrease `slow` times weaker."""
    beta = 0.008 if kind is PatchedTimely else 0.8
    law = law_of(
        kind, first=np.resize(first, most), increase=1.25e6 / slow, beta=beta / slow, smoothing=0.875, low=50e-6,
        high=500e-6, shortest=20e-6, segment=16e3, least=1e6,
    )  # fmt: skip
    return settle(law, senders, rate=1.25e9, rtt=20e-6, mtu=1000.0, dt=dt, steps=100_000, most=most, buffer=1e8)


@pytest.mark.parametrize(("senders", "queue", "slow"), [(2, 78.125e3, 1), (10, 140.625e3, 1), (40, 375e3, 4)])
def test_patched_timely_settles_at_its_fixed_point(senders: int, queue: float, slow: float) -> None:
    """C low (1 + N increase / (beta C)) (Zhu et al.), with equal rates.

    For 40 flows both gains are a quarter of theirs, which is the same point: with theirs it is beyond the 38 flows for
    which their phase margins are positive, and the queue swings around 335 kB.
    """
    rate = 1.25e9
    want = 50e-6 * rate * (1 + senders * 1.25e6 / (0.008 * rate))
    assert want == pytest.approx(queue)
    run = timely(PatchedTimely, senders, rate / senders, slow, most=max(senders, 10), dt=2e-6 if slow == 1 else 4e-6)
    assert run.queue.mean() == pytest.approx(want, rel=0.01)
    assert np.ptp(run.queue) < 0.01 * want
    rates = np.asarray(run.trace.state.law.rate)[:senders]
    assert rates == pytest.approx(np.full(senders, 1 / senders), rel=0.01)


def test_timely_keeps_unequal_starts_unequal_and_the_patch_does_not() -> None:
    """From 7 and 3 Gbps (the same paper)."""
    for kind, apart in ((Timely, True), (PatchedTimely, False)):
        big, small = np.asarray(timely(kind, 2, [0.875e9, 0.375e9]).trace.state.law.rate)[:2]
        assert (big > 7 / 3 * 0.9 * small) if apart else (big == pytest.approx(small, rel=0.05))


# HPCC and PowerTCP: 100 Gbps, 10 us

PRODUCT = 12.5e9 * 10e-6
"""Bytes of rate and round trip."""


@pytest.mark.parametrize("senders", [2, 5, 10])
def test_hpcc_settles_at_its_utilisation(senders: int) -> None:
    """U = eta + N W_AI / (C T), a queue of max(0, U - 1) C T (from W = W_c eta / U + W_AI at W = W_c, Li et al.)."""
    law = law_of(Hpcc, network_rtt=10e-6, rate=12.5e9, eta=0.95, increase=0.01 * PRODUCT, stages=5)
    run = settle(law, senders, rate=12.5e9, rtt=10e-6, mtu=100.0, dt=1e-6, steps=5_000, buffer=1e8)
    load = 0.95 + senders * 0.01
    assert np.asarray(run.trace.state.law.load)[:senders] == pytest.approx(np.full(senders, load), rel=0.01)
    assert run.queue.mean() == pytest.approx(max(load - 1, 0.0) * PRODUCT, rel=0.01, abs=0.001 * PRODUCT)
    assert run.sent.mean() / (100 * 12.5e3) == pytest.approx(min(load, 1.0), rel=0.01)


@pytest.mark.parametrize(("senders", "gamma", "within"), [(2, 0.05, 0.01), (10, 0.05, 0.01), (10, 0.9, 0.02)])
def test_powertcp_keeps_its_additive_increases_waiting(senders: int, gamma: float, within: float) -> None:
    """A queue of sum of beta, windows in proportion to beta (Addanki et al., theorem on the equilibrium)."""
    betas = np.resize([1e3, 3e3], 10)
    law = law_of(PowerTcp, network_rtt=10e-6, rate=12.5e9, gamma=gamma, beta=betas)
    run = settle(law, senders, rate=12.5e9, rtt=10e-6, mtu=1000.0, dt=1e-6, steps=5_000, buffer=1e8)
    waiting = betas[:senders].sum()
    assert run.queue.mean() == pytest.approx(waiting, rel=within)
    windows = np.asarray(run.trace.state.law.window)[:senders] * float(run.problem.unit)
    assert windows / windows.sum() == pytest.approx(betas[:senders] / waiting, rel=0.01)
    if gamma == 0.05:
        assert windows.sum() == pytest.approx(PRODUCT + waiting, rel=0.01)


# RCCC


@pytest.mark.parametrize("senders", [2, 10])
def test_rccc_books_the_last_hop_just_below_its_rate(senders: int) -> None:
    """Credit for pace C in all: what the first round trip left waiting drains at (1 - pace) C, then none waits."""
    law = law_of(Rccc, first=PRODUCT, pace=0.99, turn=4.0)
    run = settle(law, senders, rate=12.5e9, rtt=10e-6, mtu=1000.0, dt=1e-6, steps=4_000, buffer=1e8)
    if senders == 10:
        assert np.diff(run.queue) == pytest.approx(np.full(len(run.queue) - 1, -0.01 * 12.5e9 * 100e-6), rel=0.01)
    else:
        assert run.queue.max() == 0
        assert run.sent.mean() / (100 * 12.5e3) == pytest.approx(0.99, rel=1e-4)
