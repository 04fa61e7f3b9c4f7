"""JAX as all tests use it: on the CPU, with compiled programs kept between runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Nearly all of the time of the tests is compilation, and this takes a quarter off it. Read when JAX is first imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax
import numpy as np
import pytest


def cache_folder() -> Path:
    """The folder for compiled programs: per user, outside the repository, per JAX version."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fabsim" / f"jax-{jax.__version__}"


def pytest_configure(config: pytest.Config) -> None:
    """Sets JAX up before any test module is imported. float64 stays off: the precision switch turns it on."""
    jax.config.update("jax_platforms", os.environ.get("JAX_PLATFORMS", "cpu"))
    jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(scope="module", autouse=True)
def no_programs_left_behind() -> Iterator[None]:
    """Each compiled program keeps memory mapped, and a process may have 65,530 maps on Linux, and no more:
    hundreds of tests in one process come near."""
    yield
    jax.clear_caches()


@pytest.fixture
def recorded() -> Callable[..., dict[str, Any]]:
    """Makes what `collect` takes, from the completion times of three flows."""
    return made_up


@pytest.fixture
def parts() -> dict[str, Any]:
    """What `collect` makes tables of: 4 hosts, 2 leaves, 2 spines, one cable dead; three flows of 1 MB into host 2."""
    return made_up(np.array([30e-6, 40e-6, 60e-6]))


@pytest.fixture
def result(parts: dict[str, Any]) -> Any:
    """A run under one path per flow."""
    from fabsim.collect import collect

    return collect(
        **parts, name="ECMP", scenario="name: first\nseed: 7\n", seed=7, zero_load=np.full(3, 24e-6), watch=6
    )


@pytest.fixture
def other_case() -> Any:
    """The same traffic under spray: other completions, and one frame less."""
    from fabsim.collect import collect

    return collect(**made_up(np.array([35e-6, 38e-6, 42e-6]), frames=3), name="spray", seed=7, watch=6)


def made_up(completion: np.ndarray, frames: int = 4) -> dict[str, Any]:
    """A made-up run of frames of 20 us in which all bytes leave by the links into host 2."""
    from fabsim.engine.run import Run
    from fabsim.engine.simulate import Frame, Trace
    from fabsim.topology import Change, degrade, find_links, leaf_spine
    from fabsim.workload.flows import Flows

    fabric = degrade(
        leaf_spine(2, 2, 2, rate=50e9, latency=1e-6), [Change("leaf0->spine1", speed=0), Change("h3->leaf1", speed=0.5)]
    )
    none = np.full(3, -1)
    flows = Flows(
        src=np.array([0, 1, 3]),
        dst=np.full(3, 2),
        size=np.full(3, 1e6),
        start=np.zeros(3),
        trigger=none,
        need=np.zeros(3, dtype=int),
        fires=none,
        fires_at_sender=np.zeros(3, dtype=bool),
        leader=none,
        head=np.zeros(3),
        grain=np.zeros(3),
    )
    sent, queue = np.zeros((2, frames, fabric.links), dtype=np.float32)
    down = find_links(fabric, "leaf1->h2")
    sent[:, down] = 3e6 / frames
    sent[:, find_links(fabric, "leaf0->spine0")] = 2e6 / frames
    queue[:, down] = np.linspace(4e5, 0, frames, dtype=np.float32)[:, None]
    seen = Frame(sent, queue, 1.5 * queue, 0.1 * sent, 0.01 * sent, np.zeros((frames, 3), dtype=np.float32))
    trace = Trace(completion, completion + 2e-6, np.zeros(3), seen, None, np.int32(0))
    return {
        "run": Run(trace, 20e-6 * np.arange(1, frames + 1), 20 * frames, 1e-6, 0.5),
        "fabric": fabric,
        "flows": flows,
    }
