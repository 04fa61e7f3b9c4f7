"""One tuning for several scenarios: failures, draws of the traffic, cases; and buffers against a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.errors import InputError
from fabsim.study.cases import over_cases, value
from fabsim.study.plan import Plan
from fabsim.study.tune import tune
from fabsim.topology import draw_cables, find_links
from fabsim.tuning.certificate import over_members
from fabsim.tuning.tune import prepare
from fabsim.tuning.tune import tune as tune_scenario
from fabsim.tuning.tune_text import as_text

CONFIGS = Path(__file__).parents[1] / "configs" / "tune"


def static(**more: Any) -> fabsim.Scenario:
    """The robust scenario with an objective that needs no runs."""
    changes = {"tune.objective": "utilisation", "tune.steps": 80, **more}
    return fabsim.load(CONFIGS / "robust.yaml", changes)


def test_failures_are_drawn_by_seed_both_ways_and_beside_what_is_slow_already() -> None:
    task = prepare(static(), progress=False)
    assert len(task.members) == 8
    speeds = [one.net.fabric.speed for one in task.members]
    for speed in speeds:
        assert sorted(set(speed.tolist())) in ([0.25, 1.0], [0.25, 0.5, 1.0])
        assert (speed == 0.25).sum() == 2
    assert len({tuple(speed) for speed in speeds}) > 2
    again = prepare(static(), progress=False)
    for one, other in zip(task.members, again.members, strict=True):
        np.testing.assert_array_equal(one.net.fabric.speed, other.net.fabric.speed)
    other = prepare(static(**{"tune.over.failures.seed": 9}), progress=False)
    assert any(
        (one.net.fabric.speed != two.net.fabric.speed).any()
        for one, two in zip(task.members, other.members, strict=True)
    )
    allowed = find_links(task.base.net.fabric, "leaf*->spine[01]")
    assert all((speed[allowed] == 0.25).sum() == 1 for speed in speeds)


def test_failures_are_drawn_as_degraded_cables_are() -> None:
    task = prepare(static(**{"tune.over.failures": {"samples": 1, "cables": 3, "speed": 0.25}}), progress=False)
    fabric, random = task.base.net.fabric, np.random.default_rng(task.base.scenario.seed)
    switches = np.flatnonzero((fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts))
    drawn = draw_cables(fabric, "*", switches, 3, random)
    np.testing.assert_array_equal(np.flatnonzero(task.members[0].net.fabric.speed == 0.25), drawn)


def test_dead_cables_leave_shares_over_the_rest() -> None:
    task = prepare(static(**{"tune.over.failures.speed": 0.0}), progress=False)
    parameters = task.parameters
    assert {int(row[0].used.sum(1).min()) for row in parameters} == {3}
    raw = parameters[0][0].begin()
    for one, row in zip(task.members, parameters, strict=True):
        _, model = row[0].put((one.problem, one.model), raw)
        np.testing.assert_allclose(model.split.weight.sum(1), 1, rtol=1e-6)


def test_a_robust_split_beats_the_healthy_one_where_cables_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the worst quarter of the draws, by the load of the links; the engine is left out of it."""
    monkeypatch.setattr("fabsim.tuning.certificate.figures", lambda *_: {"last_completion": 1.0})
    found = tune_scenario(static(), progress=False)
    busy = {row.name: row.busy for row in found.rows}
    assert busy["tuned"] < 0.6 * busy["tuned, healthy fabric"]
    assert busy["tuned"] < busy["equal split"]
    assert busy["best split (LP)"] == pytest.approx(found.optimum, rel=1e-5)
    assert "over 8 scenarios" in as_text(found)


def test_traffic_is_drawn_anew_by_seed() -> None:
    over = {"tune.over": {"seeds": 3}, "traffic": [{"kind": "permutation", "size": "1 MB"}]}
    task = prepare(static(**over), progress=False)
    assert len({tuple(one.net.flows.dst) for one in task.members}) == 3
    groups = {row[0].groups for row in task.parameters}
    assert len(groups) == 1  # the same pairs of leaves in all
    with pytest.raises(InputError, match="drawn anew in each member"):
        prepare(static(**over, **{"tune.parameters": [{"key": "split.weight"}]}), progress=False)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"tune.over.failures.among": "leaf*->core*"}, "among: between switches no link or node is named"),
        ({"tune.over.failures.among": "h0"}, 'between switches "h0" fits 0 cables, given a count of 1; give fewer'),
        ({"tune.over": {"cases": True}}, "there are no cases"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        prepare(static(**change), progress=False)


def test_measures() -> None:
    values = [3.0, 1.0, 4.0, 2.0]
    for measure, share, wanted in (("mean", 0.5, 2.5), ("worst", 0.5, 4.0), ("cvar", 0.5, 3.5), ("cvar", 0.3, 3.5)):
        plan = Plan(measure=measure, share=share)
        assert over_members(values, plan) == wanted
        assert float(over_cases(jnp.asarray(values), plan, jnp.asarray(jnp.inf))) == pytest.approx(wanted)


def test_buffers_are_near_the_best_of_a_sweep_whose_best_is_inside() -> None:
    """Three kinds of ports, two mixes, a fixed total: within 5 % of the best of 200 points, found in 25 steps."""
    task = prepare(fabsim.load(CONFIGS / "buffers.yaml", {"tune.steps": 25, "tune.learning_rate": 0.3}), progress=False)
    assert len(task.members) == 2
    (levels,) = task.parameters[0]
    found = tune(task.batches, task.objective, task.plan, task.scales, progress=False)
    side = np.arange(20) + 0.5
    points = np.stack([part.ravel() for part in np.meshgrid(side, side)], 1) / 20
    points = np.column_stack([points, 1 - points.sum(1)])
    points = np.clip(points[points[:, 2] > -1e-9], 1e-4, None)
    points /= points.sum(1, keepdims=True)
    raw = jnp.asarray(np.log(points / (1 - points)), jnp.float32)  # parts of the room that sum to 1: no shift is needed
    np.testing.assert_allclose(levels.shift(raw[7]), 0, atol=1e-3)

    @jax.jit
    def swept(raw: jax.Array) -> jax.Array:
        sharp, scales = jnp.asarray(jnp.inf), jnp.asarray(task.scales)
        return jax.lax.map(lambda one: value(task.objective, task.plan, (one,), task.batches, scales, sharp)[1][0], raw)

    values = np.asarray(swept(raw))
    inside = points.min(1) > 0.06
    assert values[inside].min() < values[~inside].min()
    assert found.history.min() < 1.05 * values.min()
    assert found.history.min() < 0.9
