"""Runs whose answer is known: closed forms, and small exact references written here."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine.fair import fair_rates
from fabsim.engine.luck import LAST_PACKET, few
from fabsim.engine.run import Run, run
from fabsim.engine.setup import prepare
from fabsim.engine.state import initial
from fabsim.models.ideal import Ideal
from fabsim.models.mixed import Mixed
from fabsim.models.nscc import nscc
from fabsim.models.queue import TrimQueue
from fabsim.routing.choose import all_paths
from fabsim.topology import Change, Fabric, degrade, fat_tree, find_links, leaf_spine, single_switch
from fabsim.workload import Flows, Row, assemble, listed, ring_coupled, ring_steps
from fabsim.workload.packet import Packet
from tests.small import RATE, case, wire

MTU, LATENCY = 4150.0, 1e-6
STAR = single_switch(9, rate=RATE, latency=LATENCY)
BASE = 2 * LATENCY + MTU / RATE
"""Zero-load latency of STAR behind the injection of the last byte."""


def run_on(fabric: Fabric, flows: Flows, **options: Any) -> Run:
    """A finished run."""
    return run(*case(fabric, flows, ring=64, **options), progress=False)


def into_one(sizes: Any, starts: Any = 0.0, fabric: Fabric = STAR, **options: Any) -> Run:
    """Up to eight flows of hosts 1 to 8 into host 0; those without a size are empty."""
    column = np.zeros((2, 8))
    column[0, : len(sizes)] = sizes
    column[1, : len(sizes)] = starts
    return run_on(fabric, assemble(np.arange(1, 9), 0, column[0], start=column[1]), **options)


# A lone flow


def lone(fabric: Fabric, size: float) -> tuple[float, float, float]:
    """Completion, what it should be, and what the sender should see, of a flow from host 0 to host 1."""
    flows = assemble([0], [1], [size])
    path = all_paths(fabric, flows).path[0, 0]
    slow, latency = 1 / fabric.capacity[path[path >= 0]], fabric.latency[path[path >= 0]].sum()
    packet = min(MTU, wire(size))
    want = wire(size) * slow.max() + packet * (slow.sum() - slow.max()) + latency
    trace = run_on(fabric, flows).trace
    assert trace.sender_completion[0] == pytest.approx(trace.completion[0] + 64 * slow.sum() + latency, rel=1e-6)
    return float(trace.completion[0]), float(want), float(trace.start[0])


LENGTHS = {
    2: single_switch(2, rate=RATE, latency=LATENCY),
    4: leaf_spine(2, 1, 1, rate=RATE, latency=LATENCY, switch_latency=2e-7),
    6: fat_tree(2, rate=RATE, latency=LATENCY, switch_latency=2e-7),
}


@pytest.mark.parametrize("links", [2, 4, 6])
@pytest.mark.parametrize("size", [1, 100, 4086, 4087, 20_000, 1_000_001, 64e6])
def test_a_lone_flow_takes_the_closed_form(links: int, size: float) -> None:
    """wire/C + (L - 1) packets/C + propagation."""
    got, want, start = lone(LENGTHS[links], size)
    assert got == pytest.approx(want, rel=2e-6)
    assert start == 0.0


@pytest.mark.parametrize("slow", ["h0->leaf0", "leaf0->spine0", "leaf1->h1"])
@pytest.mark.parametrize("size", [1, 4086, 20_000, 1_000_001, 64e6])
def test_a_lone_flow_over_a_slow_link(slow: str, size: float) -> None:
    """wire at the slowest link, one packet at the others: to rounding in front of the NIC, else within a step."""
    got, want, _ = lone(degrade(LENGTHS[4], [Change(slow, speed=0.25)]), size)
    assert got == pytest.approx(want, rel=2e-6, abs=0 if slow.startswith("h") else 1e-6)


# One port


def first_in_first_out(sizes: Any, starts: Any) -> np.ndarray:
    """Packet by packet: senders at line rate, one port, whole packets stored and forwarded."""
    packets = []
    for flow, (size, start) in enumerate(zip(sizes, starts, strict=True)):
        count = int(np.ceil(size / (MTU - 64)))
        lengths = np.full(count, MTU)
        lengths[-1] = wire(size) - MTU * (count - 1)
        packets += [
            (start + at / RATE + LATENCY, flow, x / RATE) for at, x in zip(lengths.cumsum(), lengths, strict=True)
        ]
    free, done = 0.0, np.zeros(len(sizes))
    for arrival, flow, time in sorted(packets):
        free = max(free, arrival) + time
        done[flow] = free + LATENCY
    return done


@pytest.mark.parametrize("seed", range(6))
def test_a_staggered_incast_is_first_in_first_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, starts = np.round(rng.uniform(2e4, 8e5, 8)), rng.uniform(0, 40e-6, 8)
    made = into_one(sizes, starts)
    np.testing.assert_allclose(made.trace.completion, first_in_first_out(sizes, starts), atol=made.dt, rtol=0)
    np.testing.assert_allclose(made.trace.start, starts, atol=1e-12)


def test_two_flows_that_overlap_by_half() -> None:
    """First in, first out: the first ends after 1.5 times its own time, the second after 2."""
    time = wire(5e6) / RATE
    made = into_one([5e6, 5e6], [0, time / 2])
    np.testing.assert_allclose(made.trace.completion[:2] - BASE, [1.5 * time, 2 * time], atol=made.dt)


def test_two_flows_that_overlap_by_half_under_fair_sharing() -> None:
    time = wire(5e6) / RATE
    made = into_one([5e6, 5e6], [0, time / 2], transport=Ideal(jnp.float32(1.0)))
    np.testing.assert_allclose(made.trace.completion[:2] - BASE, [1.5 * time, 2 * time], atol=made.dt)


def test_acknowledgements_take_their_part_of_the_way_back() -> None:
    """Two hosts send to each other: a down link carries data, and 64 bytes for each packet that went the other way."""
    flows = assemble([0, 1], [1, 0], [2e7, 2e7])
    fabric = single_switch(2, rate=RATE, latency=LATENCY)
    alone, both = (run_on(fabric, flows, packet=Packet(acks=acks)).trace.completion for acks in (False, True))
    want = wire(2e7) / RATE * 64 / MTU
    np.testing.assert_allclose(both - alone, want, rtol=0.01)
    frames = run_on(fabric, flows, packet=Packet(acks=True)).trace.frames
    assert frames.headers is not None
    busy = frames.busy[2:-3] / (RATE * 1e-5)
    np.testing.assert_allclose(busy, 1.0, rtol=1e-3)  # a sender's port is no busier than it can be
    up, down = find_links(fabric, "h0->leaf0"), find_links(fabric, "leaf0->h0")
    np.testing.assert_allclose(frames.headers[2:-3, down], frames.sent[2:-3, up] * 64 / MTU, rtol=1e-3)


def test_a_receiver_that_sends_has_its_acknowledgements_in_its_own_port() -> None:
    """Eight to one, with trims, while the one sends: of its port it has for data what 64 bytes leave for each packet
    that comes, and for each that comes trimmed."""
    fabric = single_switch(10, rate=RATE, latency=LATENCY)
    flows = assemble(np.arange(9), [9, *[0] * 8], [6e6, *[1e6] * 8])
    made = run(*case(fabric, flows, packet=Packet(acks=True), buffer=415e3, window=415e3), every=1, progress=False)
    up, end = find_links(fabric, "h0->leaf0"), int(made.trace.completion[0] / made.dt) - 3
    frames = jax.tree.map(lambda x: x[4:end], made.trace.frames)
    assert frames.headers is not None
    comes = frames.sent[:, find_links(fabric, "leaf0->h0")].sum() + frames.dropped.sum()
    np.testing.assert_allclose(frames.headers[:, up].sum(), comes * 64 / MTU, rtol=0.01)
    np.testing.assert_allclose(frames.busy[:, up] / (RATE * made.dt), 1.0, rtol=2e-3)
    base, headers = 2 * LATENCY + MTU / RATE, frames.headers[:, up].sum() / RATE
    assert headers > 15e-6
    np.testing.assert_allclose(made.trace.completion[0], wire(6e6) / RATE + base + headers, rtol=2e-3)


@pytest.mark.parametrize(("buffer", "window"), [(2e5, 2e5), (1e5, 3.1e5), (4e5, 2e5), (2e3, 2e5)])
def test_an_incast_pays_for_its_trimmed_headers(buffer: float, window: float) -> None:
    """The port is never idle: the last completion is all data and all headers of trimmed packets over its rate.

    Within a step, and less the packets that are more likely sent than not (LAST_PACKET).
    """
    made = into_one([1e6] * 8, buffer=buffer, window=window)
    headers = made.trace.frames.dropped.sum() * 64 / MTU
    assert headers > 5e5
    want = (8 * wire(1e6) + headers) / RATE + BASE
    assert made.trace.completion.max() == pytest.approx(want, abs=made.dt + 8 * LAST_PACKET * MTU / RATE)


def test_a_port_is_busy_with_data_and_headers() -> None:
    """An uplink that trims is busy for as long as its queue stands. Its headers are those of the packets that it trims;
    they pass the links behind it, which trim nothing."""
    fabric = leaf_spine(2, 1, 4, rate=RATE, latency=LATENCY)
    made = run_on(fabric, assemble([0, 1, 2, 3], 4, 1e6), buffer=1e5, window=2e5)
    frames = made.trace.frames
    assert frames.headers is not None
    way = [int(find_links(fabric, x)[0]) for x in ("leaf0->spine0", "spine0->leaf1", "leaf1->h4")]
    dropped, headers = frames.dropped.sum(0), frames.headers.sum(0)
    assert dropped[way[0]] > 1e6
    assert dropped.sum() == dropped[way[0]]
    np.testing.assert_allclose(headers[way], dropped[way[0]] * 64 / MTU, rtol=1e-4)
    stands = np.flatnonzero(frames.peak[:, way[0]] > 5e4)[1:-1]
    assert len(stands) > 5
    np.testing.assert_allclose(frames.busy[stands, way[0]] / (RATE * 10 * made.dt), 1.0, rtol=1e-5)
    assert (frames.sent[stands, way[0]] < 0.995 * frames.busy[stands, way[0]]).all()


def test_a_window_below_one_packet_sends_one_window_a_round_trip() -> None:
    made = into_one([2e4], window=1e3)
    round_trip = BASE + 2 * LATENCY + 2 * 64 / RATE
    assert made.trace.completion[0] == pytest.approx(wire(2e4) / 1e3 * round_trip, abs=round_trip)


def test_senders_at_a_shared_port_share_it() -> None:
    """Four flows of one NIC: processor sharing, exact to rounding whatever the step."""
    sizes = np.array([1e5, 7e5, 3.3e5, 7e5 + 1])
    want, at, before = np.zeros(4), 0.0, 0.0
    for left, flow in zip(range(4, 0, -1), np.argsort(sizes), strict=True):
        at += left * (wire(sizes[flow]) - before) / RATE
        before = wire(sizes[flow])
        want[flow] = at + BASE
    made = run_on(STAR, assemble([0] * 4, [1, 2, 3, 4], sizes))
    np.testing.assert_allclose(made.trace.completion, want, rtol=3e-6)


def test_every_cut_byte_is_one_of_the_buffer() -> None:
    """Infinitesimal perturbation analysis: d(lost bytes)/d(buffer) = - number of busy periods with a loss."""
    rng = np.random.default_rng(3)
    arrive = np.where(rng.random(400) < 0.3, rng.exponential(4.0, 400), rng.uniform(0, 0.5, 400))

    def lost(buffer: jax.Array) -> tuple[jax.Array, Any]:
        port = TrimQueue(buffer, buffer, buffer)
        one = jnp.ones_like(buffer)

        def step(state: Any, inflow: jax.Array) -> tuple[Any, Any]:
            state, seen = port.step(state, one, inflow * one, 0 * one)
            return state, (seen.drop[0], state.queue[0])

        _, (drop, queue) = jax.lax.scan(step, port.init(one), jnp.asarray(arrive))
        return drop.sum(), (drop, queue)

    with jax.enable_x64(True):
        (_, (drop, queue)), slope = jax.jit(jax.value_and_grad(lost, has_aux=True))(jnp.array([4.0]))
    period = np.cumsum(np.concatenate([[True], np.asarray(queue)[:-1] == 0]))
    losing = len(np.unique(period[np.asarray(drop) > 0]))
    assert losing > 10
    assert (np.asarray(drop) > 0).sum() > 1.3 * losing
    assert float(slope[0]) == -losing


# Rings

RANKS = 4
RING = single_switch(RANKS, rate=RATE, latency=LATENCY)


def ring(kind: str, size: float, fabric: Fabric = RING) -> np.ndarray:
    """[4] completions of the ranks' last bytes."""
    if kind == "steps":
        return run_on(fabric, ring_steps(RANKS, size)).trace.completion.reshape(RANKS, -1)[:, -1]
    return run_on(fabric, ring_coupled(RANKS, size, grain=size / RANKS if kind == "grains" else 0.0)).trace.completion


@pytest.mark.parametrize("size", [4 * 4086.0 * 16, 4 * 1000.0, 4e6])
def test_a_ring_of_grains_is_a_ring_of_steps(size: float) -> None:
    """2 (N - 1) (S / (N C) + latency), both ways; sizes whole in packets and not."""
    chunk = wire(size / RANKS)
    want = 2 * (RANKS - 1) * (chunk / RATE + 2 * LATENCY + min(MTU, chunk) / RATE)
    np.testing.assert_allclose(ring("steps", size), want, rtol=2e-6)
    np.testing.assert_allclose(ring("grains", size), want, rtol=2e-6)
    np.testing.assert_allclose(ring("grains", size), ring("steps", size), rtol=1e-6)


def test_a_perfect_stream_pays_its_latency_once() -> None:
    """2 (N - 1) / N S / C + latency, where the head covers the loop (see the docstring of ring_coupled)."""
    size = 4 * 4086.0 * 300
    np.testing.assert_allclose(ring("stream", size), wire(size / RANKS) * 2 * (RANKS - 1) / RATE + BASE, rtol=2e-6)


def max_plus(chunk: np.ndarray, own: float) -> np.ndarray:
    """Last completions of a ring whose rank r sends a chunk in chunk[r] s: it waits for the rank before, and for its
    own last chunk to be out (own = 0) or to have arrived `own` s later."""
    done = free = np.zeros(len(chunk))
    for step in range(2 * (len(chunk) - 1)):
        start = np.maximum(np.roll(done, 1), free) if step else free
        free = start + chunk + own
        done = start + chunk + BASE
    return done


def test_a_ring_with_a_half_speed_link() -> None:
    """The slow NIC is met as often as the chain of chunks passes it; the same call, no branch."""
    size = 4 * 4086.0 * 300
    fabric = degrade(RING, [Change("h1->leaf0", speed=0.5)])
    chunk = wire(size / RANKS) / RATE * np.array([1, 2, 1, 1])
    np.testing.assert_allclose(ring("grains", size, fabric), max_plus(chunk, 0.0), rtol=2e-6)
    np.testing.assert_allclose(ring("steps", size, fabric), max_plus(chunk, BASE), rtol=2e-6)
    stream = ring("stream", size, fabric).max()
    assert stream == pytest.approx(chunk[1] * 2 * (RANKS - 1) + BASE, rel=1e-3)


# Fair shares


def water_filling(fabric: Fabric, flows: Flows) -> np.ndarray:
    """[F] max-min fair rates over an even split: raise all together, freeze those on a full link."""
    routes = all_paths(fabric, flows)
    use = np.zeros((flows.count, fabric.links))
    for flow in range(flows.count):
        for lane, weight in zip(routes.path[flow], routes.weight[flow], strict=True):
            use[flow, lane[lane >= 0]] += weight
    rate, free = np.zeros(flows.count), flows.size > 0
    while free.any():
        load = use[free].sum(0)
        share = np.where(load > 0, (fabric.capacity - rate @ use) / np.where(load > 0, load, 1), np.inf)
        rate[free] += share.min()
        free = free & ~(use[:, share <= share.min() * (1 + 1e-9)] > 0).any(1)
    return rate


@functools.cache
def fair() -> Any:
    """The engine's fair rates of all flows, compiled once."""

    def of(problem: Any, model: Any) -> jax.Array:
        s = prepare(problem, model)
        return fair_rates(s, replace(initial(s).flow, credit=s.size)) / s.problem.dt * s.problem.unit

    return jax.jit(of)


@pytest.mark.parametrize("seed", range(8))
def test_ideal_rates_are_max_min_fair(seed: int) -> None:
    """Random flows, some empty, over links of mixed speeds: several bottlenecks one after another."""
    rng = np.random.default_rng(seed)
    fabric = leaf_spine(3, 2, 3, rate=RATE, latency=LATENCY)
    slow = ["leaf0->spine0", "spine1->leaf2", "leaf1->h4", "spine0->leaf1", "leaf2->h8", "h2->leaf0"]
    fabric = degrade(fabric, [Change(link, speed=float(rng.choice([0.02, 0.3, 0.5, 0.9]))) for link in slow])
    src = np.repeat(np.arange(9), 2)
    dst = (src + rng.integers(1, 9, 18)) % 9
    flows = assemble(src, dst, np.where(rng.random(18) < 0.2, 0.0, 1e6))
    got = fair()(*case(fabric, flows, share_rows=False, transport=Ideal(jnp.float32(1))))
    np.testing.assert_allclose(np.asarray(got)[flows.size > 0], water_filling(fabric, flows)[flows.size > 0], rtol=3e-5)


def test_two_bottlenecks() -> None:
    """The textbook case: a long flow shares a slow link with one and a fast one with another."""
    fabric = degrade(leaf_spine(3, 1, 3, rate=RATE, latency=LATENCY), [Change("leaf0->spine0", speed=0.4)])
    flows = assemble([0, 1, 3, 6], [6, 4, 6, 0], 1e6)
    got = fair()(*case(fabric, flows, share_rows=False, transport=Ideal(jnp.float32(1))))
    np.testing.assert_allclose(got, np.array([0.2, 0.2, 0.8, 1.0]) * RATE, rtol=1e-5)


@pytest.mark.parametrize("acks", [True, False])
def test_the_ideal_leaves_room_for_acknowledgements(acks: bool) -> None:
    """Both ways over links that are too narrow: data and acknowledgements fill them, and no queue grows."""
    fabric = leaf_spine(2, 2, 4, rate=RATE, latency=LATENCY)
    packet = replace(Packet(), acks=acks)
    flows = assemble(np.arange(8), (np.arange(8) + 4) % 8, 2e7)
    made = run(*case(fabric, flows, transport=Ideal(jnp.float32(1)), packet=packet), progress=False)
    room = 1 + 64 / MTU if acks else 1.0
    way = 4 * LATENCY + 3 * MTU / RATE
    np.testing.assert_allclose(made.trace.completion, 2 * room * wire(2e7) / RATE + way, rtol=1e-4)
    assert made.trace.frames.dropped.sum() == 0
    assert made.trace.frames.peak.max() < 2 * MTU * 4


# Who starts when


def chain(rows: list[Row]) -> Any:
    """The trace of five rows around STAR."""
    return run_on(STAR, listed(9, rows)).trace


def alone(size: float) -> float:
    """Seconds of a flow that meets nobody."""
    return float(wire(size)) / RATE + BASE if size > 4086 else 0.0


def test_flows_after_others_start_inside_the_step() -> None:
    """A chain with delays, an empty flow in it, and a barrier: to rounding, at times that are no whole steps."""
    trace = chain(
        [
            Row(1, 2, 123_456, start=0.37e-6),
            Row(2, 3, 77_777, after=(0,), delay=3.21e-6),
            Row(3, 4, 0, after=(1,), delay=0.4e-6),
            Row(5, 6, 500_000, start=1.11e-6),
            Row(7, 8, 99_999, after=(2, 3), delay=0.123e-6),
        ]
    )
    one = 0.37e-6 + alone(123_456)
    two = one + 3.21e-6 + alone(77_777)
    three = two + 0.4e-6
    four = 1.11e-6 + alone(500_000)
    five = max(three, four) + 0.123e-6 + alone(99_999)
    np.testing.assert_allclose(trace.completion, [one, two, three, four, five], rtol=3e-6)
    np.testing.assert_allclose(trace.start, [0.37e-6, one + 3.21e-6, three, 1.11e-6, five - alone(99_999)], rtol=3e-6)


def test_a_trigger_fires_once_or_many_times() -> None:
    """One completion starts two flows (oneshot); a third waits for the third completion (multishot)."""
    sizes = np.array([2e5, 3e5, 4e5, 1e5, 1e5, 5e4])
    flows = assemble(
        [1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7], sizes,
        trigger=[-1, -1, -1, 0, 0, 1], need=[0, 0, 0, 1, 1, 3],
        fires=np.array([[0, 1], [1, -1], [1, -1]] + [[-1, -1]] * 3),
        start=[0, 0, 0, 0, 1.5e-6, 2e-6],
    )  # fmt: skip
    time = np.array([alone(size) for size in sizes])
    want = [*time[:3], time[0] + time[3], time[0] + 1.5e-6 + time[4], time[2] + 2e-6 + time[5]]
    np.testing.assert_allclose(run_on(STAR, flows).trace.completion, want, rtol=3e-6)


def test_a_trigger_at_the_sender_waits_for_the_acknowledgement() -> None:
    flows = assemble([1, 2], [2, 3], [2e5, 2e5], trigger=[-1, 0], need=[0, 1], fires=[0, -1], fires_at_sender=True)
    trace = run_on(STAR, flows).trace
    assert trace.start[1] == pytest.approx(trace.sender_completion[0], rel=1e-6)
    assert trace.start[1] == pytest.approx(alone(2e5) + 2 * LATENCY + 2 * 64 / RATE, rel=3e-6)


def test_empty_flows_complete_when_they_start() -> None:
    trace = into_one([0, 1e6, 0], [3.3e-6, 0, 40e-6]).trace
    np.testing.assert_allclose(trace.completion[:3], [3.3e-6, alone(1e6), 40e-6], rtol=2e-6)
    assert trace.frames.sent.sum() == pytest.approx(2 * float(wire(1e6)), rel=1e-5)


def test_the_luck_of_last_packets_is_exponential() -> None:
    """With x packets on average still missing, none is with probability exp(-x), flow by flow; half of the flows are
    complete below ln 2, which holds for all where nothing is chance: no link loses, or none of their own, and the law
    knows no luck."""
    flows = listed(9, [Row(1, 0, 1e6)] * 2000 + [Row(2, 0, 1e6)] * 2000)
    problem, model = case(STAR, flows)
    lucky = replace(model, transport=nscc(8e-6, RATE, MTU - 64))
    packets = np.asarray(few(problem, lucky, jnp.float32)) / MTU
    for x in (0.1, LAST_PACKET, 3.0):
        assert (packets > x).mean() == pytest.approx(np.exp(-x), abs=0.03)
    median, first = np.full(4000, LAST_PACKET), np.arange(4000) < 2000
    np.testing.assert_allclose(few(problem, model, jnp.float32), median * MTU, rtol=1e-6)
    mixed = replace(model, transport=Mixed((model.transport, lucky.transport), (2000, 4000)))
    np.testing.assert_allclose(few(problem, mixed, jnp.float32), np.where(first, median, packets) * MTU, rtol=1e-6)
    sound = jnp.zeros(STAR.links)
    lossy = sound.at[find_links(STAR, "h1->leaf0")].set(1e-3)
    for loss, own in ((sound, median), (lossy, np.where(first, packets, median))):
        found = few(problem, replace(model, links=replace(model.links, loss=loss)), jnp.float32)
        np.testing.assert_allclose(found, own * MTU, rtol=1e-6)
    large, _ = case(STAR, listed(9, [Row(1, 0, 1e10)] * 4000))
    assert float(few(large, lucky, jnp.float32).min()) == pytest.approx(1e-6 * wire(1e10))  # roundings leave as much
