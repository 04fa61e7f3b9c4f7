"""Tuning: bounds and budgets hold by construction, what cannot be tuned is refused, descents reach the optimum, a
killed one goes on, and a tuned scenario is a scenario."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import fabsim
from fabsim.cli import main
from fabsim.errors import InputError
from fabsim.routing import utilisation
from fabsim.scenario.keys.tune import OBJECTIVES
from fabsim.study.objectives import TERMS, smooth_max, smooth_quantile
from fabsim.study.parameters import Levels, levels
from fabsim.study.plan import Plan, optimiser, settled
from fabsim.study.tune import tune
from fabsim.topology import find_links, leaf_spine
from fabsim.topology.linear import cost_per_rate
from fabsim.topology.prices import OpticPrice, Prices, SwitchPrice
from fabsim.tuning.certificate import Task, bound, ended, figures, paths, shared
from fabsim.tuning.group_names import group_name
from fabsim.tuning.tune import prepare
from fabsim.tuning.tune import tune as tune_scenario
from fabsim.tuning.tune_text import as_text
from fabsim.tuning.tuned import write_tuned

CONFIGS = Path(__file__).parents[1] / "configs" / "tune"
SMALL: dict[str, Any] = {
    "fabric": {
        "kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "rate": "400 Gbps", "latency": "1.03 us",
        "degraded": [{"link": "leaf0->spine1", "speed": 0.61}, {"link": "spine0->leaf1", "speed": 0.93}],
    },
    "routing": {"kind": "all"},
    "traffic": [
        {"kind": "shift", "by": 2, "size": "400 kB"},
        {"kind": "incast", "senders": 2, "receiver": 3, "size": "230 kB", "start": "1.3 us"},
    ],
    "queue": {"kind": "trim", "buffer": "40 kB"},
    "transport": {"kind": "window", "window": "300 kB"},
}  # fmt: skip
EVERY = [
    {"key": "split.weight", "per": "leaf_pair"},
    {"key": "queue.buffer", "total": "now"},
    {"key": "links.capacity", "per": "link", "cost": "now"},
    {"key": "transport.window", "low": "100 kB", "high": "600 kB"},
    {"key": "traffic.start", "high": "4 us"},
]
"""Each kind of parameter once."""


def small(parameters: list[dict[str, Any]], **more: Any) -> fabsim.Scenario:
    """The small scenario with something to tune."""
    section = {"parameters": parameters, "objective": "utilisation", **more.pop("tune", {})}
    return fabsim.load({**SMALL, **more, "tune": section})


# Bounds and budgets


def some_levels(**more: Any) -> Levels:
    """Three levels over five numbers, one of which stays."""
    return levels("x", ("model", "x"), np.array([0, 1, 1, 2, -1]), np.array([2.0, 3.0, 5.0]), **more)


@pytest.mark.parametrize("seed", range(3))
def test_levels_stay_between_bounds_and_meet_the_total(seed: int) -> None:
    random = np.random.default_rng(seed)
    price = np.array([1.0, 2.0, 1.5])
    made = some_levels(low=0.5, high=9.0, price=price, total=20.0)
    for scale in (0.1, 3.0, 30.0):
        values = np.asarray(made.values(jnp.asarray(random.normal(0, scale, 3), jnp.float32)))
        assert (values >= 0.5 - 1e-5).all()
        assert (values <= 9.0 + 1e-5).all()
        assert (price * values).sum() == pytest.approx(20.0, rel=1e-4)


def test_a_total_without_bounds_may_go_to_one() -> None:
    values = np.asarray(some_levels(low=0.0, total=6.0).values(jnp.asarray([20.0, -20.0, -20.0])))
    np.testing.assert_allclose(values, [6, 0, 0], atol=1e-3)


def test_levels_start_where_they_stand() -> None:
    for made in (some_levels(low=0.5, high=9.0), some_levels(low=0.1), some_levels(low=0.0, total=10.0)):
        np.testing.assert_allclose(made.values(made.begin()), [2, 3, 5], rtol=1e-4)


def test_the_derivative_of_levels_under_a_total() -> None:
    with jax.enable_x64(True):
        made = some_levels(low=0.5, high=9.0, price=np.array([1.0, 2.0, 1.5]), total=20.0)
        raw = jnp.asarray([0.3, -1.1, 0.8])
        check_grads(made.values, (raw,), 1, ("fwd", "rev"), atol=1e-6, rtol=1e-6)


def test_what_a_rate_costs() -> None:
    """Per byte a second: half of two ends of 500 for 100 GB/s, and of a cage of 100 for each end at a switch."""
    switch, optic = SwitchPrice("s", 64, 100e9, 1, 1000, 6400), OpticPrice("o", 100e9, 500, 1, 1, 10, 500)
    fabric = leaf_spine(2, 2, 1, rate=50e9, latency=0)
    price, missing = cost_per_rate(fabric, Prices("USD", (switch,), (optic,), 0.0))
    between = (fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts)
    assert not missing
    np.testing.assert_allclose(price, np.where(between, 6.0e-9, 5.5e-9))
    far, missing = cost_per_rate(leaf_spine(2, 2, 1, rate=50e9, latency=1e-5), Prices("USD", (switch,), (optic,), 0.0))
    assert np.isnan(far).all()
    assert "beyond the reach" in missing[0]


# Objectives


def test_the_scenario_knows_all_objectives() -> None:
    assert set(OBJECTIVES) == set(TERMS)


def test_smooth_forms_become_the_true_ones() -> None:
    x = jnp.asarray(np.random.default_rng(1).uniform(1, 2, 200))
    true = jnp.asarray(jnp.inf)
    assert float(smooth_max(x, true)) == pytest.approx(float(x.max()))
    assert float(smooth_quantile(x, 0.99, true)) == pytest.approx(float(np.quantile(x, 0.99)))
    for smooth, exact in ((smooth_max, x.max()), (lambda x, k: smooth_quantile(x, 0.9, k), jnp.quantile(x, 0.9))):
        off = [abs(float(smooth(x, jnp.asarray(k)) / exact - 1)) for k in (30.0, 3000.0)]
        assert off[1] < 0.005
        assert off[1] < off[0]


# Descents


@pytest.mark.parametrize(("name", "by_capacity_off"), [("half_speed", 0.0), ("mixed_tree", 0.2), ("three_routes", 0.6)])
def test_a_descent_reaches_the_optimum(name: str, by_capacity_off: float) -> None:
    """From an equal split to within 1 % of the linear program in under 200 steps, where WCMP is right and where not."""
    scenario = fabsim.load(CONFIGS / f"{name}.yaml")
    task = prepare(scenario, progress=False)
    assert task.plan.steps < 200
    found = tune(task.batches, task.objective, task.plan, task.scales, progress=False)
    one, capacity = task.members[0], task.members[0].net.fabric.capacity
    equal, wcmp = paths(one)
    best = bound(one, equal, capacity)
    busy = [utilisation(routes, np.asarray(one.problem.size, float), capacity).max() for routes in (equal, wcmp)]
    assert busy[0] > 1.4 * best.utilisation
    assert busy[1] / best.certificate - 1 == pytest.approx(by_capacity_off, abs=0.01)
    assert found.terms[0, 0, 0] == pytest.approx(busy[0], rel=1e-5)
    assert found.figures[0, 0] < 1.01 * best.certificate


def test_completions_follow_the_optimum() -> None:
    """The dynamics put the splits of three_routes in the order that the bound says."""
    task = prepare(fabsim.load(CONFIGS / "three_routes.yaml"), progress=False)
    found = tune(task.batches, task.objective, task.plan, task.scales, progress=False)
    one = task.members[0]
    _, wcmp = paths(one)
    models = [one.model, shared(one.model, wcmp.weight), ended(one, task.parameters[0], found.raw)[1]]
    equal, by_capacity, tuned = (figures(one, task.objective, model)["last_completion"] for model in models)
    assert tuned < 0.85 * min(equal, by_capacity)


def slow_spine(**section: Any) -> Task:
    """Two leaves, four spines, one of them slow; shares for each pair of leaves."""
    return prepare(fabsim.load(CONFIGS / "first.yaml", {"tune.objective": "utilisation", **section}), progress=False)


@pytest.mark.parametrize("name", ["sgd", "lbfgs"])
def test_optimisers_by_name(name: str) -> None:
    task = slow_spine(**{"tune.optimiser": name, "tune.learning_rate": 3.0, "tune.steps": 25})
    found = tune(task.batches, task.objective, task.plan, task.scales, progress=False)
    assert found.history.min() < 4 / 7 * 1.05


def test_an_optimiser_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"tune.optimiser: optax has no optimiser 'adm' .* did you mean 'adam'"):
        slow_spine(**{"tune.optimiser": "adm"})


def test_parts_of_optimisers_are_neither_offered_nor_taken() -> None:
    for part in ("scale_by_rprop", "scale_by_learning_rate"):
        with pytest.raises(InputError, match=f"tune.optimiser: optax has no optimiser '{part}'") as refusal:
            slow_spine(**{"tune.optimiser": part})
        hint = str(refusal.value).partition("; ")[2]
        assert "scale_by" not in hint
        assert "rprop" in hint


@pytest.mark.parametrize("name", ["optimistic_adam", "rprop", "sm3"])
def test_optimisers_that_take_no_schedule(name: str) -> None:
    with pytest.raises(InputError, match=f"tune.optimiser: {name} has one learning rate for all steps, .* is cosine"):
        slow_spine(**{"tune.optimiser": name})
    task = slow_spine(**{"tune.optimiser": name, "tune.schedule": "constant", "tune.steps": 5})
    assert tune(task.batches, task.objective, task.plan, task.scales, progress=False).history.min() < 1.0


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_each_optimiser_that_is_offered_descends_or_is_refused(schedule: str) -> None:
    with pytest.raises(InputError) as refusal:
        optimiser("?", 0.1, schedule, 5)
    names = str(refusal.value).partition("; use ")[2].split(", ")
    assert {"adam", "sgd", "lbfgs"} <= set(names)
    start, made = jnp.array([1.0, -2.0]), 0
    for name in names:
        try:
            rule = optimiser(name, 0.1, schedule, 5)
        except InputError:
            continue
        raw, state = start, rule.init(start)
        for _ in range(3):  # the first one of rprop is nothing
            given = {"value": (raw**2).sum(), "grad": 2 * raw, "value_fn": lambda x: (x**2).sum()}
            step, state = rule.update(2 * raw, state, raw, **given)
            raw = raw + step
        assert float((raw**2).sum()) < 5.0, name
        made += 1
    assert made == len(names) - (0 if schedule == "constant" else 3)


def test_restarts_and_the_stopping_rule() -> None:
    task = slow_spine(**{"tune.restarts": 2, "tune.tolerance": 1e-3, "tune.patience": 5, "tune.steps": 100})
    found = tune(task.batches, task.objective, task.plan, task.scales, progress=False)
    assert found.history.shape[1] == 3
    assert found.history[0, 0] == pytest.approx(1.0, rel=1e-5)
    assert len(set(found.history[0].tolist())) == 3
    assert 6 < len(found.history) < 101
    assert found.history.min() == pytest.approx(found.figures[0, 0] / task.scales[0], rel=1e-5)
    assert not settled(np.linspace(1, 0.5, 30)[:, None], Plan(tolerance=1e-3, patience=5))


# Refusals

REFUSED = {
    "hash": ({"key": "routing.seed"}, {}, "routing.seed counts or draws, .*tune split.weight instead"),
    "choice": ({"key": "fabric.kind"}, {}, "tune"),
    "count": ({"key": "fabric.spines"}, {}, "fabric.spines counts or draws, .*tune links.capacity instead"),
    "granular": ({"key": "queue.granular"}, {}, "queue.granular is a choice .*tune queue.buffer instead"),
    "single paths": ({"key": "split.weight"}, {"routing": {"kind": "ecmp"}}, "no gradient under .*kind: ecmp"),
    "one path": (
        {"key": "split.weight"}, {"fabric": {**SMALL["fabric"], "spines": 1, "degraded": []}}, "a single path",
    ),
    "marks": ({"key": "queue.ecn_low"}, {}, "does not react to marks"),
    "gate": ({"key": "transport.gate"}, {"transport": {"kind": "nscc"}}, "only compared with"),
    "other number": ({"key": "transport.gamma"}, {}, r"\(window\) has no number 'gamma'; tune transport.window"),
    "nothing": ({"key": "queue.bufer"}, {}, "nothing to tune by the name queue.bufer"),
    "bounds of shares": ({"key": "split.weight", "low": 0.1}, {}, "sum to 1"),
    "per": ({"key": "queue.buffer", "per": "flow"}, {}, "no value for each flow; use tier or link or all"),
    "unit": ({"key": "queue.buffer", "high": 3}, {}, "has no unit"),
    "total": ({"key": "queue.buffer", "total": "1 kB"}, {}, "the bounds leave from"),
    "lone total": ({"key": "queue.buffer", "per": "all", "total": "now"}, {}, "of one value alone"),
    "price": ({"key": "queue.buffer", "cost": 5.0}, {}, "has no price"),
    "no buffer": ({"key": "queue.buffer"}, {"queue": {"kind": "pfc"}}, "no buffer of its own .*pfc.*links.capacity"),
    "marks without": (
        {"key": "queue.ecn_high"}, {"queue": {"kind": "shared"}, "transport": {"kind": "nscc"}}, "give high, like high",
    ),
    "no end": ({"key": "traffic.start"}, {}, "latest start"),
    "two budgets": ({"key": "links.capacity", "cost": "now", "total": "now"}, {}, "two budgets"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_tuned_is_refused_by_name(case: str) -> None:
    parameter, more, text = REFUSED[case]
    with pytest.raises(InputError, match=text) as refusal:
        prepare(small([parameter], **more), progress=False)
    (sentence,) = refusal.value.sentences
    assert "tune.parameters.0." in sentence


def test_what_nothing_depends_on_is_refused_with_what_to_tune_instead() -> None:
    """The load of the links does not depend on buffers."""
    with pytest.raises(InputError) as refusal:
        tune_scenario(small([{"key": "transport.window"}, {"key": "queue.buffer", "high": "1 MB"}]), progress=False)
    text = "its gradient is exactly zero: the objective does not depend on it here"
    assert refusal.value.sentences == [
        f"<dict>: tune.parameters.{number}.key: {name}: {text}; tune links.capacity, split.weight instead"
        for number, name in enumerate(["transport.window", "queue.buffer"])
    ]


@pytest.mark.parametrize(
    ("objective", "text"),
    [("speed", "there is no objective 'speed'"), ({"last_completion": 0}, "must be a number above 0"), (3, "not an")],
)
def test_objectives_are_checked(objective: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        fabsim.load({**SMALL, "tune": {"objective": objective}})


def test_a_tune_section_is_written_as_it_is_read() -> None:
    scenario = small(EVERY, tune={"objective": {"last_completion": 1, "lost_bytes": 0.5}})
    text = scenario.resolved()
    again = fabsim.load(_data(text))
    assert again.tune == scenario.tune


def _data(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(text)


# A tuned scenario


def test_a_tuned_scenario_compiles_to_what_was_tuned(tmp_path: Path) -> None:
    scenario = small(EVERY)
    task = prepare(scenario, progress=False)
    random = np.random.default_rng(3)
    raw = tuple(
        x + jnp.asarray(random.normal(0, 0.5, x.shape), x.dtype) for x in (p.begin() for p in task.parameters[0])
    )
    problem, model = ended(task.base, task.parameters[0], raw)
    file = write_tuned(scenario, task.base, task.parameters[0], raw, tmp_path)
    again, tuned = fabsim.load(file).compile()
    assert jax.tree.structure(tuned) == jax.tree.structure(model)
    for got, wanted in zip(jax.tree.leaves(tuned), jax.tree.leaves(model), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(again.start, problem.start, rtol=1e-5)
    moved = [
        not np.allclose(a, b, rtol=1e-3)
        for a, b in zip(jax.tree.leaves(model), jax.tree.leaves(task.base.model), strict=True)
    ]
    assert sum(moved) >= 5  # capacity, buffer, both thresholds, window, split: none but the latency stays


def test_a_split_of_a_tree_is_written_and_read(tmp_path: Path) -> None:
    scenario = fabsim.load(CONFIGS / "mixed_tree.yaml")
    task = prepare(scenario, progress=False)
    raw = (jnp.asarray(np.random.default_rng(5).normal(0, 1, task.parameters[0][0].begin().shape)),)
    _, model = ended(task.base, task.parameters[0], raw)
    _, again = fabsim.load(write_tuned(scenario, task.base, task.parameters[0], raw, tmp_path)).compile()
    np.testing.assert_allclose(again.split.weight, model.split.weight, atol=1e-6)


@pytest.mark.parametrize(("granular", "turn"), [("auto", 64), (True, 1e9), (16, 16)])
def test_a_tuned_split_keeps_the_rounds_of_its_packets(granular: Any, turn: float, tmp_path: Path) -> None:
    scenario = small(
        [{"key": "split.weight", "per": "flow"}],
        routing={"kind": "drawn", "entropies": 64},
        queue={"kind": "trim", "granular": granular},
    )
    task = prepare(scenario, progress=False)
    raw = tuple(x.begin() for x in task.parameters[0])
    _, again = fabsim.load(write_tuned(scenario, task.base, task.parameters[0], raw, tmp_path)).compile()
    assert float(again.queue.turn) == turn


# A journal


def test_a_tuning_that_gains_nothing_says_so() -> None:
    """Buffers that never fill up leave the last completion as it is, but for roundings; a better split does not."""
    from types import SimpleNamespace
    from typing import cast

    from fabsim.tuning.certificate import Tuning
    from fabsim.tuning.tune_text import _course

    for start, best, told in ((1.0, 0.9995, True), (1.0, 0.998, False), (1.1, 1.0, False), (0.5, 0.4999, True)):
        tuned = SimpleNamespace(history=np.array([[start], [best]]), terms=np.ones((2, 1, 1)))
        objective = SimpleNamespace(weights=(("last_completion", 1.0),))
        made = SimpleNamespace(tuned=tuned, objective=objective, optimum=1.0, seconds=1.0)
        lines = _course(cast("Tuning", made))
        assert ("it hardly depends on what is tuned" in lines[-1]) is told


def test_a_tuning_from_python_keeps_its_journal_where_it_is_told(tmp_path: Path) -> None:
    """A folder by its name: another call takes what is there, whatever cannot be gone on from is told in a sentence."""
    out, scenario = tmp_path / "out", fabsim.load(CONFIGS / "half_speed.yaml", {"tune.steps": 2})
    found = tune_scenario(scenario, out=str(out), progress=False)
    assert [path.name for path in out.iterdir()] == ["journal.npz"]
    assert found.tuned.history.shape == (3, 1)
    assert found.busy.shape == (2, len(np.asarray(found.base.problem.tail)) - 1)
    written = (out / "journal.npz").stat().st_mtime_ns
    again = tune_scenario(scenario, out=out, progress=False)
    assert (out / "journal.npz").stat().st_mtime_ns == written
    np.testing.assert_array_equal(again.tuned.history, found.tuned.history)
    with pytest.raises(InputError, match="journal of another tuning; name another folder"):
        tune_scenario(scenario.change({"tune.steps": 1}), out=out, progress=False)
    for content, told in ((b"", "cannot be read"), (b"PK\x03\x04", "cannot be read")):
        (out / "journal.npz").write_bytes(content)
        with pytest.raises(InputError, match=f"journal.npz: {told} as the journal of a tuning"):
            tune_scenario(scenario, out=out, progress=False)
    np.savez(out / "journal.npz", other=np.zeros(2))
    with pytest.raises(InputError, match="journal of another tuning"):
        tune_scenario(scenario, out=out, progress=False)
    assert tune_scenario(scenario, out=out, force=True, progress=False).tuned.history.shape == (3, 1)
    for place, told in ((out / "journal.npz", "is a file; a tuning is a folder"), (tmp_path / "no" / "x", "no folder")):
        with pytest.raises(InputError, match=told):
            tune_scenario(scenario, out=place, progress=False)


def test_each_level_has_the_name_of_what_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns fit the links of their group and no others; the text has a name behind each value."""
    base, row = (task := prepare(small(EVERY), progress=False)).base, task.parameters[0]
    named = {one.name: [group_name(base, one, n) for n in range(one.groups)] for one in row if isinstance(one, Levels)}
    assert sorted(named["queue.buffer"]) == ["leaf*->h*", "leaf*->spine*", "spine*->leaf*"]
    assert named["transport.window"] == [""]
    assert named["traffic.start"] == ["traffic.0", "traffic.1"]
    for one in row:
        if isinstance(one, Levels) and one.name in ("queue.buffer", "links.capacity"):
            for number, name in enumerate(named[one.name]):
                np.testing.assert_array_equal(np.flatnonzero(one.group == number), find_links(base.net.fabric, name))
    tree = {"kind": "fat_tree", "k": 4, "rate": "400 Gbps", "latency": "1 us"}
    tiers = prepare(small([{"key": "links.capacity", "total": "now"}], fabric=tree), progress=False)
    (capacity,) = tiers.parameters[0]
    assert isinstance(capacity, Levels)
    assert {group_name(tiers.base, capacity, n) for n in range(2)} == {"agg*<->leaf*", "agg*<->core*"}
    monkeypatch.setattr("fabsim.tuning.certificate.figures", lambda *_: {"last_completion": 1.0})
    capacities = [{"key": "links.capacity", "per": "link", "total": "now"}]
    (line,) = [
        line
        for line in as_text(tune_scenario(small(capacities, tune={"steps": 1}), progress=False)).splitlines()
        if line.startswith("links.capacity: ")
    ]
    assert re.findall(r" -> [\d.]+ Gbps \((.*?)\)", line) == named["links.capacity"]


def test_a_killed_tuning_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """kill -9 in the middle: what had been written is the beginning of what the next call ends with."""
    out, file = tmp_path / "out", str(CONFIGS / "half_speed.yaml")
    arguments = ["tune", file, "--out", str(out), "--set", "tune.steps=300", "--quiet"]
    child = subprocess.Popen([sys.executable, "-m", "fabsim", *arguments], env=os.environ | {"JAX_PLATFORMS": "cpu"})
    journal, kept = out / "journal.npz", None
    for _ in range(6000):
        if journal.exists():
            with np.load(journal) as content:
                kept = content["history"]
            if len(kept) >= 5:
                break
        assert child.poll() is None
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    with np.load(journal) as content:
        kept = content["history"]
    assert 5 <= len(kept) < 301
    assert main(arguments) == 0
    assert "tuned" in capsys.readouterr().out
    with np.load(journal) as content:
        history = content["history"]
    assert len(history) == 301
    np.testing.assert_array_equal(history[: len(kept)], kept)
    assert {path.name for path in out.iterdir()} == {
        "journal.npz", "tune.h5", "tuned.yaml", "split.csv", "history.png", "before_after.png",
    }  # fmt: skip
    found = fabsim.open(out / "tune.h5")
    assert found.objective.shape == (301, 1)
    assert float(found.busiest.sel(row="tuned")) < 1.01 * found.attrs["optimum"]
    assert main(["tune", file, "--out", str(out), "--quiet"]) == 2
    assert "journal of another tuning" in capsys.readouterr().err
    told_what_it_is(out, capsys)


def told_what_it_is(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands for runs and sweeps say what a tuning is, and what reads it; that does."""
    whole = str(out / "tune.h5")
    assert fabsim.open(out).identical(fabsim.open(whole))
    for command in (["show"], ["export"], ["plot"], ["report", "--out", str(out / "r.html")]):
        for place, what in ((whole, "is of a tuning, not of a run"), (str(out), "is the folder of a tuning")):
            assert main([*command, place]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert line.startswith(f"{place}: {what}; fabsim.open reads "), line
    assert main(["diff", whole, whole]) == 2
    assert capsys.readouterr().err.startswith(f"{whole}: is of a tuning, not of a run; fabsim.open reads it")
    assert main(["diff", str(out), whole]) == 2
    assert capsys.readouterr().err == f"{out}: is a folder; name a file in it\n"
    (out / "tune.h5").unlink()
    with pytest.raises(InputError, match=r"is the folder of a tuning; .* once fabsim tune has come to its end"):
        fabsim.open(out)
