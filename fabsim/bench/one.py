"""One run: how long it takes, compiled and warm, and its gradient."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from fabsim.bench.figure import SCENARIO, STEPS, Figure, least, seconds
from fabsim.engine.problem import Problem
from fabsim.engine.simulate import begin, simulate
from fabsim.models.model import Model
from fabsim.scenario import load

PACKET_SECONDS = 2.11
"""CPU seconds of a packet-level simulator (uet-htsim at 40ccb05, one thread of a 2.4 GHz core, +-30 %) for the same
permutation: 128 hosts, 2 MB each, sprayed over 128 entropy values under a fixed window."""


def one(rounds: int) -> list[Figure]:
    """Measure one run: compiled, warm, and its gradient."""
    began = time.perf_counter()
    problem, model = load(SCENARIO).compile()
    built = time.perf_counter() - began

    def once() -> Any:
        return jax.block_until_ready(simulate(problem, model, steps=STEPS).completion)

    def gradient(checkpoint: bool) -> Callable[[], Any]:
        def last(model: Model[Any]) -> jax.Array:
            return simulate(problem, model, steps=STEPS, checkpoint=checkpoint).completion.max()

        slope = jax.jit(jax.grad(last))
        return lambda: jax.block_until_ready(slope(model))

    slope, kept = gradient(True), gradient(False)
    size = sum(x.nbytes for x in jax.tree.leaves(begin(problem, model)))
    first, first_slope = seconds(once), seconds(slope)
    kept()
    warm, with_frames, all_kept, copy = least(once, slope, kept, copier(size), rounds=rounds)
    memory = [backward_bytes(problem, model, steps) for steps in (400, 1600)]
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
        Figure(
            "gradient", f"{with_frames / warm:.1f} x", f"a run, by all parameters (compiled in {first_slope:.1f} s)"
        ),
        Figure("without checkpoints", f"{all_kept / warm:.1f} x", "a run: the states of all steps are kept"),
        Figure(
            "4 x the steps", f"{memory[1] / memory[0]:.1f} x", f"the memory of a gradient ({memory[0] / 1e6:.1f} MB)"
        ),
    ]


def backward_bytes(problem: Problem, model: Model[Any], steps: int) -> float:
    """What the compiled gradient of so many steps needs beside its arguments, with frames of their square root."""

    def last(model: Model[Any]) -> jax.Array:
        return simulate(problem, model, steps=steps, every=round(steps**0.5)).completion.max()

    told = jax.jit(jax.grad(last)).lower(model).compile().memory_analysis()
    return float("nan") if told is None else float(told.temp_size_in_bytes)


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
