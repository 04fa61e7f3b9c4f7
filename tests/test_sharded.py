"""One scenario on several devices gives what one device gives.

Bytes of many flows are summed at a link, part by part: in another order than on one device. So float32 figures differ
by roundings, 6e-8 each, which queues add up over the steps; float64 ones agree to 1e-12.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import fabsim
from fabsim.cli import main
from fabsim.engine.deal import deal
from fabsim.errors import InputError
from fabsim.scenario.compile.memory import VALUES, refuse_too_large_for
from fabsim.topology import multi_plane
from fabsim.workload import assemble
from tests.small import case

CONFIGS = Path(__file__).parents[1] / "configs"

TIME = 1e-6
"""Relative, of completions and starts; 9e-8 found."""

BYTES = 1e-5
"""Of frames, relative to the largest; 2e-6 found."""


def start(*arguments: str) -> subprocess.Popen[str]:
    """Python with the compiled programs of the other tests."""
    root = Path(__file__).parents[1]
    cache = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    kept = {
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONPATH": os.pathsep.join([str(root), *sys.path]),
    }
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", *arguments]
    return subprocess.Popen(command, cwd=root, env=os.environ | kept, stdout=pipe, stderr=pipe, text=True)


def answer(process: subprocess.Popen[str]) -> Any:
    """The JSON in its last line."""
    out, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors[-2000:]
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What eight devices found."""
    return answer(start("tests.eight_devices"))


RUNS = ["window 0", "window 1", "window 2", "nscc 0", "nscc 1", "ideal 0", "run"]


@pytest.mark.parametrize("run", RUNS)
def test_eight_devices_and_one_agree(found: dict[str, Any], run: str) -> None:
    """With triggers that flows of several devices fire and wait for, drops and marks; `run` is the host's driver."""
    apart = dict(found[run])
    assert apart.pop("flags") == 0
    assert max(apart.pop("completion"), apart.pop("start")) < TIME
    assert set(apart) == {"sent", "queue", "peak", "marked", "dropped", "again", "headers"}
    assert max(apart.values()) < BYTES


@pytest.mark.parametrize("ports", ["pauses", "drops", "shared", "faults", "found", "classes", "wires"])
def test_what_ports_do_is_known_to_all(found: dict[str, Any], ports: str) -> None:
    """Pauses, losses, shared memories, faults, classes and long wires, in float64; `all` is what links paused or
    dropped."""
    apart = dict(found[ports])
    assert apart.pop("flags") == 0
    assert apart.pop("all") > 0
    assert ("paused" in apart) == (ports == "pauses")
    assert max(apart.values()) < 1e-12


def test_gradients_agree(found: dict[str, Any]) -> None:
    """By all parameters, through triggers, coupled flows and pauses."""
    apart = dict(found["gradient"])
    assert min(apart.pop("capacity"), apart.pop("xoff")) > 1
    assert max(apart.values()) < 1e-12


def test_a_deadlock_over_devices_names_its_flows(found: dict[str, Any]) -> None:
    text = found["stuck"]
    assert "flow 17 waits for completion 9 of 1, 2, 3 (8 seen)" in text
    assert "6 flows wait in all" in text


def test_a_sender_cannot_be_parted(found: dict[str, Any]) -> None:
    assert found["waits"] < 1e-4
    assert found["refused"].endswith("2 ports send; 2 or fewer would do")


def test_two_processes_share_a_problem() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for both in [answer(p) for p in [start("tests.two_processes", port, number) for number in ("0", "1")]]:
        np.testing.assert_allclose(both[0], both[1], rtol=TIME)


def test_flows_are_dealt_by_sender_in_equal_parts() -> None:
    """Two planes: a host's ports stay together, whichever flows use them."""
    fabric = multi_plane(2, 4, 2, 4, rate=50e9, latency=1e-6)
    src = np.random.default_rng(0).permutation(np.repeat(np.arange(16), 3))
    problem, _ = case(fabric, assemble(src, (src + 5) % 16, 1e5))
    for devices in (1, 2, 3, 5, 16):
        order, place = deal(problem, devices)
        np.testing.assert_array_equal(order.reshape(-1)[place], np.arange(48))
        device = place // order.shape[1]
        assert all(len(set(device[src == host])) == 1 for host in range(16))
        assert np.ptp(np.bincount(device, minlength=devices)) <= 3
    few, _ = case(fabric, assemble([0, 1, *[2] * 50, 3, 4], [5] * 54, 1e5))
    order, place = deal(few, 4)
    np.testing.assert_array_equal(np.bincount(place // order.shape[1]), [2, 50, 1, 1])
    with pytest.raises(InputError, match=r"17 given, .* 16 or fewer would do"):
        deal(problem, 17)


def test_a_part_must_fit_into_its_device() -> None:
    path = np.zeros((10, 4, 5), int)
    need = path.size * VALUES * 4
    gpu = SimpleNamespace(memory_stats=lambda: {"bytes_limit": 0.4 * need})
    refuse_too_large_for([gpu] * 3, path, 4)
    refuse_too_large_for([SimpleNamespace(memory_stats=lambda: None)], path, 4)
    with pytest.raises(InputError, match=r"each of 2 needs about 18 kB of memory, and has 14.4 kB; 3 devices would do"):
        refuse_too_large_for([gpu] * 2, path, 4)


@pytest.mark.parametrize(("more", "says"), [
    ([], "devices: 9 given, and JAX finds 1 cpu here; 1 would do"),
    (["--set", "seeds=3"], "seeds: 3 given, which run at once on one device; 1 seed, or 1 device, would do"),
])  # fmt: skip
def test_the_command_refuses_in_a_sentence(more: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    jax.devices()  # it has started, with one
    config = str(CONFIGS / "incast.yaml")
    assert main(["run", config, "--no-plot", "--devices", "9", *more]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("count", [9, 0, -1, 0.5])
def test_so_does_python(count: Any) -> None:
    says = f"^devices: {count} given, and JAX finds 1 cpu here; 1 would do$"
    with pytest.raises(InputError, match=says):
        fabsim.run(fabsim.load(CONFIGS / "incast.yaml"), devices=count)
    with pytest.raises(InputError, match=says):
        fabsim.sweep(fabsim.load(CONFIGS / "sweeps" / "first.yaml"), devices=count)
