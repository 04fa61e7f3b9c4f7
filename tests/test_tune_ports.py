"""What single ports have: said under `queue.links`, tuned by tier, and written down again."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fabsim
from fabsim.cli import main
from fabsim.errors import InputWarning
from fabsim.scenario.validity import OutsideWarning
from fabsim.study.parameters import Levels, put_all
from fabsim.tuning.tune import prepare
from fabsim.tuning.tuned import write_tuned

SMALL: dict[str, Any] = {
    "fabric": {
        "kind": "fat_tree", "k": 4, "rate": "400 Gbps", "latency": "1 us",
        "degraded": [{"link": "leaf0->agg0", "speed": 0.5}],
    },
    "routing": {"kind": "ecmp"},
    "traffic": [
        {"kind": "permutation", "size": "1 MB"}, {"kind": "incast", "senders": 4, "receiver": 0, "size": "1 MB"},
    ],
    "transport": {"kind": "dctcp"},
}  # fmt: skip
BOTH = [{"key": "queue.ecn_low", "per": "tier"}, {"key": "queue.ecn_high", "per": "link"}]


def names(scenario: fabsim.Scenario) -> tuple[list[str], Any]:
    """Names of the links, and the ports of the model."""
    from fabsim.topology import link_names

    return link_names(scenario.network().fabric), scenario.compile()[1].queue


def test_single_ports_have_thresholds_of_their_own() -> None:
    plain = names(fabsim.load(SMALL))
    ports = [{"link": "agg*->core*", "ecn_low": "30 kB", "ecn_high": "90 kB"}]
    ports += [{"link": "agg0->core*", "ecn_high": "1 BDP"}]
    found, queue = names(fabsim.load({**SMALL, "queue": {"kind": "trim", "links": ports}}))
    mine = np.array([name.startswith("agg") and "->core" in name for name in found])
    np.testing.assert_array_equal(queue.ecn_low, np.where(mine, np.float32(30e3), plain[1].ecn_low))
    first = np.array([name.startswith("agg0->core") for name in found])
    assert set(np.asarray(queue.ecn_high)[mine & ~first].tolist()) == {90e3}
    assert np.asarray(queue.ecn_high)[first].min() > 300e3
    np.testing.assert_array_equal(queue.buffer, plain[1].buffer)
    shared = {"kind": "shared", "links": [{"link": "core0->agg0", "alpha": 0.25}]}
    found, queue = names(fabsim.load({**SMALL, "queue": shared}))
    assert queue.alpha[found.index("core0->agg0")] == 0.25
    assert queue.alpha.sum() == len(found) - 0.75
    pfc = {"kind": "pfc", "links": [{"link": "core0->agg0", "headroom": "7 kB"}]}
    found, queue = names(fabsim.load({**SMALL, "queue": pfc}))
    assert queue.headroom[found.index("core0->agg0")] == 7e3
    assert (np.delete(queue.headroom, found.index("core0->agg0")) > 7e3).all()


def test_thresholds_never_cross_wherever_a_descent_goes() -> None:
    scenario = fabsim.load({**SMALL, "tune": {"parameters": BOTH}})
    task = prepare(scenario, progress=False)
    low, high = task.parameters[0]
    assert isinstance(low, Levels)
    assert isinstance(high, Levels)
    assert low.groups == 5  # from leaf down and up, aggregation down and up, core down
    random = np.random.default_rng(1)
    for scale in (0.0, 1.0, 30.0):
        raw = tuple(jnp.asarray(scale * random.normal(size=x.groups), jnp.float32) for x in (low, high))
        queue = put_all((low, high), (task.base.problem, task.base.model), raw)[1].queue
        real = np.asarray(queue.ecn_low) < 1e14
        assert (np.asarray(queue.ecn_low) <= np.asarray(queue.ecn_high))[real].all()
        assert (np.asarray(queue.ecn_high) <= np.asarray(queue.buffer) * (1 + 1e-6))[real].all()


def test_what_is_tuned_is_a_scenario_again(tmp_path: Path) -> None:
    links = [{"link": "leaf2->h4", "ecn_low": "20 kB"}]
    parameters = [*BOTH, {"key": "queue.buffer", "total": "now"}]
    scenario = fabsim.load({**SMALL, "queue": {"kind": "trim", "links": links}, "tune": {"parameters": parameters}})
    task = prepare(scenario, progress=False)
    random = np.random.default_rng(2)
    raw = tuple(jnp.asarray(random.normal(size=np.shape(one.begin())), jnp.float32) for one in task.parameters[0])
    wanted = put_all(tuple(task.parameters[0]), (task.base.problem, task.base.model), raw)[1].queue
    again = fabsim.load(write_tuned(scenario, task.base, task.parameters[0], raw, tmp_path)).compile()[1].queue
    for name in ("ecn_low", "ecn_high", "buffer"):
        np.testing.assert_allclose(getattr(again, name), getattr(wanted, name), rtol=1e-5, err_msg=name)
    tier = {"parameters": [{"key": "queue.alpha", "per": "tier"}], "objective": "peak_queue"}
    scenario = fabsim.load({**SMALL, "queue": {"kind": "shared"}, "tune": tier})
    task = prepare(scenario, progress=False)
    raw = (jnp.arange(5.0),)
    wanted = put_all(tuple(task.parameters[0]), (task.base.problem, task.base.model), raw)[1].queue.alpha
    again = fabsim.load(write_tuned(scenario, task.base, task.parameters[0], raw, tmp_path)).compile()[1].queue.alpha
    switches = np.array(["h" not in name.split("->")[0] for name in names(scenario)[0]])
    np.testing.assert_allclose(np.asarray(again)[switches], np.asarray(wanted)[switches], rtol=1e-5)


def test_ports_of_their_own_move_along_and_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of what the others of the tier have stays half of it."""
    link = "agg0->core0"
    levels = {"kind": "trim", "ecn_low": "80 kB", "links": [{"link": link, "ecn_low": "40 kB"}]}
    tune = {"parameters": [{"key": "queue.ecn_low", "per": "tier"}], "steps": 1}
    scenario = fabsim.load({**SMALL, "queue": levels, "tune": tune})
    task = prepare(scenario, progress=False)
    found, begun = names(scenario)
    for raw in (-1.0, 2.0):
        numbers = (raw * jnp.arange(5.0),)
        moved = put_all(tuple(task.parameters[0]), (task.base.problem, task.base.model), numbers)[1].queue.ecn_low
        other = moved[found.index("agg2->core0")]
        assert moved[found.index(link)] == pytest.approx(other / 2)
        assert other != begun.ecn_low[found.index("agg2->core0")]
    told = f"queue.ecn_low: {link} (queue.links) keep their part of what the others of their tier have, and move along"
    (tmp_path / "s.yaml").write_text(scenario.resolved())
    for command in ("check", "tune"):
        assert main([command, str(tmp_path / "s.yaml")]) == 0
        assert told in capsys.readouterr().out
    assert main(["explain", "tune.parameters.per"]) == 0
    assert "move along" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        ({"links": [{"link": "leaf1->agg*", "ecn_low": "50 kB"}], "ecn_low": "50 kB"},
         "queue.links.0.ecn_low: leaf1->agg* have 50000 B without it, or make nothing of it"),
        ({"links": [{"link": "leaf0->agg1", "ecn_low": "50 kB"}, {"link": "leaf*->agg*", "ecn_low": "60 kB"}]},
         "queue.links.0.ecn_low: later entries say otherwise for every port of leaf0->agg1"),
        ({"links": [{"link": "h*->leaf*", "ecn_high": "1 BDP"}]},
         "queue.links.0.ecn_high: h*->leaf* are ports of hosts, which have no such queue"),
        ({"links": [{"link": "leaf*->h*", "ecn_low": "50 kB"}], "ecn_last_hop": False},
         "queue.links.0.ecn_low: leaf*->h* have 50000 B without it, or make nothing of it"),
        ({"kind": "shared", "links": [{"link": "agg*->core*", "alpha": 1.0}]}, "queue.links.0.alpha: agg*->core* have"),
        ({"kind": "pfc", "links": [{"link": "leaf*->h*", "headroom": "1 MB"}]}, "ports of hosts, which have no such"),
    ],
)  # fmt: skip
def test_entries_that_change_nothing_are_told(
    queue: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = fabsim.load({**SMALL, "queue": {"kind": "trim", **queue}})
    (tmp_path / "s.yaml").write_text(scenario.resolved())
    assert main(["check", str(tmp_path / "s.yaml")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  no effect")]
    assert says in line


def test_a_run_warns_of_them_and_of_others_not() -> None:
    """What changes a single port is no fault; where the transport sees no marks, thresholds are named."""
    links = [{"link": "leaf*->agg*", "ecn_low": "50 kB"}, {"link": "leaf0->agg0", "ecn_low": "30 kB"}]
    small = {
        **SMALL,
        "traffic": [{"kind": "shift", "by": 4, "size": "64 kB"}],
        "queue": {"kind": "trim", "links": links},
    }
    scenario = fabsim.load(small)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        warnings.simplefilter("ignore", OutsideWarning)
        fabsim.run(scenario, progress=False)
    with pytest.warns(InputWarning, match=r"no effect: queue\.links\.0\.ecn_low, queue\.links\.1\.ecn_low: the transp"):
        fabsim.run(fabsim.load({**small, "transport": {"kind": "window"}}), progress=False)


CLASSES = {**SMALL, "queue": {"kind": "trim", "ecn_last_hop": False, "classes": [{"name": "a"}, {"name": "b"}]}}
CLASSES["traffic"] = [{**SMALL["traffic"][0], "class": "a"}, {**SMALL["traffic"][1], "class": "b"}]


def test_queues_of_classes_are_tuned_under_a_total(tmp_path: Path) -> None:
    """What a slow link has less of stays so; the buffers of both classes add up to what they were."""
    scenario = fabsim.load({**CLASSES, "tune": {"parameters": [{"key": "queue.buffer", "total": "now"}]}})
    task = prepare(scenario, progress=False)
    (buffer,) = task.parameters[0]
    assert isinstance(buffer, Levels)
    assert buffer.groups == 2
    begun = np.asarray(task.base.model.queue.buffer)
    raw = (jnp.array([1.0, -0.5], jnp.float32),)
    wanted = put_all((buffer,), (task.base.problem, task.base.model), raw)[1].queue
    switches = np.tile(["h" not in name.split("->")[0] for name in names(scenario)[0]], 2)
    moved = np.asarray(wanted.buffer)[switches] / begun[switches]
    assert moved.max() > 1.1 > 0.9 > moved.min()
    assert np.asarray(wanted.buffer)[switches].sum() == pytest.approx(begun[switches].sum(), rel=1e-5)
    again = fabsim.load(write_tuned(scenario, task.base, task.parameters[0], raw, tmp_path)).compile()[1].queue
    for name in ("buffer", "ecn_low", "ecn_high"):
        got, want = (np.asarray(getattr(queue, name))[switches] for queue in (again, wanted))
        np.testing.assert_array_equal(got > 1e14, want > 1e14)  # no marks on the last hop
        np.testing.assert_allclose(got[got < 1e14], want[got < 1e14], rtol=1e-5, err_msg=name)


def built(data: dict[str, Any]) -> Any:
    """Arrays, and what is tuned."""
    scenario = fabsim.load(data)
    return prepare(scenario, progress=False) if scenario.tune else scenario.compile()


def test_bad_input_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = "agg0->core0"
    for change, says in (
        ({"queue": {"kind": "trim", "links": [{"link": "agg99->core0", "ecn_low": "1 kB"}]}},
         'queue.links.0.link: no link or node is named "agg99->core0"'),
        ({"queue": {"kind": "trim", "links": [{"link": link, "ecn_low": "2 MB"}]}}, "above ecn_high"),
        ({"queue": {"kind": "trim", "links": [{"link": link, "alpha": 2}]}}, "queue.links.0.alpha"),
        ({"queue": {"kind": "trim", "links": [{"link": link}]}},
         "queue.links.0: 'agg0->core0' is listed, but nothing changes; give ecn_low or ecn_high"),
        ({"queue": {"kind": "trim", "classes": [{"name": "a"}], "links": [{"link": link, "ecn_low": "1 kB"}]}},
         "queue.links: each class has thresholds of its own"),
        ({"tune": {"parameters": [{"key": "queue.alpha", "per": "tier"}]}}, "queue.alpha is not tuned by that name"),
        ({"tune": {"parameters": [{"key": "queue.ecn_low", "per": "flow"}]}}, "has no value for each flow; use all or"),
        ({**CLASSES, "tune": {"parameters": [{"key": "queue.buffer", "per": "tier"}]}},
         "queue.buffer has no value for each tier; use class"),
        ({"tune": {"parameters": [{"key": "queue.buffer", "per": "class"}]}}, "has no value for each class; use tier"),
    ):  # fmt: skip
        with pytest.raises(fabsim.InputError) as error:
            built({**SMALL, **change})
        assert says in str(error.value), str(error.value)
    assert main(["explain", "queue.links"]) == 0
    assert "alpha" in capsys.readouterr().out
