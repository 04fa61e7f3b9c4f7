"""MRC: where skipping rests, when values retire and come back, equal planes, and no change where nothing happens."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.engine.faults import faults
from fabsim.engine.run import go_on, run
from fabsim.engine.simulate import Trace, simulate
from fabsim.engine.state import State
from fabsim.errors import InputError, Stopped
from fabsim.models.model import Model
from fabsim.models.mrc import Mrc, MrcState
from fabsim.models.protocol import Found, PathFeedback, Sender
from fabsim.models.recovery import SelectiveRepeat
from fabsim.topology import find_links, multi_plane
from fabsim.workload import Flows, assemble
from tests.small import RATE, case, slopes

PACKET = 1.0 / 12
ONE = jnp.ones(1)
SENDER = Sender(jnp.asarray(1.0), jnp.asarray(1e-6), ONE, ONE, PACKET * ONE, ONE, ONE, jnp.zeros(1, jnp.uint32))
"""A flow that sends 12 packets a step of 1 us."""
EVEN = jnp.full((1, 8), 0.125)
"""Two planes of four paths."""


def mrc(**changes: float) -> Mrc:
    """With the defaults of a scenario, but for `remap`."""
    values = {
        "entropies": 128.0, "backup": 128.0, "skip": 1.0, "probe": 100e-6, "successes": 10.0, "min_active": 8.0,
        "remap": 50e-6,
    } | changes  # fmt: skip
    return Mrc(**{name: jnp.asarray(value) for name, value in values.items()})


def after(
    law: Mrc, steps: int, state: MrcState | None = None, *, base: Any = EVEN, marked: Any = 0.0, trimmed: Any = 0.0,
    lost: Any = 0.0, through: Any = 1.0, ports: Any = (1.0, 1.0),
) -> tuple[MrcState, np.ndarray]:  # fmt: skip
    """The state after some steps in which parts of what is sent on each path are marked, trimmed or lost, and known at
    once; and [steps, K] the splits."""
    base = jnp.asarray(base).reshape(1, -1)
    m, n, q, t = (jnp.broadcast_to(jnp.asarray(x), base.shape) for x in (marked, trimmed, lost, through))
    port = jnp.asarray(ports)[None]

    def step(state: MrcState, _: None) -> tuple[MrcState, jax.Array]:
        sent = law.split(state, base)
        found = Found(through=t, ports=port)
        back = PathFeedback(acked=sent * (1 - n - q), marked=sent * m, trimmed=sent * n, lost=sent * q, found=found)
        state = law.step(state, back, base, SENDER)
        return state, law.split(state, base)[0]

    begin = law.init(base, SENDER) if state is None else state
    state, splits = jax.jit(lambda state: jax.lax.scan(step, state, None, length=steps))(begin)
    return state, np.asarray(splits)


def good(state: MrcState) -> np.ndarray:
    """[K] values in use, of a flow's active ones."""
    return np.asarray(state.active[0])


@pytest.mark.parametrize("skip", [1.0, 3.0])
def test_skipping_rests_by_its_turns(skip: float) -> None:
    """w in proportion to e / (1 + skip (marked + trimmed))."""
    marked, trimmed = np.array([0.02, 0.05, 0.1, 0.4, 0, 0, 0, 0.3]), np.array([0, 0.1, 0, 0, 0.05, 0, 0, 0])
    uneven = np.array([0.2, 0.15, 0.1, 0.05, 0.125, 0.125, 0.2, 0.05])
    weight = uneven / (1 + skip * (marked + trimmed))
    _, splits = after(mrc(skip=skip), 3000, base=uneven, marked=marked, trimmed=trimmed)
    np.testing.assert_allclose(splits[-1], weight / weight.sum(), rtol=2e-3)


def test_nothing_heard_nothing_changed() -> None:
    uneven = np.array([0.2, 0.15, 0.1, 0.05, 0.125, 0.125, 0.2, 0.05], "float32")
    _, splits = after(mrc(), 500, base=uneven)
    np.testing.assert_allclose(splits, np.broadcast_to(uneven, splits.shape), rtol=3e-7)


def test_a_lost_packet_retires_its_value_and_a_backup_takes_its_place() -> None:
    """One packet lost of 16 values on a path: 1 - exp(-1 / 16) of them go, and the plane keeps its number."""
    lost = np.zeros(8)
    lost[0] = PACKET / 0.125
    state, splits = after(mrc(), 1, lost=lost)
    gone = 0.125 * -np.expm1(-1 / 16)
    assert float(state.retired.sum()) == pytest.approx(gone, rel=1e-5)
    spare = np.full(4, 0.125)
    np.testing.assert_allclose(good(state)[:4], 0.125 - gone * np.array([1, 0, 0, 0]) + gone * spare / 0.5, rtol=1e-5)
    np.testing.assert_allclose(good(state)[4:], 0.125, rtol=1e-6)
    np.testing.assert_allclose(splits[0].reshape(2, 4).sum(1), 0.5, rtol=1e-6)


def test_a_dead_path_is_left_within_some_rotations_and_for_good() -> None:
    """A step retires h = 1 - exp(-12 / 128) of the path's values; a quarter of the backups that are called at first lie
    on it again, and none at last: between (1 - h)^n and (1 - 3/4 h)^n are left."""
    bad = np.array([1.0, 0, 0, 0, 0, 0, 0, 0])
    _, splits = after(mrc(), 3000, lost=bad, through=1 - bad)
    steps, hit = np.array([10, 30, 100]), -np.expm1(-12 / 128)
    left = splits[steps - 1, 0] / 0.125
    assert ((1 - hit) ** steps < left).all()
    assert (left < (1 - 0.75 * hit) ** steps * 1.001).all()
    assert splits[-1, 0] < 1e-6
    np.testing.assert_allclose(splits[:, :4].sum(1), 0.5, rtol=1e-5)


@pytest.mark.parametrize(("successes", "probe"), [(10.0, 100e-6), (3.0, 200e-6)])
def test_a_value_comes_back_after_its_probes(successes: float, probe: float) -> None:
    """In the mean exactly after `successes` probes, where no backup comes back with it."""
    bad = np.array([1.0, 0, 0, 0, 0, 0, 0, 0])
    law = mrc(successes=successes, probe=probe, backup=0.0)
    state, _ = after(law, 400, lost=bad, through=1 - bad)
    _, splits = after(law, 6000, state)
    assert splits[0, 0] < 1e-6
    used = 0.375 * splits[:, 0] / (0.5 - splits[:, 0])  # the others of the plane have 0.375
    missing = (1 - used / 0.125).sum() * 1e-6  # s
    assert missing == pytest.approx(successes * probe, rel=0.01)


def test_a_gray_path_is_left_for_most_of_the_time() -> None:
    """Losses of 0.2: within 400 us, and then for good, less than a twentieth of the path's part goes there."""
    gray = np.array([0.2, 0, 0, 0, 0, 0, 0, 0])
    _, splits = after(mrc(), 4000, lost=gray, through=1 - gray)
    assert splits[400:, 0].max() < 0.05 * 0.125
    np.testing.assert_allclose(splits.reshape(-1, 2, 4).sum(2), 0.5, rtol=1e-5)


@pytest.mark.parametrize("floor", [8.0, 32.0])
def test_a_plane_keeps_its_part_of_the_least(floor: float) -> None:
    """One plane loses all: it keeps half of `min_active`, and its part of the rotation."""
    bad = np.array([1.0] * 4 + [0.0] * 4)
    state, splits = after(mrc(min_active=floor), 500, lost=bad, through=1 - bad)
    assert good(state)[:4].sum() * 128 == pytest.approx(floor / 2, rel=1e-4)
    np.testing.assert_allclose(good(state)[4:].sum(), 0.5, rtol=1e-6)
    np.testing.assert_allclose(splits.reshape(-1, 2, 4).sum(2), 0.5, rtol=1e-5)


def test_values_of_a_dead_port_move_to_other_planes() -> None:
    state, splits = after(mrc(), 1, ports=(0.0, 1.0))
    np.testing.assert_allclose(splits[0], [0] * 4 + [0.25] * 4, rtol=1e-6)
    _, splits = after(mrc(), 1, state)
    np.testing.assert_allclose(splits[0], 0.125, rtol=1e-6)
    _, splits = after(mrc(), 1, state, ports=(0.0, 0.0))  # nowhere to go: as if nothing were known
    np.testing.assert_allclose(splits[0], 0.125, rtol=1e-6)


# Through the engine.

FABRIC = multi_plane(2, 2, 4, 2, rate=RATE / 2, latency=1e-6)
DT = 1e-6


def flows(*sizes: float) -> Flows:
    """From each of four hosts to the one below the other leaf; who sends nothing keeps the shape of all."""
    return assemble([0, 1, 2, 3], [2, 3, 0, 1], [*sizes, *[0.0] * (4 - len(sizes))])


PAIR = flows(1e12)
"""One without end."""


def scene(given: Flows = PAIR, dtype: str = "float32", **changes: float) -> tuple[Any, Model[Any]]:
    """Flows without end from leaf to leaf, over two planes of four spines, with a window of two round trips."""
    problem, model = case(FABRIC, given, window=1.5 * RATE * 9e-6, buffer=4e5, dtype=dtype, ring=64)
    law = jax.tree.map(lambda x: jnp.asarray(x, dtype), mrc(**changes))
    recovery = SelectiveRepeat(*(jnp.asarray(x, dtype) for x in (30e-6, 2.0, 64.0)))
    return problem, replace(model, balancer=law, recovery=recovery)


def befall(problem: Any, links: list[str], dtype: str = "float32", **columns: Any) -> Any:
    """The problem with three events, on links or on none; `react` is far off."""
    hit = [find_links(FABRIC, link) for link in links] + [np.zeros(0, int)] * (3 - len(links))
    columns = {name: np.append(x, np.zeros(3 - len(links))) if np.ndim(x) else x for name, x in columns.items()}
    columns = {"begin": 0.0, "loss": np.array([0.0, 0.0, 1e-30])} | columns  # as if some were lost: one program for all
    return replace(problem, faults=faults(hit, FABRIC.links, react=1.0, dtype=dtype, **columns))


def go(problem: Any, model: Any, steps: int) -> Trace:
    """Multiples of 200 steps, in frames of 10: the host's driver has one program for any number of these."""
    return run(problem, model, until=steps * DT, every=10, progress=False).trace


def carried(problem: Any, model: Any, steps: int, *links: str) -> np.ndarray:
    """[T, links] share of their rate that links carry, in frames of 10 us."""
    trace = go(problem, model, steps)
    which = [int(find_links(FABRIC, link)[0]) for link in links]
    return np.asarray(trace.frames.sent)[:, which] / (FABRIC.capacity[which] * 10 * DT)


def test_no_marks_no_change() -> None:
    """As a spray that is not balanced, to rounding."""
    problem, model = scene(flows(*[2e6] * 4))
    with_it = go(befall(problem, []), model, 200).completion
    without = go(problem, replace(model, balancer=None, recovery=None), 200).completion
    np.testing.assert_allclose(with_it, without, rtol=2e-6)


def test_a_dead_spine_is_found_and_a_living_one_again() -> None:
    """Found within some tens of us of the first loss, though `react` is a second; back with the probes."""
    problem, model = scene(probe=20e-6, successes=4.0)
    problem = befall(problem, ["p0.spine1"], begin=100e-6, end=400e-6, speed=0.0)
    seen = carried(problem, model, 800, "p0.leaf0->p0.spine1", "p0.leaf0->p0.spine2", "p1.leaf0->p1.spine0")
    part = 0.25 * 0.985
    np.testing.assert_allclose(seen[8:10], [[part] * 3] * 2, rtol=0.02)
    assert (seen[20:40, 0] < 0.02).all()  # 100 us, three detections, behind its death
    np.testing.assert_allclose(seen[20:40, 1], part * 4 / 3, rtol=0.03)
    np.testing.assert_allclose(seen[20:40, 2], part, rtol=0.02)
    assert seen[42, 0] < 0.1 * part  # 80 us of probes in the mean; with values that were backups, twice as many return
    assert seen[48, 0] > 0.5 * part
    np.testing.assert_allclose(seen[-10:, 0], part, rtol=0.02)


@pytest.mark.parametrize("port", ["h0<->p0.leaf0", "h2<->p0.leaf1"])
def test_a_dead_port_loses_until_its_values_have_moved(port: str) -> None:
    """At either end: half of what is sent is lost for 50 us, and then the other plane has all; and back."""
    problem, model = scene()
    problem = befall(problem, [port], begin=100e-6, end=300e-6, speed=0.0)
    seen = carried(problem, model, 600, "h0->p0.leaf0", "h0->p1.leaf0", "p0.leaf1->h2", "p1.leaf1->h2")
    assert (seen[10:15, 0] > 0.3).all()  # no more, since what is lost holds the window up until it is missed
    assert (seen[16:34, 0] == 0).all()
    np.testing.assert_allclose(seen[20:30, [1, 3]], 1.0, rtol=0.02)
    np.testing.assert_allclose(seen[-5:], 0.985, rtol=0.02)


def test_trims_of_the_last_hop_are_no_matter() -> None:
    """An incast with no thought of marks: the last ports trim, and no value is passed over."""
    problem, model = scene(assemble([0, 1, 2, 3], [2, 2, 0, 0], [4e6, 4e6, 0.0, 0.0]))
    model = replace(model, queue=replace(model.queue, buffer=model.queue.buffer * 0.25))
    never = jnp.full(FABRIC.links, 1e12, "float32")
    quiet = replace(model.queue, ecn_low=never, ecn_high=2 * never)
    trace = go(befall(problem, []), replace(model, queue=quiet), 200)
    assert float(trace.frames.dropped.sum()) > 1e5
    np.testing.assert_allclose(trace.state.balance.share, problem_share(model), rtol=1e-5)


def problem_share(model: Model[Any]) -> np.ndarray:
    """[F, K] the split of the routing."""
    return np.asarray(model.split.weight)


def test_every_byte_arrives_once() -> None:
    """Through a death, a gray link and a dead port: what went into the receivers, less what was lost behind the last
    port, is what was to be sent."""
    problem, model = scene(flows(*[4e6] * 4))
    problem = befall(
        problem, ["p0.spine1", "p1.leaf0->p1.spine2", "p1.leaf1<->h2"],
        begin=[20e-6, 30e-6, 50e-6], end=[1.0, 1.0, 120e-6], speed=[0.0, 1.0, 0.0], loss=[0.0, 0.2, 0.0],
    )  # fmt: skip
    trace = go(problem, model, 1000)
    assert np.isfinite(np.asarray(trace.completion)).all()
    into = (FABRIC.dst < FABRIC.hosts) & (FABRIC.src >= FABRIC.hosts)
    frames = trace.frames
    lost_behind = np.asarray(frames.dropped)[:, into].sum()
    arrived = float(np.asarray(frames.sent)[:, into].sum() - lost_behind)
    expected = float(np.asarray(problem.size).sum())
    assert lost_behind > 1e4
    assert arrived == pytest.approx(expected, rel=1e-5)
    state: State = trace.state
    assert state.paths is not None
    assert state.paths.gone is not None
    known = np.asarray(state.recovery.gone).sum(1) if state.recovery is not None else 0
    np.testing.assert_allclose(np.asarray(state.paths.gone).sum((1, 2)), known, atol=1e-5)


def test_a_header_that_is_lost_is_one_packet_lost() -> None:
    """Ports trim, and links lose some of the headers: a packet that was cut is not lost once more with its header."""
    problem, model = scene(assemble([0, 1, 2, 3], [2, 2, 0, 0], 4e6))
    model = replace(model, queue=replace(model.queue, buffer=model.queue.buffer * 0.1))
    problem = befall(problem, ["p*.leaf1->h2", "p*.leaf*->p*.spine*"], begin=0.0, loss=[0.2, 0.01])
    trace = go(problem, model, 1600)
    assert float(trace.frames.dropped.sum()) > 1e6
    assert np.isfinite(np.asarray(trace.completion)).all()
    np.testing.assert_allclose(trace.state.flow.lost, 0.0, atol=1e-4)
    np.testing.assert_allclose(trace.state.flow.in_flight, 0.0, atol=1e-3)


@pytest.mark.parametrize(("links", "found"), [(["p*.leaf1"], True), (["p0.leaf1"], False), (["h2->*"], False)])
def test_a_flow_without_any_path_left_stops_the_run(links: list[str], found: bool) -> None:
    """Its probes would go on for ever. The sentence comes some frames behind the death, not at the horizon; a flow that
    has a plane left, or whose acknowledgements only are cut off, ends."""
    problem, model = scene(assemble([0, 1, 2, 3], [2, 0, 0, 1], [2e6, 2e6, 0.0, 0.0]))
    problem = befall(problem, links, begin=40e-6, speed=0.0)
    if not found:
        assert np.isfinite(run(problem, model, progress=False, horizon=0.02).trace.completion).all()
        return
    with pytest.raises(Stopped, match=r"nothing moves for flows 1 \(1 in all\); 1 of them wait .* stay down") as caught:
        run(problem, model, progress=False)
    at = re.search(r"no progress at ([\d.]+) us", str(caught.value))
    assert at is not None
    assert float(at[1]) < 40 + 2 * 200 + 64  # chunks of 200 us, and the longest round trip that the state remembers


def test_no_compilation_for_another_parameter_or_another_place() -> None:
    problem, _ = scene(flows(*[1e6] * 4))
    compiled, found = 0, []
    for link, changes in (
        ("p0.spine0", {}),
        ("p1.spine2", {"skip": 3.0}),
        ("p0.spine0", {"remap": 1e-6, "probe": 1e-5}),
    ):
        _, model = scene(**changes)
        trace = go(befall(problem, [link], begin=10e-6, speed=0.0), model, 200)
        compiled = compiled or go_on._cache_size()
        found.append(float(trace.completion.max()))
    assert go_on._cache_size() == compiled
    assert np.isfinite(found).all()


def test_gradients() -> None:
    """Of what has arrived while a link is dead, by what is smooth."""
    with jax.enable_x64(True):
        problem, model = scene(flows(*[1e9] * 4), "float64", probe=30e-6, successes=4.0)
        problem = befall(problem, ["p0.spine1", "p1.spine0"], "float64", begin=10.3e-6, end=60.2e-6, speed=[0.0, 0.2])

        def uneven(problem: Any, model: Any) -> jax.Array:
            """How much of the split is where, weighed by the lane."""
            state = simulate(problem, model, steps=100, every=50, checkpoint=False).state
            return (state.balance.share * jnp.arange(8.0)).sum()

        places = {name: (lambda m, name=name: getattr(m.balancer, name)) for name in ("skip", "probe", "entropies")}
        _, found = slopes(uneven, problem, model, places)
    for name, (got, want) in found.items():
        assert abs(want) > 1e-6, name
        assert got == pytest.approx(want, rel=1e-4), name


SCENARIO = {
    "fabric": {"kind": "multi_plane", "planes": 2, "leaves": 2, "spines": 4, "hosts_per_leaf": 2, "rate": "200 Gbps",
               "latency": "1 us"},
    "routing": {"kind": "drawn", "entropies": 64},
    "traffic": [{"kind": "shift", "size": "2 MB", "by": 2}],
    "queue": {"kind": "trim", "ecn_last_hop": False},
    "balancer": {"kind": "mrc"},
}  # fmt: skip


def test_in_a_scenario() -> None:
    died = {"faults": [{"link": "p0.spine1", "at": "20 us", "speed": 0}], "balancer.detect": "40 us"}
    _, model = fabsim.load(SCENARIO, died).compile()
    assert isinstance(model.balancer, Mrc)
    assert model.recovery is not None
    assert float(model.recovery.timeout) == pytest.approx(40e-6)
    assert (float(model.balancer.entropies), float(model.balancer.backup)) == (64.0, 64.0)
    _, model = fabsim.load(SCENARIO, balancer={"kind": "mrc", "entropies": 256}).compile()
    assert model.recovery is None
    assert isinstance(model.balancer, Mrc)
    assert float(model.balancer.backup) == 256.0


def test_a_sweep_is_one_program() -> None:
    sweep = {"grid": {"balancer.skip": [1, 4], "balancer.detect": ["30 us", "60 us"]}, "metrics": ["last_completion"]}
    faulty = SCENARIO | {"faults": [{"link": "p0.spine1", "at": "20 us", "speed": 0}], "sweep": sweep}
    found = fabsim.sweep(fabsim.load(faulty), progress=False)
    values = np.asarray(found["last_completion"], float).reshape(-1)
    alone = fabsim.run(fabsim.load(faulty, balancer__skip=4, balancer__detect="60 us"), progress=False)
    assert values[-1] == pytest.approx(alone.completion.max(), rel=1e-4)
    assert values[1] > values[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"routing": {"kind": "ecmp"}}, "mrc moves bytes between paths"),
        ({"balancer.min_active": 65}, "more values than the 64 that are active are never retired: 65; give at most 64"),
        ({"recovery": {"kind": "selective_repeat", "timeout": "1 ms"}}, "give balancer.detect instead"),
        ({"balancer.detect": 30}, "balancer.detect"),
        ({"balancer.skip": 0}, "balancer.skip"),
    ],
)
def test_refused_in_a_sentence(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        fabsim.load(SCENARIO, change).compile()
    assert words in str(caught.value)
