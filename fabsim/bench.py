"""Speed, as ratios of things measured in one process: a step against a copy of its state, and so on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.batch import Batch, batch
from fabsim.engine.problem import Problem
from fabsim.engine.simulate import begin, simulate
from fabsim.models.model import Model
from fabsim.scenario import load
from fabsim.study.advance import SIDE_BY_SIDE, over, run_batch, spread_out

STEPS = 300
PACKET_SECONDS = 2.11
"""CPU seconds of a packet-level simulator (uet-htsim at 40ccb05, one thread of a 2.4 GHz core, +-30 %) for the same
permutation: 128 hosts, 2 MB each, sprayed over 128 entropy values under a fixed window."""

SCENARIO: dict[str, Any] = {
    "name": "bench",
    "fabric": {
        "kind": "leaf_spine", "leaves": 8, "spines": 16, "hosts_per_leaf": 16, "rate": "400 Gbps", "latency": "1 us",
    },
    "routing": {"kind": "all"},
    "traffic": [{"kind": "permutation", "size": "2 MB"}],
    "transport": {"kind": "window", "window": "1.5 BDP"},
}  # fmt: skip
"""A permutation over all spines of a 128-host leaf-spine."""


@dataclass(frozen=True)
class Figure:
    """One line: what, how much, and what it says."""

    name: str
    value: str
    meaning: str


def bench(repeats: int = 7, members: int = 1000) -> list[Figure]:
    """Measure. Times are the smallest of `repeats`, since other work on the machine can only add to them."""
    began = time.perf_counter()
    problem, model = load(SCENARIO).compile()
    built = time.perf_counter() - began

    def once() -> Any:
        return jax.block_until_ready(simulate(problem, model, steps=STEPS).completion)

    began = time.perf_counter()
    once()
    first = time.perf_counter() - began
    warm = least(once, repeats)
    slope = jax.jit(jax.grad(lambda m: simulate(problem, m, steps=STEPS).completion.max()))
    began = time.perf_counter()
    jax.block_until_ready(slope(model))
    first_slope = time.perf_counter() - began
    gradient = least(lambda: jax.block_until_ready(slope(model)), max(repeats // 2, 2))
    many = variants(problem, model, members)
    sweep(variants(problem, model, spread_out(many, over(None)).block))  # compiles for a block
    together = least(lambda: sweep(many), 1)
    singly = least(lambda: [once() for _ in range(members)], 1)
    one, spread = virtual_devices()
    state = begin(problem, model)
    size = sum(x.nbytes for x in jax.tree.leaves(state))
    copy = least(copier(size), repeats)
    hops = problem.at.row.shape[0] * problem.flows * model.split.weight.shape[1] + problem.flows
    return [
        Figure("import fabsim", f"{import_seconds():.2f} s", "beyond the import of jax"),
        Figure("build", f"{built:.2f} s", "scenario to arrays"),
        Figure("first result", f"{first:.2f} s", "of which nearly all is compilation, once per shape"),
        Figure("warm run", f"{warm * 1e3:.1f} ms", f"{problem.flows} flows, {STEPS} steps"),
        Figure("against packets", f"{PACKET_SECONDS / warm:.0f} x", f"faster than {PACKET_SECONDS} CPU s of packets"),
        Figure("steps", f"{STEPS / warm:,.0f} /s", "of the whole fabric"),
        Figure("subflow-hops", f"{STEPS * hops / warm / 1e6:.0f} M/s", f"{hops} advance in a step"),
        Figure(
            "step against copy", f"{warm / STEPS / copy:.1f} x", f"the time to copy its state of {size / 1e3:.0f} kB"
        ),
        Figure("gradient", f"{gradient / warm:.1f} x", f"a run, by all parameters (compiled in {first_slope:.1f} s)"),
        Figure("sweep", f"{singly / together:.2f} x", f"the throughput of {members:,} runs one by one"),
        Figure(f"{members:,} variants", f"{together:.1f} s", "that sweep, once compiled"),
        Figure("virtual devices", f"{one / spread:.2f} x", "two CPU devices, the throughput of one on the same cores"),
    ]


def variants(problem: Problem, model: Model[Any], members: int) -> Batch:
    """The same network with buffers from half to one and a half times as large."""
    sizes = np.linspace(0.5, 1.5, members, dtype=np.float32)
    buffer = np.asarray(model.queue.buffer)
    return batch([problem] * members, [replace(model, queue=replace(model.queue, buffer=buffer * x)) for x in sizes])


def sweep(many: Batch, devices: int | None = None) -> None:
    """Run a batch for as many steps as the single run."""
    run_batch(many, until=STEPS * float(many.problem.dt), devices=devices)


def virtual_devices() -> tuple[float, float]:
    """Seconds of a batch on one CPU device and spread over two, measured in a process that has two."""
    program = (
        "import jax; jax.config.update('jax_num_cpu_devices', 2); from fabsim.bench import on_two; print(*on_two())"
    )
    fresh = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=fresh)
    one, two = done.stdout.split()
    return float(one), float(two)


def on_two() -> tuple[float, float]:
    """What `virtual_devices` runs in the other process."""
    many = variants(*load(SCENARIO).compile(), 4 * SIDE_BY_SIDE)
    for devices in (1, 2):
        sweep(many, devices)
    turns = [[least(lambda d=devices: sweep(many, d), 1) for devices in (1, 2)] for _ in range(3)]
    one, two = np.min(turns, axis=0)
    return float(one), float(two)


def least(work: Callable[[], Any], repeats: int) -> float:
    """Smallest seconds of some calls."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def copier(size: int) -> Callable[[], Any]:
    """A plain copy of so many bytes."""
    source = np.ones(size, np.uint8)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


def import_seconds() -> float:
    """Seconds that `import fabsim` and its public names take in a fresh process that has jax already."""
    program = (
        "import time, jax, jax.numpy; began = time.perf_counter(); import fabsim; "
        "fabsim.load, fabsim.simulate, fabsim.run, fabsim.open; print(time.perf_counter() - began)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def as_text(figures: list[Figure]) -> str:
    """A table, with the machine it holds for."""
    device = jax.devices()[0]
    head = f"{device.platform} ({device.device_kind}), jax {jax.__version__}, {jnp.zeros(()).dtype}"
    width = max(len(f.value) for f in figures)
    return "\n".join([head, *(f"{f.name:18} {f.value:>{width}}  {f.meaning}" for f in figures)])
