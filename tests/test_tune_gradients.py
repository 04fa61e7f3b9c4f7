"""The gradient by every kind of parameter: forward, reverse, without checkpoints, and finite differences in float64."""

from __future__ import annotations

from typing import Any

import jax
import pytest

import fabsim
from fabsim.errors import Stopped
from fabsim.scenario.keys.tune import OBJECTIVES
from fabsim.study.gradient_check import TRIES, Slope
from fabsim.tuning import gradient_check
from fabsim.tuning.gradient_check import check_gradients, slopes

SCENARIO: dict[str, Any] = {
    "fabric": {
        "kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 3, "rate": "400 Gbps", "latency": "1.03 us",
        "degraded": [
            {"link": "leaf0->spine1", "speed": 0.41},
            {"link": "spine1->leaf1", "speed": 0},
            {"link": "leaf1->spine0", "speed": 0.37},
            {"link": "h1->leaf0", "speed": 0.91},
        ],
    },
    "routing": {"kind": "all"},
    "traffic": [
        {
            "kind": "flows",
            "list": [
                {"src": 0, "dst": 3, "size": "2.1 MB"},
                {"src": 1, "dst": 3, "size": "1.9 MB", "start": "0.7 us"},
                {"src": 2, "dst": 4, "size": "1.7 MB"},
                {"src": 4, "dst": 0, "size": "1.3 MB", "after": [0, 2], "delay": "0.3 us"},
                {"src": 5, "dst": 0, "size": "1.1 MB", "after": [1]},
            ],
        }
    ],
    "queue": {"kind": "trim", "buffer": "150 kB"},
    "transport": {"kind": "nscc", "target": "2 us"},
}  # fmt: skip
"""Through trims, marks, a dead link, slow ones, and flows that wait for others."""

KINDS = [
    {"key": "split.weight"},
    {"key": "queue.buffer", "total": "now"},
    {"key": "queue.ecn_low", "per": "tier"},
    {"key": "queue.ecn_high", "per": "tier"},
    {"key": "links.capacity", "per": "link", "cost": "now"},
    {"key": "transport.target", "low": "1 us", "high": "5 us"},
    {"key": "transport.largest", "high": 3},
    {"key": "transport.gamma"},
    {"key": "transport.smoothing", "high": 0.1},
    {"key": "traffic.start", "per": "flow", "high": "3 us"},
]


def test_gradients_of_every_kind() -> None:
    """Over all objectives at once."""
    section = {"parameters": KINDS, "objective": dict.fromkeys(OBJECTIVES, 0.3)}
    try:
        found = slopes(fabsim.load({**SCENARIO, "tune": section}), progress=False)
    finally:
        jax.config.update("jax_enable_x64", False)
    assert list(found) == [kind["key"] for kind in KINDS]
    for name, one in found.items():
        assert one.tries <= TRIES, name
        assert abs(one.difference) > 1e-6, name
        assert one.apart < 1e-4, (name, one)


@pytest.mark.parametrize(("queue", "key"), [
    ({"kind": "shared", "memory": "300 kB"}, "queue.alpha"),
    ({"kind": "pfc", "xoff": "60 kB", "xon": "40 kB", "headroom": "50 kB"}, "queue.headroom"),
])  # fmt: skip
def test_gradients_of_what_other_ports_have(queue: dict[str, str], key: str) -> None:
    section = {"parameters": [{"key": key, "per": "tier"}], "objective": "lost_bytes"}
    window = {"kind": "window", "window": "600 kB"}
    try:
        found = slopes(fabsim.load({**SCENARIO, "queue": queue, "transport": window, "tune": section}), progress=False)
    finally:
        jax.config.update("jax_enable_x64", False)
    assert abs(found[key].difference) > 1e-6
    assert found[key].apart < 1e-4, found


def test_gradients_of_queues_of_classes() -> None:
    """Buffers of both under a total, and thresholds of each."""
    other = {"kind": "flows", "list": [{"src": 0, "dst": 4, "size": "1.2 MB"}, {"src": 2, "dst": 3, "size": "0.9 MB"}]}
    given = {
        **SCENARIO,
        "queue": {"kind": "trim", "buffer": "90 kB", "classes": [{"name": "a"}, {"name": "b", "weight": 2}]},
        "traffic": [{**SCENARIO["traffic"][0], "class": "a"}, {**other, "class": "b"}],
    }
    keys = [{"key": "queue.buffer", "total": "now"}, {"key": "queue.ecn_low"}, {"key": "queue.ecn_high"}]
    objective = {"mean_completion": 1, "lost_bytes": 0.3, "peak_queue": 0.3}
    try:
        found = slopes(fabsim.load({**given, "tune": {"parameters": keys, "objective": objective}}), progress=False)
    finally:
        jax.config.update("jax_enable_x64", False)
    for name, one in found.items():
        assert abs(one.difference) > 1e-6, name
        assert one.apart < 1e-4, (name, one)


def test_a_wrong_gradient_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"queue.buffer": Slope(1.0, 1.0, 1.0, 1.0, 1), "split.weight": Slope(1.0, 1.001, 1.0, 1.0, 2)}
    monkeypatch.setattr(gradient_check, "slopes", lambda *_, **__: made)
    with pytest.raises(Stopped, match=r"split.weight: off by more than 0.0001"):
        check_gradients(fabsim.load(SCENARIO))
    made["split.weight"] = Slope(1.0, float("nan"), 1.0, 1.0, 2)
    with pytest.raises(Stopped, match=r"split.weight: off"):
        check_gradients(fabsim.load(SCENARIO))
    del made["split.weight"]
    assert "queue.buffer" in check_gradients(fabsim.load(SCENARIO))
