"""Receiver credit: what senders ask for, and whom receivers give it, on oversubscribed fabrics, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.cli import main
from fabsim.models.chance import dice
from fabsim.models.protocol import Feedback, Sender
from fabsim.models.rccc import Rccc
from fabsim.models.rccc_oversubscribed import DEFAULTS, RcccOversubscribed
from fabsim.models.told import STEPS, Told
from fabsim.topology import leaf_spine, single_switch
from fabsim.topology.baseline import oversubscription

PACKET = 0.1
"""Units."""

CREDIT = {"first": 10.0, "pace": 1.0, "turn": 4.0}


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """float64, for the tests of this file only."""
    with jax.enable_x64(True):
        yield


def sender(out: Any, into: Any) -> Sender:
    """Flows between ports of one unit a step. out, into: [F] links."""
    one = jnp.ones(len(out))
    return Sender(
        unit=jnp.asarray(1.0),
        dt=jnp.asarray(1e-6),
        rate=one,
        rtt=8.0 * one,
        packet=PACKET * one,
        credit=5.0 * one,
        in_flight=0.0 * one,
        dice=jnp.asarray(dice(7, len(out))),
        out=jnp.asarray(out)[:, None],
        into=jnp.asarray(into)[:, None],
        capacity=jnp.ones(int(max(*out, *into)) + 2),
    )


def law(kind: Any, **values: float) -> Any:
    """A law with these parameters."""
    return kind(**{name: jnp.asarray(value) for name, value in values.items()})


def heard(senders: Sender, **values: float) -> Feedback:
    """What comes back to all flows."""
    none = jnp.zeros_like(senders.rtt)
    back = Feedback(acked=none, nacked=none, marked=none, delay=none)
    return replace(back, **{name: none + value for name, value in values.items()})


def test_words_are_heard_of_in_the_order_in_which_they_were_sent() -> None:
    """Packet by packet: a word is heard of with the byte that carries it, whatever comes back when."""
    draw = np.random.default_rng(5)
    sent, words = draw.uniform(0.1, 1.0, (2, 12))
    told, nothing, trip = Told.nothing(jnp.zeros(1)), jnp.zeros(1), jnp.full(1, 1e3)
    for bytes_, word in zip(sent, words, strict=True):
        told = told.after(jnp.full(1, bytes_), jnp.full(1, word), nothing, nothing, trip)
    come, ends = 0.0, np.cumsum(sent)
    for back in draw.uniform(0.0, 1.5, 6):
        told = told.after(nothing, nothing, jnp.full(1, back), nothing, trip)
        come += back
        there = np.clip((come - (ends - sent)) / sent, 0.0, 1.0)
        assert float(told.unheard[0]) == pytest.approx((words * (1 - there)).sum(), rel=1e-9, abs=1e-12)


def test_a_trimmed_header_tells_of_all_that_was_sent_a_round_trip_before() -> None:
    told, nothing, trip = Told.nothing(jnp.zeros(1)), jnp.zeros(1), jnp.full(1, 4.0)
    for _ in range(10):
        told = told.after(jnp.ones(1), jnp.ones(1), nothing, nothing, trip)
    told = told.after(nothing, nothing, nothing, jnp.ones(1), trip)
    assert float(told.unheard[0]) == pytest.approx(2.5)  # those of the last three steps, to half a step


def test_slopes_do_not_grow_while_nothing_is_under_way() -> None:
    """A flow that waits for its start has an empty line: what has been sent is heard of, and what has not is not."""
    nothing, trip = jnp.zeros(1), jnp.full(1, 4.0)

    def later(sent: jax.Array, steps: int) -> jax.Array:
        told = Told(sent, jnp.zeros_like(sent))
        for _ in range(steps):
            told = told.after(nothing, nothing, nothing, nothing, trip)
        return told.sent.sum()

    for steps in (1, 30):
        assert np.abs(jax.grad(later)(jnp.zeros((1, STEPS)), steps)).max() <= 1.0


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_flows_in_line_at_a_port_that_is_not_full(load: float) -> None:
    """1 / (1 - load) on average, for one turn (processor sharing)."""
    ports = 20_000
    out = np.repeat(np.arange(ports), 2)
    senders = sender(out, out)
    spent = jnp.asarray(np.tile([4 * PACKET, load], ports))
    number = law(Rccc, **CREDIT).in_line(spent, jnp.zeros(2 * ports), senders.dice, senders)
    assert float(number[::2].mean()) == pytest.approx(1 / (1 - load), rel=0.03)


def test_a_request_that_finds_the_receiver_idle_is_met_by_itself() -> None:
    """Ten packets of a unit: each its own where the receiver has nothing to do, four together where it has no time."""
    senders, own = sender([0, 1], [2, 2]), law(Rccc, **CREDIT)
    units = jnp.full(2, 0.2)
    for idle, each in ((1.0, 2.0), (0.0, 0.5), (0.5, 1.25)):
        found = own.visits(units, idle * senders.capacity, senders)
        np.testing.assert_allclose(found, min(each, 1.0))


def test_who_asks_for_nothing_waits_until_all_others_have_had_their_turns() -> None:
    """5 flows of 1, 2, 3, 4 and 5 places: a round is 15 turns of 4 packets, at a unit a step 6 steps."""
    places = jnp.arange(1.0, 6.0)
    senders = sender(np.arange(5), np.full(5, 5))
    credit, given, waited = law(Rccc, **CREDIT), [], jnp.zeros(5)
    for _ in range(24):
        waited, gets = credit.in_advance(waited, jnp.full(5, -1.0), places, jnp.full(7, 0.5), senders)
        given.append(np.asarray(gets))
    got = np.cumsum(given, 0)
    assert got[11] == pytest.approx(4 * PACKET * np.arange(1, 6))
    assert got[23] == pytest.approx(8 * PACKET * np.arange(1, 6))
    assert got[7] == pytest.approx(np.zeros(5), abs=1e-9)  # the fifth flow begins at two thirds


def test_receivers_of_an_oversubscribed_fabric_cut_and_raise_their_pace() -> None:
    """Two of five packets trimmed and all others marked: (1 - 0.4) (1 - 0.5 (0.5 - 0.3)); then steps of 1, 2, 4 %."""
    senders = sender([0, 1], [2, 2])
    wary = law(RcccOversubscribed, **CREDIT, least=0.225, network_rtt=8e-6, **DEFAULTS)
    state = replace(wary.init(senders), change_in=jnp.full(2, 0.5))
    rates = []
    for back in ({"acked": 0.6, "marked": 0.6, "nacked": 0.4}, *[{"acked": 1.0}] * 4):
        state = wary.listen(state, heard(senders, **back), senders)
        rates.append(np.asarray(state.rate))
        assert np.all((state.change_in >= 9.0) & (state.change_in <= 15.0))
        assert state.change_in[0] == state.change_in[1]
        state = replace(state, change_in=jnp.full(2, 0.5))
    assert np.array(rates)[:, 0] == pytest.approx([0.54, 0.55, 0.57, 0.61, 0.69])
    assert np.array_equal(np.array(rates)[:, 0], np.array(rates)[:, 1])


def test_trims_without_marks_are_those_of_the_last_hop() -> None:
    senders = sender([0], [1])
    wary = law(RcccOversubscribed, **CREDIT, least=0.225, network_rtt=8e-6, **DEFAULTS)
    state = replace(wary.init(senders), rate=jnp.full(1, 0.5), change_in=jnp.full(1, 0.5))
    assert float(wary.listen(state, heard(senders, acked=1.0, nacked=1.0), senders).rate[0]) == pytest.approx(0.51)


@pytest.mark.parametrize(("spines", "ratio"), [(4, 1.0), (2, 2.0), (1, 4.0)])
def test_oversubscription(spines: int, ratio: float) -> None:
    assert oversubscription(leaf_spine(2, spines, 4, rate=1e9, latency=1e-6)) == pytest.approx(ratio)
    assert oversubscription(single_switch(4, rate=1e9, latency=1e-6)) == 1.0


def test_a_scenario_of_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "credit.yaml"
    file.write_text(
        "name: credit\n"
        "fabric: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 4, rate: 400 Gbps, latency: 1 us}\n"
        "routing: {kind: all}\n"
        "traffic: [{kind: permutation, size: 500 kB}]\n"
        "transport: {kind: rccc_oversubscribed}\n"
    )
    assert main(["run", str(file), "--quiet", "--out", str(tmp_path / "out.h5")]) == 0
    assert main(["check", str(file), "--set", "transport.least=0"]) == 2
    assert "transport.least" in capsys.readouterr().err


def test_credit_is_not_spread_over_devices() -> None:
    """A receiver would not know of the senders on other devices."""
    from types import SimpleNamespace
    from typing import cast

    from fabsim.engine.spread import Spread, dealt
    from fabsim.errors import InputError

    for credit in (law(Rccc, **CREDIT), law(RcccOversubscribed, **CREDIT, least=0.225, network_rtt=8e-6, **DEFAULTS)):
        two = SimpleNamespace(mesh=SimpleNamespace(size=2))
        with pytest.raises(InputError, match="looks at the flows of other senders"):
            dealt(cast("Spread", two), cast(Any, SimpleNamespace(transport=credit)))
