"""Workloads: patterns, lists with dependencies, collectives, merging, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabsim.errors import InputError
from fabsim.workload import (
    Flows,
    Row,
    all_to_all,
    incast,
    listed,
    merge,
    permutation,
    ring_coupled,
    ring_steps,
    shift,
)


def order_of_start(flows: Flows) -> list[int]:
    """Flows in an order that the triggers allow, each ended before the next begins; shorter if some never start."""
    fired: dict[int, int] = {}
    waiting, order = list(range(flows.count)), []
    while True:
        ready = [f for f in waiting if flows.trigger[f] < 0 or fired.get(flows.trigger[f], 0) >= flows.need[f]]
        if not ready:
            return order
        flow = ready[0]
        waiting.remove(flow)
        order.append(flow)
        for trigger in flows.fires[flow][flows.fires[flow] >= 0]:
            fired[trigger] = fired.get(trigger, 0) + 1


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**32))
def test_permutation_is_a_derangement(hosts: int, seed: int) -> None:
    flows = permutation(hosts, 2e6, seed=seed)
    assert sorted(flows.dst.tolist()) == list(range(hosts))
    assert (flows.src != flows.dst).all()
    assert (flows.dst == permutation(hosts, 2e6, seed=seed).dst).all()
    assert flows.size.dtype == np.float64


def test_shift_and_incast() -> None:
    assert shift(4, 10, by=3).dst.tolist() == [3, 0, 1, 2]
    flows = incast(16, 1e6, senders=8, receiver=3, seed=2)
    assert len(set(flows.src.tolist())) == 8
    assert 3 not in flows.src
    assert (flows.dst == 3).all()
    assert incast(16, 1e6, senders=[5, 6], receiver=3).src.tolist() == [5, 6]


def test_all_to_all_in_a_window() -> None:
    flows = all_to_all(5, 100, window=2)
    assert flows.count == 20
    assert flows.dst[:4].tolist() == [1, 2, 3, 4]
    assert flows.dst[4:8].tolist() == [2, 3, 4, 0]
    assert flows.need[:4].tolist() == [0, 0, 1, 2]
    assert flows.trigger[4:8].tolist() == [-1, -1, 1, 1]
    assert flows.fires_at_sender.all()
    assert len(order_of_start(flows)) == 20
    assert (all_to_all(5, 100).trigger == -1).all()
    assert (all_to_all(5, 100, window=9).trigger == -1).all()
    assert set(all_to_all(9, 100, ranks=[2, 8, 4]).src.tolist()) == {2, 4, 8}


def test_listed_after_others() -> None:
    flows = listed(
        4,
        [
            Row(0, 1, 100, name="a"),
            Row(1, 2, 100, name="b", start=1e-6),
            Row(2, 3, 100, after=("a", "b"), delay=5e-6),
            Row(3, 0, 100, after=(2,)),
        ],
    )
    assert flows.count == 4
    assert flows.need.tolist() == [0, 0, 2, 1]
    assert flows.fires[0] == flows.fires[1] == flows.trigger[2]
    assert flows.fires[2] == flows.trigger[3]
    assert flows.start.tolist() == [0, 1e-6, 5e-6, 0]
    assert order_of_start(flows) == [0, 1, 2, 3]


def test_a_flow_may_be_awaited_in_two_companies() -> None:
    rows = [Row(0, 1, 100), Row(1, 2, 100), Row(2, 3, 100, after=(0,)), Row(3, 0, 100, after=(0, 1))]
    flows = listed(4, rows)
    assert flows.fires.tolist() == [[0, 1], [1, -1], [-1, -1], [-1, -1]]
    assert sorted(order_of_start(flows)) == list(range(4))
    without = Flows(**{**vars(flows), "fires": np.where(np.arange(4)[:, None] == 1, -1, flows.fires)})
    assert 3 not in order_of_start(without)
    assert 2 in order_of_start(without)


def test_merge_renumbers() -> None:
    part = listed(4, [Row(0, 1, 5), Row(1, 2, 5, after=(0,))])
    both = merge([part, ring_coupled(4, 400), part, shift(4, 1, by=1)])
    assert both.trigger.tolist() == [-1, 0, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1]
    assert both.fires[[0, 6]].tolist() == [[0], [1]]
    assert both.leader.tolist() == [-1, -1, 5, 2, 3, 4, -1, -1, -1, -1, -1, -1]
    assert merge([]).count == 0


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_ring_steps(ranks: int) -> None:
    flows = ring_steps(ranks, 2400)
    steps = 2 * (ranks - 1)
    assert flows.count == ranks * steps
    assert (flows.size == 2400 / ranks).all()
    for flow in range(flows.count):
        rank, step = divmod(flow, steps)
        before = np.flatnonzero((flows.fires == flows.trigger[flow]).any(-1)) if step else []
        expected = [one * steps + step - 1 for one in ((rank - 1) % ranks, rank)] if step else []
        assert sorted(before) == sorted(expected)
        assert flows.need[flow] == len(expected)
    assert len(order_of_start(flows)) == flows.count
    assert not flows.fires_at_sender.any()


def test_ring_coupled_carries_the_bytes_of_the_steps() -> None:
    groups = [[0, 5, 2], [1, 3], [3, 4, 6, 7]]
    steps, coupled = ring_steps(8, 1000, groups=groups), ring_coupled(8, 1000, grain=100, groups=groups)
    assert coupled.count == 9
    for src in range(8):
        assert coupled.size[coupled.src == src].sum() == steps.size[steps.src == src].sum()
    assert (coupled.dst[coupled.leader] == coupled.src).all()
    assert coupled.head.tolist() == [334] * 3 + [500] * 2 + [250] * 4
    assert (coupled.grain == 100).all()


def test_sizes_above_31_bits_and_nothing() -> None:
    assert permutation(4, 3e9, seed=1).size.tolist() == [3e9] * 4
    assert (ring_steps(4, 0).size == 0).all()


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: permutation(1, 1, seed=0), "at least 2 hosts"),
        (lambda: permutation(4, -1, seed=0), "size -1 given"),
        (lambda: permutation(4, float("nan"), seed=0), "size nan given"),
        (lambda: shift(4, 1, by=8), "shift by 8 over 4 hosts"),
        (lambda: incast(4, 1, senders=4), "senders: 4 given, from 1 to 3"),
        (lambda: incast(4, 1, senders=[1, 9]), "starts at host 9, which is not there: hosts are 0 to 3"),
        (lambda: incast(4, 1, senders=[0, 1], receiver=1), "from host 1 to itself"),
        (lambda: all_to_all(4, 1, window=0), "window: 0 given"),
        (lambda: ring_steps(4, 1, groups=[[2]]), r"ring 0 has 1 member"),
        (lambda: ring_coupled(4, 1, groups=[[0, 1], [2, 7]]), "ring 1 names host 7"),
        (lambda: ring_coupled(4, 1, groups=[[0, 1, 0]]), "host 0 more than once"),
        (lambda: ring_coupled(4, 400, grain=101), "grain: 101 bytes given, must be from 0 to a chunk"),
        (lambda: listed(4, [Row(0, 1, 1, after=("x",))]), "there is no flow 'x'"),
        (lambda: listed(4, [Row(0, 1, 1, after=(1,)), Row(1, 0, 1, after=(0,))]), "2 flows would never start"),
        (lambda: listed(4, [Row(0, 1, 1), Row(1, 0, 1, after=(0,), start=1.0)]), "both start and after"),
        (lambda: listed(4, [Row(0, 1, 1, delay=1.0)]), "nothing to come after"),
        (lambda: listed(4, [Row(0, 0, 1)]), "from host 0 to itself"),
    ],
)
def test_refusals(build: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        build()  # pyright: ignore[reportCallIssue]
