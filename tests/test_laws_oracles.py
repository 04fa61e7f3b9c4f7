"""Published fixed points of the transports, met by the very classes that simulate, on one bottleneck.

Long flows of n senders into one port behind a switch; what is asked of them is solved for here, in the test.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from fabsim.engine.problem import Problem
from fabsim.engine.setup import prepare
from fabsim.engine.simulate import Trace, simulate
from fabsim.models.dctcp import Dctcp
from fabsim.models.model import Model
from fabsim.models.swift import Swift
from fabsim.topology import single_switch
from fabsim.workload import assemble
from fabsim.workload.packet import Packet
from tests.small import case

ACK, MOST = 64.0, 40
"""Bytes of an acknowledgement; flows of every problem, so that one program a law is enough. The others are empty."""


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
    time: float,
    every: int = 50,
    **queue: Any,
) -> Settled:
    """n senders at `rate` into a port of `rate`, with a round trip `rtt` without queues, a packet's time apart."""
    latency = (rtt - (mtu + 2 * ACK) / rate) / 4
    fabric = single_switch(MOST + 1, rate=rate, latency=latency)
    flows = assemble(np.arange(1, MOST + 1), 0, np.where(np.arange(MOST) < senders, 1e10, 0.0))
    problem, model = case(fabric, flows, transport=law, packet=Packet(mtu, 0.0, ACK), dt=dt, **queue)
    assert float(prepare(problem, model).round_trip[0] * problem.dt) == pytest.approx(rtt, rel=1e-5)
    trace = simulate(problem, model, steps=round(time / dt), every=every)
    assert not int(trace.flags)
    port, half = int(problem.at.last[0, 0]), trace.frames.queue.shape[0] // 2
    queue, peak, sent = (np.asarray(x)[half:, port] for x in (trace.frames.queue, trace.frames.peak, trace.frames.sent))
    return Settled(trace, model, problem, queue, peak, sent)


# DCTCP


def dctcp(senders: int, gain: float = 1 / 16) -> tuple[Settled, float]:
    """Steps of marks at 40 packets of 1,500 B, 10 Gbps, 100 us; and the packets of a window at that queue."""
    rate, mtu, rtt, step = 1.25e9, 1500.0, 100e-6, 40.0
    law = law_of(Dctcp, first=60e3 / senders, largest=1e9, gain=gain, increase=1)
    ecn = (step * mtu / 1e6, step * mtu / 1e6 * (1 + 1e-5))
    run = settle(law, senders, rate=rate, rtt=rtt, mtu=mtu, dt=2e-6, time=0.1, buffer=1e6, ecn=ecn)
    return run, (rate * rtt / mtu + step) / senders


@pytest.mark.parametrize("senders", [2, 10, 40])
def test_dctcp_reaches_its_largest_queue(senders: int) -> None:
    """K + N packets (Alizadeh et al., SIGCOMM 2010) where a mark is set on arrival; where it is set when a packet
    leaves, as here, it is a queueing delay younger: windows have grown for d of the d + K / C less."""
    run, _ = dctcp(senders)
    base, waits = 100e-6, 40 * 1500 / 1.25e9
    found = run.peak.max() / 1500
    assert found == pytest.approx(40 + senders * base / (base + waits), rel=0.05)
    if senders == 2:
        assert found == pytest.approx(40 + senders, rel=0.05)


@pytest.mark.parametrize("senders", [2, 4])
def test_dctcp_marks_as_many_as_its_window_wants(senders: int) -> None:
    """alpha = sqrt(2 / W) (the same paper), for windows of many packets; smoothed over many periods."""
    run, window = dctcp(senders, gain=1 / 512)
    share = np.asarray(run.trace.state.law.share)[:senders]
    assert share == pytest.approx(np.full(senders, (2 / window) ** 0.5), rel=0.05)


# Swift


@pytest.mark.parametrize("senders", [8, 32])
def test_swift_settles_where_its_windows_make_its_target(senders: int) -> None:
    """N W = C T(W), at 100 Gbps with a base target of 20 us and 5 times that for small windows."""
    rate, mtu, rtt = 12.5e9, 4096.0, 12e-6
    law = law_of(
        Swift, first=50e3 / senders, base=20e-6, per_hop=0, hops=1, range=100e-6, least=0.1, most=100, largest=1e9,
        increase=1, beta=0.8, deepest=0.5,
    )  # fmt: skip
    run = settle(law, senders, rate=rate, rtt=rtt, mtu=mtu, dt=1e-6, time=0.02)
    window = brentq(lambda w: senders * w * mtu / rate - float(law.target(w)), 0.1, 1e3)
    delay = rtt + mtu / rate + run.queue.mean() / rate
    assert delay == pytest.approx(float(law.target(window)), rel=0.01)
    windows = np.asarray(run.trace.state.law.window)[:senders] * float(run.problem.unit) / mtu
    assert windows == pytest.approx(np.full(senders, window), rel=0.01)
