"""Scenarios that do not fit are refused before anything large is made."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

import fabsim
from fabsim.engine.wires import CELLS
from fabsim.machine import EXTRA, LOOPS, ask_for_vectors
from fabsim.scenario.compile import memory
from fabsim.scenario.length import ideal_seconds, routed_seconds

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


def test_a_run_whose_frames_do_not_fit_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame a step of 1 us for 41 ms of traffic, five numbers a link and one a flow: 48 links and 16 flows make 42 MB
    at least."""
    fabric = {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 8, "rate": "400 Gbps"}
    scenario = fabsim.load(
        {"fabric": fabric | {"latency": "1 us"}, "traffic": [{"kind": "shift", "size": "2 GB", "by": 1}]}, every="1 us"
    )
    monkeypatch.setattr("fabsim.scenario.length.available", lambda: 4e7)
    with pytest.raises(fabsim.InputError, match=r"every: the frames of the result need at least 4\d\.\d+ MB"):
        fabsim.run(scenario, progress=False)


def test_how_soon_a_run_can_end_is_told_by_what_no_byte_can_avoid() -> None:
    """A slow spine holds up who has no other path; what is sprayed over it and lost is sent again over others, and may
    be through in less than the spine would need for its share."""
    fabric = {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4, "rate": "400 Gbps",
              "latency": "1 us", "degraded": [{"link": "spine0", "speed": 0.001}]}  # fmt: skip
    spray = fabsim.load({"fabric": fabric, "routing": {"kind": "all"}, "traffic": SCENARIO["traffic"]})
    single = spray.change({"routing": {"kind": "ecmp"}})
    wire = 2e6 * 4150 / 4086 / 50e9
    net = single.network()
    flows = np.bincount(net.routes.path[net.routes.path >= 0], minlength=net.fabric.links)
    assert ideal_seconds(single, net) == pytest.approx(flows[net.fabric.speed < 1].max() * 1000 * wire, rel=0.01)
    assert ideal_seconds(spray, spray.network()) == pytest.approx(wire, rel=0.01)
    assert routed_seconds(spray, spray.network()).max() > 100 * wire


def test_ports_of_a_host_hold_it_up_together() -> None:
    """Two planes, and a port of each host in both, of which one is slow: what it loses may take the other one."""
    fabric = {"kind": "multi_plane", "planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "rate": "200 Gbps",
              "latency": "1 us", "degraded": [{"link": "h*->p1.leaf*", "speed": 0.25}]}  # fmt: skip
    scenario = fabsim.load({"fabric": fabric, "routing": {"kind": "all"}, "traffic": SCENARIO["traffic"]})
    sent = 2e6 * 4150 / 4086 / 25e9 / 1.25
    net = scenario.network()
    assert ideal_seconds(scenario, net) == pytest.approx(sent, rel=0.01)
    assert routed_seconds(scenario, net)[net.fabric.src < net.fabric.hosts] == pytest.approx(sent, rel=0.01)


def test_no_run_ends_before_it_can() -> None:
    """A sprayed permutation, of which a slow link would take four times as long for its share."""
    fabric = {"kind": "leaf_spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4, "rate": "400 Gbps",
              "latency": "1 us", "degraded": [{"link": "leaf*->spine0", "speed": 0.25}]}  # fmt: skip
    scenario = fabsim.load({"fabric": fabric, "routing": {"kind": "all"}, "transport": {"kind": "nscc"},
                            "traffic": [{"kind": "shift", "by": 4, "size": "2 MB"}]})  # fmt: skip
    net, last = scenario.network(), fabsim.run(scenario, progress=False).completion.max()
    assert ideal_seconds(scenario, net) <= last < routed_seconds(scenario, net).max()


def test_grows_with_flows_paths_and_precision() -> None:
    sc = fabsim.load(SCENARIO)
    net = sc.network()
    one = memory.needed(net.fabric, net.flows, 1, 4)
    assert memory.needed(net.fabric, net.flows, None, 4) == 16 * one
    assert memory.needed(net.fabric, net.flows, 1, 8) == 2 * one
    far = dataclasses.replace(net.fabric, latency=net.fabric.latency * 100)
    assert memory.needed(far, net.flows, 1, 4) == one + net.flows.count * CELLS * memory.ON_WIRES * 4
    assert memory.available() > 1e6


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{EXTRA}{LOOPS}"),
        ("--xla_cpu_ftz=true", f"--xla_cpu_ftz=true {EXTRA}{LOOPS}"),
        (f"{EXTRA}-nvptx-allow-ftz-atomics", f"{EXTRA}{LOOPS},-nvptx-allow-ftz-atomics"),
        (f"{EXTRA}{LOOPS}", f"{EXTRA}{LOOPS}"),
    ],
)
def test_the_compiler_is_asked_for_vectors_before_it_starts(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", before)
    ask_for_vectors()
    assert os.environ["XLA_FLAGS"] == before  # JAX is there already
    monkeypatch.delitem(sys.modules, "jax")
    ask_for_vectors()
    assert os.environ["XLA_FLAGS"] == after


def test_a_command_computes_with_vectors_on_all_cores() -> None:
    """What XLA reads is set before JAX starts, and a sweep has a device for each core."""
    program = (
        "import os, sys; from fabsim.cli import main; from fabsim.machine import LOOPS, cores; "
        "code = main(sys.argv[1:]); "
        "import jax; assert LOOPS in os.environ['XLA_FLAGS']; assert jax.local_device_count('cpu') == cores(); "
        "sys.exit(code)"
    )
    arguments = ["sweep", "configs/sweeps/first.yaml", "--dry-run", "--device", "cpu"]
    env = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")}
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, env=env, stdout=subprocess.DEVNULL)
    said = program.replace("== cores()", "== 3")  # the user's own word
    env["JAX_NUM_CPU_DEVICES"] = "3"
    subprocess.run([sys.executable, "-c", said, *arguments], check=True, env=env, stdout=subprocess.DEVNULL)
