"""What a timeout does to balancers: REPS freezes and comes back, bitmap passes over; and nothing without losses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.engine.faults import faults
from fabsim.engine.run import run
from fabsim.engine.simulate import Trace, begin, simulate
from fabsim.engine.stuck import cut_off_for_good, explain_stuck
from fabsim.models.bitmap import Bitmap
from fabsim.models.model import Model
from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.recovery import SelectiveRepeat
from fabsim.models.reps import Reps
from fabsim.models.reps_bitmap import RepsBitmap
from fabsim.scenario.check import report
from fabsim.topology import find_links, leaf_spine
from fabsim.workload import assemble, shift
from tests.small import RATE, case

ONE = jnp.asarray(1.0)
PACKET = 1.0 / 12
EVEN = np.full(4, 0.25, "float32")
DEAD = np.array([1.0, 0.0, 0.0, 0.0], "float32")
FABRIC = leaf_spine(2, 4, 2, rate=RATE, latency=1e-6)
FREEZE = 300e-6


def reps(freeze: Any = FREEZE, explore: Any = 16.0) -> Reps:
    """With all clean packets named, and 8 of them kept."""
    return Reps(8 * ONE, ONE, jnp.asarray(freeze), jnp.asarray(explore))


def bitmap(loss: Any = 15.0) -> Bitmap:
    """Over 128 values."""
    return Bitmap(ONE, 4 * ONE, 128 * ONE, jnp.asarray(loss))


def mixed() -> RepsBitmap:
    """The packet simulator's default."""
    return RepsBitmap(ONE, 4 * ONE, 128 * ONE, 8 * ONE, 0.25 * ONE, 15 * ONE)


def splits(law: Any, lost: Any, steps: int, *, marked: Any = 0.0, until: int | None = None) -> jax.Array:
    """[steps, K] of a flow that sends 4 packets in each step of 1 us, and of which each path loses a part, which is
    missed at once; after `until` steps nothing more is lost."""
    one, base = jnp.ones(1), jnp.asarray(EVEN, jnp.result_type(float))[None]
    sender = Sender(ONE, 1e-6 * ONE, one, one, PACKET * one, one, one, jnp.zeros(1, jnp.uint32))

    def step(state: Any, number: jax.Array) -> tuple[Any, jax.Array]:
        sent = law.split(state, base) / 3
        off = sent * jnp.asarray(lost) * (1.0 if until is None else number < until)
        back = PathFeedback(sent - off, (sent - off) * jnp.asarray(marked), jnp.zeros_like(sent), off)
        state = law.step(state, back, base, sender)
        return state, law.split(state, base)[0]

    return jax.lax.scan(step, law.init(base, sender), jnp.arange(steps))[1]


def test_a_frozen_flow_leaves_a_dead_path_by_what_it_keeps() -> None:
    """exp(-n / 8) of the share is left n named packets later: each of 4 in a step but those that are lost."""
    share = np.asarray(splits(reps(1.0), DEAD, 30))[:, 0]
    named = np.cumsum(4 * (1 - np.append(0.25, share[:-1])))
    np.testing.assert_allclose(share, 0.25 * np.exp(-named / 8), rtol=1e-4)


def test_a_freezing_ends_and_explores() -> None:
    """20.5 us, and the path lives again. The next 16 packets draw their paths, and enter a memory of 8; without marks
    all stays as it is then."""
    share = np.asarray(splits(reps(20.5e-6), DEAD, 60, until=15))[:, 0]
    assert share[19] < 1e-3
    np.testing.assert_allclose(share[25:], 0.25 * (1 - np.exp(-16 / 8)), rtol=0.01)


def test_a_freezing_keeps_off_what_a_draw_would_hit() -> None:
    """A tenth is marked everywhere, and drawn anew: a path that loses all keeps e / m of that, and frozen nothing."""
    never, frozen = (np.asarray(splits(law, DEAD, 400, marked=0.1))[-1, 0] for law in (reps(0.0), reps(1.0)))
    assert never == pytest.approx(1 / (1 + 3 / 0.1), rel=1e-3)
    assert frozen < 1e-6


def test_the_path_that_loses_least_gets_all() -> None:
    """While frozen, shares go as products of what comes back: w (1 - l) / sum of w (1 - l)."""
    lost = np.array([0.3, 0.2, 0.1, 0.01], "float32")
    share = np.asarray(splits(reps(1.0), lost, 400))[-1]
    assert share[3] > 0.99


def test_reps_that_does_not_freeze_rests_where_misses_are_equal() -> None:
    """In proportion to e / (marked or lost)."""
    marked, lost = np.array([0.02, 0.05, 0.1, 0.3], "float32"), np.array([0.1, 0.0, 0.02, 0.1], "float32")
    bad = 1 - (1 - marked) * (1 - lost)
    share = np.asarray(splits(replace(reps(), freeze=None, explore=None), lost, 3000, marked=marked))[-1]
    np.testing.assert_allclose(share, (1 / bad) / (1 / bad).sum(), rtol=1e-3)


def rest(marked: np.ndarray, lost: np.ndarray, loss: float = 15.0) -> np.ndarray:
    """[K] w ~ e / (1 + (marked + 15 lost) / f), f = sum of e / (1 + ...): the values that are free."""
    free, weight = 1.0, EVEN
    for _ in range(200):
        weight = 1 / (1 + (marked + loss * lost) / free)
        free = weight.mean()
    return weight / weight.sum()


def test_bitmap_rests_by_its_penalties() -> None:
    marked, lost = np.array([0.02, 0.05, 0.1, 0.3], "float32"), np.array([0.05, 0.0, 0.01, 0.0], "float32")
    share = np.asarray(splits(bitmap(), lost, 6000, marked=marked))[-1]
    np.testing.assert_allclose(share, rest(marked * (1 - lost), lost), rtol=3e-3)


def test_slopes() -> None:
    """By the penalty of a loss, by the time of freezing (it ends inside a step), by the packets that explore."""
    lost, weight = np.array([0.3, 0.05, 0.0, 0.0]), jnp.arange(4.0)

    def value(at: jax.Array) -> jax.Array:
        loss, freeze, explore = at
        ended = (splits(reps(freeze, explore), lost, 40, until=1) @ weight).sum()
        return splits(bitmap(loss), lost, 200)[-1] @ weight + ended

    with jax.enable_x64(True):
        at = jnp.asarray([15.0, 20.3e-6, 16.3], "float64")
        got, steps = np.asarray(jax.grad(value)(at)), jnp.diag(1e-6 * at)
        values = jax.vmap(value)(jnp.concatenate([at + steps, at - steps]))
        want = np.asarray((values[:3] - values[3:]) / (2e-6 * at))
    assert (np.abs(want) > 0).all()
    np.testing.assert_allclose(got, want, rtol=1e-4)


# Through the engine.


def scene(
    balancer: Any, sizes: list[float], links: list[str], timeout: float = 30e-6, **columns: Any
) -> tuple[Any, Model[Any]]:
    """A flow from each of four hosts to the one below the other leaf, over four spines and with a window of two round
    trips, and two events, on links or on none; `react` is far off."""
    problem, model = case(FABRIC, assemble([0, 1, 2, 3], [2, 3, 0, 1], sizes), window=1.5 * RATE * 9e-6, buffer=4e5)
    hit = [find_links(FABRIC, link) for link in links] + [np.zeros(0, int)] * (2 - len(links))
    columns = {"loss": [0.0, 1e-30]} | columns  # as if some were lost: one program for all
    schedule = faults(hit, FABRIC.links, react=1.0, **columns)
    recovery = SelectiveRepeat(*(jnp.asarray(x, "float32") for x in (timeout, 2.0, 64.0)))
    law = jax.tree.map(lambda x: jnp.asarray(x, "float32"), balancer)
    return replace(problem, faults=schedule), replace(model, balancer=law, recovery=recovery)


def go(problem: Any, model: Any, steps: int) -> Trace:
    """Multiples of 200 steps, in frames of 10: the host's driver has one program for any number of these."""
    return run(problem, model, until=steps * 1e-6, every=10, progress=False).trace


def carried(problem: Any, model: Any, steps: int, *links: str) -> np.ndarray:
    """[T, links] share of their rate that links carry, in frames of 10 us."""
    which = [int(find_links(FABRIC, link)[0]) for link in links]
    return np.asarray(go(problem, model, steps).frames.sent)[:, which] / (FABRIC.capacity[which] * 1e-5)


ALONE = [1e12, 0.0, 0.0, 0.0]
"""One flow without end; the others have nothing to send."""


def test_reps_leaves_a_dead_spine_and_finds_it_alive_again() -> None:
    """Nobody tells it. Dead from 100 us to 400 us: nothing goes there some timeouts later; the freezing began with the
    first miss, a round trip and a timeout behind the death. After it some 16 packets, of 100 in a window, find the path
    again; nothing is marked, and there are no more draws."""
    problem, model = scene(reps(), ALONE, ["spine1"], begin=100e-6, end=400e-6, speed=0.0)
    seen = carried(problem, model, 800, "leaf0->spine1", "leaf0->spine2")
    np.testing.assert_allclose(seen[5:10], 0.25, rtol=1e-3)
    assert (seen[20:40, 0] < 1e-3).all()  # from 100 us after its death on
    np.testing.assert_allclose(seen[25:40, 1], 1 / 3, rtol=0.03)
    assert seen[45:].mean(0)[0] > 0.1 * 0.25
    longer = replace(model.balancer, freeze=jnp.asarray(10e-3, "float32"))
    assert (carried(problem, replace(model, balancer=longer), 800, "leaf0->spine1")[20:] < 1e-3).all()


def test_bitmap_on_a_gray_link_rests_by_its_penalties() -> None:
    """A fiftieth is lost on one of four paths: the shares of the links, without end. Losses are missed by the timeout,
    of 10 us; few of a value's packets are lost in one, so penalties are hardly ever shared."""
    problem, model = scene(bitmap(), ALONE, ["leaf0->spine1"], 10e-6, begin=0.0, loss=[0.02, 0.0])
    seen = carried(problem, model, 4000, *(f"leaf0->spine{i}" for i in (1, 0, 2, 3)))[150:].mean(0)
    share = rest(np.zeros(4), np.array([0.02, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(seen / seen.sum(), share, rtol=0.02)


@pytest.mark.parametrize("law", [reps(60e-6), bitmap(), mixed()], ids=["reps", "bitmap", "mixed"])
def test_every_byte_arrives_once(law: Any) -> None:
    """Through a death and a gray link."""
    problem, model = scene(
        law, [4e6] * 4, ["spine1", "leaf0->spine2"],
        begin=[20e-6, 30e-6], end=[120e-6, 1.0], speed=[0.0, 1.0], loss=[0.0, 0.1],
    )  # fmt: skip
    trace = go(problem, model, 1200)
    assert np.isfinite(np.asarray(trace.completion)).all()
    into = (FABRIC.dst < FABRIC.hosts) & (FABRIC.src >= FABRIC.hosts)
    frames = trace.frames
    assert float(np.asarray(frames.dropped).sum()) > 1e5
    assert float(np.asarray(frames.sent)[:, into].sum()) == pytest.approx(np.asarray(problem.size).sum(), rel=1e-5)
    np.testing.assert_allclose(trace.state.flow.lost, 0.0, atol=1e-4)


def test_senders_know_their_own_port() -> None:
    """A dead port of the sender loses nothing: the flow waits."""
    took = []
    for at in (20e-6, 1.0):
        problem, model = scene(reps(), [4e6, 0.0, 0.0, 0.0], ["h0->leaf0"], begin=at, end=at + 40e-6, speed=0.0)
        trace = go(problem, model, 200)
        assert float(np.asarray(trace.frames.dropped).sum()) == 0
        took.append(float(trace.completion[0]))
    assert took[0] == pytest.approx(took[1] + 40e-6, abs=1e-6)


def test_followers_of_a_flow_without_any_path_left() -> None:
    """A ring over two leaves, one of which dies for good: three hops are cut off, and the fourth follows. A death with
    an end, or a flap, cuts nobody off."""
    ring = {"traffic": [{"kind": "ring", "size": "4 MB", "groups": [[0, 1, 2, 3]]}]}

    def cut(now: float, **event: Any) -> list[bool]:
        scenario = fabsim.load(SCENARIO, ring, faults=[{"link": "leaf1", "at": "40 us", "speed": 0} | event])
        problem, model = scenario.compile()
        state = begin(problem, model)
        state = replace(state, flow=replace(state.flow, begin=jnp.zeros(4), credit=jnp.ones(4)))
        found = cut_off_for_good(problem, model.split.weight, state, now)
        if found.any():
            with pytest.raises(fabsim.Stopped, match=r"nothing moves for flows 1, 2, 3 \(4 in all\); 3 of them wait"):
                explain_stuck(problem, state, found, now, 1e-4)
        return found.tolist()

    assert cut(1e-3) == [True] * 4
    assert cut(20e-6) == [False] * 4
    assert cut(1e-3, until="2 ms") == [False] * 4
    assert cut(1e-3, flap={"every": "50 us", "down": "10 us"}) == [False] * 4


def test_what_is_behind_a_link_that_dies_arrives() -> None:
    """The last byte is past the dead link at the end of the chunk in which it dies: nobody is cut off."""
    traffic = [{"kind": "flows", "list": [{"src": 0, "dst": 2, "size": "9.65 MB"}]}]
    faults = [{"link": "leaf0->spine*", "at": "199.5 us", "speed": 0}]
    scenario = fabsim.load(SCENARIO, traffic=traffic, faults=faults)
    problem, model = scenario.compile()
    took = run(problem, model, progress=False).trace.completion
    assert 199.5e-6 < float(took[0]) < 215e-6
    assert float(took[0]) == pytest.approx(float(simulate(problem, model, steps=300, every=60).completion[0]), rel=1e-5)


def test_without_losses_there_is_nothing_of_it() -> None:
    """No timers, no third penalty, no bytes that are missed by lane."""
    problem, model = case(FABRIC, shift(4, 1e6, by=2))
    for law in (reps(), bitmap()):
        state = jax.eval_shape(lambda law=law: simulate(problem, replace(model, balancer=law), steps=1, every=1)).state
        assert state.paths.gone is None
    _, made = fabsim.load(SCENARIO, faults=[]).compile()
    assert isinstance(made.balancer, Reps)
    assert made.balancer.freeze is None
    assert made.balancer.explore is None
    assert made.recovery is None


SCENARIO = {
    "fabric": {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 2, "rate": "400 Gbps",
               "latency": "1 us"},
    "routing": {"kind": "drawn", "entropies": 64},
    "traffic": [{"kind": "shift", "size": "2 MB", "by": 2}],
    "balancer": {"kind": "reps"},
    "recovery": {"kind": "selective_repeat", "timeout": "30 us"},
    "faults": [{"link": "spine1", "at": "20 us", "speed": 0}],
    "react": "1 s",
}  # fmt: skip


def test_in_a_scenario() -> None:
    law = fabsim.load(SCENARIO).compile()[1].balancer
    assert isinstance(law, Reps)
    assert law.freeze is not None
    assert law.explore is not None
    assert (float(law.freeze), float(law.explore)) == (pytest.approx(10e-3), 16.0)
    law = fabsim.load(SCENARIO, balancer={"kind": "mixed", "loss": 7}).compile()[1].balancer
    assert isinstance(law, RepsBitmap)
    assert law.loss is not None
    assert float(law.loss) == 7.0
    text = report(fabsim.load(SCENARIO, {"faults": [], "balancer.freeze": "1 ms", "recovery": {"kind": "go_back_n"}}))
    assert "balancer.freeze: nothing is lost in silence, and no timeout comes" in text


def test_a_sweep_over_times_of_freezing() -> None:
    """Each as alone. The spine comes back: a short freezing finds it, a long one does without."""
    sweep = {"grid": {"balancer.freeze": ["20 us", "1 ms"]}, "metrics": ["last_completion"]}
    faults = [{"link": "spine1", "at": "20 us", "until": "100 us", "speed": 0}]
    scenario = SCENARIO | {"faults": faults, "traffic": [{"kind": "shift", "size": "8 MB", "by": 2}]}
    found = fabsim.sweep(fabsim.load(scenario | {"sweep": sweep}), progress=False)
    swept = np.asarray(found["last_completion"], float).reshape(-1)
    alone = fabsim.run(fabsim.load(scenario, balancer__freeze="1 ms"), progress=False)
    assert swept[1] == pytest.approx(alone.completion.max(), rel=1e-4)
    assert swept[0] != swept[1]


BELOW = {
    "traffic": [{"kind": "flows", "list": [{"src": 0, "dst": 1, "size": "1 MB"}]}], "faults": [],
    "recovery": {"kind": "selective_repeat"},
}  # fmt: skip
"""Traffic below one leaf."""


def test_a_single_path_is_nothing_to_balance() -> None:
    """It runs as without a balancer, and `check` says so."""
    scenario = fabsim.load(SCENARIO, BELOW | {"balancer": {"kind": "ideal"}})
    took = simulate(*scenario.compile(), steps=60, every=60).completion
    without = simulate(*fabsim.load(SCENARIO, BELOW).compile(), steps=60, every=60).completion
    assert float(took[0]) == pytest.approx(float(without[0]), rel=1e-6)
    assert "balancer: ideal moves bytes between paths, and every flow has a single one" in report(scenario)


def test_a_sweep_over_draws_of_which_some_have_nothing_to_balance() -> None:
    traffic = [{"kind": "incast", "receiver": 0, "senders": [1], "size": "1 MB"}]
    sweep = {"grid": {"traffic.0.receiver": [0, 3]}, "metrics": ["last_completion"]}
    found = fabsim.sweep(fabsim.load(SCENARIO, BELOW | {"traffic": traffic, "sweep": sweep}), progress=False)
    assert np.isfinite(np.asarray(found["last_completion"], float)).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"balancer.freeze": 10}, "balancer.freeze"),
        ({"balancer.explore": -1}, "balancer.explore"),
        ({"balancer": {"kind": "bitmap", "loss": 0}}, "balancer.loss"),
    ],
)
def test_refused_in_a_sentence(change: dict[str, Any], words: str) -> None:
    with pytest.raises(fabsim.InputError) as caught:
        fabsim.load(SCENARIO, change).compile()
    assert words in str(caught.value)
