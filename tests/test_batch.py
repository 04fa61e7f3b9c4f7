"""Batches: every member as if it were alone, however the members lie on devices."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.engine import flags
from fabsim.engine.batch import batch, shape_of
from fabsim.engine.problem import Problem
from fabsim.engine.run import run
from fabsim.engine.trailing import trailing
from fabsim.errors import InputError
from fabsim.models.model import Model
from fabsim.routing.choose import ecmp
from fabsim.study.advance import (
    Outcome,
    Spread,
    advance_all,
    begin_all,
    blocks,
    finish_all,
    run_batch,
    spread_out,
)
from fabsim.study.devices import over
from fabsim.topology import leaf_spine
from fabsim.workload import assemble
from tests.small import RATE, case
from tests.test_pfc import pausing

FABRIC = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)
FLOWS = assemble(
    [0, 1, 2, 3, 0], [3, 3, 3, 0, 1], 4e5, trigger=[-1, -1, -1, 0, 1], need=[0, 0, 0, 1, 1], fires=[0, 1, -1, -1, -1]
)


@cache
def made(seed: int | None = None) -> tuple[Problem, Model[Any]]:
    """Five flows, three of them into one host, with trims and a chain; over all paths, or over hashed ones."""
    routes = None if seed is None else ecmp(FABRIC, FLOWS, seed=seed)
    return case(FABRIC, FLOWS, routes, share_rows=False, window=3e5, buffer=5e4, ring=16)


def variant(number: int, seed: int | None = None) -> Model[Any]:
    """The model with another buffer, window and latency."""
    model = made(seed)[1]
    return replace(
        model,
        links=replace(model.links, latency=model.links.latency * (1.0 + 0.02 * number)),
        queue=replace(model.queue, buffer=model.queue.buffer * (1.0 + 0.3 * number)),
        transport=replace(model.transport, window=np.float32(3e5 - 1e4 * number)),
    )


def alike(found: Outcome, problems: list[Problem], models: list[Model[Any]]) -> None:
    """Each member is its own single run, up to the last bit."""
    for number, (problem, model) in enumerate(zip(problems, models, strict=True)):
        alone = run(problem, model, progress=False).trace
        np.testing.assert_allclose(found.completion[number], alone.completion, rtol=3e-7)
        np.testing.assert_allclose(found.start[number], alone.start, rtol=3e-7)
        for name in ("sent", "dropped", "marked", "again"):
            value = np.float64(getattr(alone.frames, name)).sum()
            np.testing.assert_allclose(getattr(found.tally, name)[number], value, rtol=1e-5, atol=1.0)
        assert found.tally.peak[number] == pytest.approx(alone.frames.peak.max(), rel=1e-6)


def test_members_that_differ_in_values_share_the_network() -> None:
    problem, models = made()[0], [variant(i) for i in range(3)]
    many = batch([problem] * 3, models)
    assert many.problem.route is problem.route
    assert many.same_paths
    assert many.model.queue.buffer.shape == (FABRIC.links, 3)
    assert many.model.links.capacity is models[0].links.capacity
    alike(run_batch(many), [problem] * 3, models)


def test_members_may_have_different_networks() -> None:
    problems, models = [made(seed)[0] for seed in (1, 2, 5)], [variant(i, seed) for i, seed in enumerate((1, 2, 5))]
    many = batch(problems, models)
    assert not many.same_paths
    alike(run_batch(many), problems, models)


def test_members_may_pause_and_lose() -> None:
    """Over one lossy link, with another threshold and timeout for each member."""
    problem, loss = made()[0], np.where(np.arange(FABRIC.links) == 1, 1e-3, 0.0).astype("float32")

    def lossy(number: int) -> Model[Any]:
        model = pausing(variant(number), xoff=2e4 + 1e4 * number, headroom=2e4)
        recovery = replace(model.recovery, timeout=np.float32(1e-5 + 1e-6 * number))
        return replace(model, links=replace(model.links, loss=loss), recovery=recovery)

    models = [lossy(number) for number in range(3)]
    alike(run_batch(batch([problem] * 3, models)), [problem] * 3, models)


def test_a_batch_stops_where_it_is_told() -> None:
    problem = replace(made()[0], start=made()[0].start.at[2].set(250e-6))
    models = [variant(i) for i in range(3)]
    found = run_batch(batch([problem] * 3, models), until=200e-6)
    alone = run(problem, models[2], until=200e-6, progress=False).trace
    np.testing.assert_allclose(found.completion[2], alone.completion, rtol=3e-7)
    np.testing.assert_array_equal(np.isinf(found.completion), [[False, False, True, False, False]] * 3)
    assert found.tally.sent[2] == pytest.approx(np.float64(alone.frames.sent).sum(), rel=1e-6)


def test_what_is_not_a_number_stays_with_its_member() -> None:
    problem, models = made()[0], [variant(i) for i in range(3)]
    bad = replace(models[1], transport=replace(models[1].transport, window=np.float32(np.nan)))
    good, found = run_batch(batch([problem] * 3, models)), run_batch(batch([problem] * 3, [models[0], bad, models[2]]))
    assert found.flags[1] & flags.NOT_FINITE
    assert not found.flags[[0, 2]].any()
    np.testing.assert_array_equal(found.completion[[0, 2]], good.completion[[0, 2]])
    np.testing.assert_array_equal(found.tally.sent[[0, 2]], good.tally.sent[[0, 2]])


def test_other_values_and_more_blocks_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, models = made()[0], [variant(i) for i in range(9)]
    whole = run_batch(batch([problem] * 8, models[:8]))

    def compiled() -> list[int]:
        return [program._cache_size() for program in (begin_all, advance_all("cpu"), finish_all)]  # type: ignore[attr-defined]

    before = compiled()
    run_batch(batch([problem] * 8, models[1:9]))
    monkeypatch.setattr("fabsim.study.devices.SIDE_BY_SIDE", 8)
    parts = run_batch(batch([problem] * 17, [*models[:8], *models]))  # blocks of 8, 8 and 1, which is filled up
    assert compiled() == before
    np.testing.assert_array_equal(parts.completion[:8], whole.completion)
    np.testing.assert_array_equal(parts.completion[8:16], whole.completion)
    assert parts.completion.shape == (17, 5)
    assert parts.tally.sent.shape == (17,)


def test_blocks_are_few_and_equally_wide() -> None:
    one = over(1)
    assert over(None, 1) == one

    def width(members: int, seeds: tuple[int, ...] = (1,)) -> int:
        problems = [made(seeds[i % len(seeds)])[0] for i in range(members)]
        return spread_out(batch(problems, [variant(i, 1) for i in range(members)]), one).width

    assert [width(n) for n in (1, 3, 9, 64, 65, 1000)] == [1, 3, 16, 64, 40, 64]
    assert width(20, (1, 2)) == 8
    assert [part.tolist() for part in blocks(5, 2)] == [[0, 1], [2, 3], [4]]
    assert Spread((), 3, one).block == 3
    counts: list[Any] = [64, 0, -1, 1.5]
    for count in counts:
        with pytest.raises(InputError, match=f"devices: {count} given, and JAX finds 1 cpu here; 1 would do"):
            over(count)


def test_another_step_is_another_batch() -> None:
    problem, model = made()
    assert shape_of(problem, model) == shape_of(problem, variant(1))
    assert shape_of(problem, model) != shape_of(replace(problem, dt=problem.dt / 2), model)


def test_members_lie_on_several_devices() -> None:
    """In a process of its own, since devices of the CPU are made before JAX starts: 11 members over 8, and over 4."""
    program = """
import json, jax
jax.config.update("jax_num_cpu_devices", 8)
from tests.conftest import pytest_configure
pytest_configure(None)
from fabsim.study.advance import run_batch
from fabsim.engine.batch import batch
from tests.test_batch import made, variant
many = batch([made()[0]] * 11, [variant(i) for i in range(11)])
mesh = jax.make_mesh((2, 2), ("a", "b"), devices=jax.devices()[4:])
found = {"all": run_batch(many), "mesh": run_batch(many, devices=mesh)}
print(json.dumps({name: [x.completion.tolist(), x.flags.tolist()] for name, x in found.items()}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    one = run_batch(batch([made()[0]] * 11, [variant(i) for i in range(11)]), devices=1)
    for completion, bits in found.values():
        np.testing.assert_allclose(completion, one.completion, rtol=3e-7)
        assert bits == [0] * 11


def odd(x: jax.Array, i: jax.Array, shared: jax.Array) -> Any:
    """Operations that the engine has, and some that it has not."""

    def body(carry: Any, along: jax.Array) -> Any:
        count, total, late = carry
        return (count + 1, total + along * x[count % 3], late + total), (count, total)

    loop, seen = jax.lax.scan(body, (jnp.int32(0), 0.0, jnp.float32(0)), shared)
    placed = jnp.zeros((5, 2)).at[i].add(jnp.stack([x, x], -1)).at[jnp.array([0, 1, 0])].max(shared[0])
    taken = jax.lax.cond(x.sum() > 0, lambda: jnp.sin(x), lambda: x * 2)
    window = jax.lax.dynamic_slice(x, (i[0] % 2,), (2,))
    halved = jax.lax.while_loop(lambda v: v > 0.1, lambda v: v / 2, jnp.abs(x[0]) + 1)
    return (
        loop, seen, placed, taken, window, halved, x[i % 3], shared[i % 2], jnp.outer(x, shared)[:, ::2], jnp.sort(x),
        jnp.cumsum(x), jnp.pad(x, 1)[::-1].reshape(5, 1).T, jnp.concatenate([x, shared]), shared @ shared,
        i[:, None] > x,
        x.at[1:].set(0), x.at[i[0] % 3].mul(3), jnp.clip(x, 0, shared[0]), jnp.einsum("a,b->ab", x, x), x.argmax(),
    )  # fmt: skip


def test_a_trailing_batch_is_vmap() -> None:
    random = np.random.default_rng(0)
    x, i = random.normal(size=(3, 4)).astype("f"), random.integers(0, 5, (3, 4)).astype(np.int32)
    shared = np.array([0.5, 2.0], "f")
    found = jax.jit(trailing(odd, 4, (True, True, False)))(x, i, shared)
    wanted = jax.jit(jax.vmap(odd, (-1, -1, None), -1))(x, i, shared)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_what_differs_cannot_be_asked_for_as_shared() -> None:
    with pytest.raises(ValueError, match="cannot be shared"):
        trailing(lambda x: x * 2, 4, (True,), gives=False)(np.ones((3, 4), "f"))
    assert trailing(lambda x, y: (x * 2, y), 4, (True, False), gives=(True, False))(np.ones(4), np.ones(2))[
        1
    ].shape == (2,)
