"""Scenarios that do not fit are refused before anything large is made."""

from __future__ import annotations

import dataclasses

import pytest

import fabsim
from fabsim.engine.wires import CELLS
from fabsim.scenario.compile import memory

SCENARIO = {
    "fabric": {"kind": "fat_tree", "k": 8, "rate": "400 Gbps", "latency": "1 us"},
    "routing": {"kind": "all"},
    "traffic": [{"kind": "permutation", "size": "2 MB"}],
}


def test_refused_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1e6)
    with pytest.raises(
        fabsim.InputError, match=r"routing: 128 flows over all their paths need about .* and 1 MB is free"
    ):
        fabsim.load(SCENARIO).network()
    fabsim.load(SCENARIO, routing={"kind": "ecmp"}).network()


def test_grows_with_flows_paths_and_precision() -> None:
    sc = fabsim.load(SCENARIO)
    net = sc.network()
    one = memory.needed(net.fabric, net.flows, 1, 4)
    assert memory.needed(net.fabric, net.flows, None, 4) == 16 * one
    assert memory.needed(net.fabric, net.flows, 1, 8) == 2 * one
    far = dataclasses.replace(net.fabric, latency=net.fabric.latency * 100)
    assert memory.needed(far, net.flows, 1, 4) == one + net.flows.count * CELLS * memory.ON_WIRES * 4
    assert memory.available() > 1e6
