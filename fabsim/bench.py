"""Speed, as ratios of things measured in one process: a step against a copy of its state, and so on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.batch import stack, widen
from fabsim.engine.simulate import begin, simulate
from fabsim.scenario import load

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


def bench(repeats: int = 7, batch: int = 16) -> list[Figure]:
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
    problems, models = stack(widen([problem] * batch)), stack([model] * batch)
    many = jax.jit(jax.vmap(lambda p, m: simulate(p, m, steps=STEPS).completion))
    jax.block_until_ready(many(problems, models))
    together = least(lambda: jax.block_until_ready(many(problems, models)), max(repeats // 2, 2)) / batch
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
        Figure("sweep", f"{warm / together:.2f} x", f"the throughput of runs one by one, {batch} at once"),
    ]


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
