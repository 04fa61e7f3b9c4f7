"""A sweep against the same runs one by one, on one device and on all: in a process of its own, since the number of
devices that a CPU stands for is settled when JAX starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabsim.bench.figure import SCENARIO, STEPS, Figure, least


@dataclass(frozen=True)
class Times:
    """Seconds of all variants, warm.

    Attributes:
        singly: one after the other.
        one, every: as batches on one device, and on all.
        built: the same on all, from their keys to their figures, in memory.
        sweep: as `fabsim sweep` does it, with plan, files and progress.
        devices: how many there are.
    """

    singly: float
    one: float
    every: float
    built: float
    sweep: float
    devices: int


def many(members: int) -> list[Figure]:
    """The lines of the table."""
    program = f"from fabsim.bench.many import measure; measure({members})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    t = Times(**json.loads(done.stdout.splitlines()[-1]))
    building, layer = 100 * (1 - t.every / t.built), 100 * (1 - t.built / t.sweep)
    return [
        Figure(f"{members:,} variants", f"{t.every:.1f} s", f"in batches on all devices, {STEPS} steps each"),
        Figure("sweep", f"{t.singly / t.every:.2f} x", f"the throughput of {members:,} runs one by one"),
        Figure("devices", f"{t.one / t.every:.2f} x", f"{t.devices} devices against one"),
        Figure("building", f"{building:.1f} %", "of a batch from keys to figures is making arrays of keys"),
        Figure("sweep layer", f"{layer:.1f} %", "of fabsim sweep is plan, files and progress"),
    ]


def measure(members: int) -> None:
    """Print the times as JSON."""
    from fabsim.options import use_device

    use_device(None)
    import jax

    from fabsim.engine.simulate import simulate
    from fabsim.scenario import load
    from fabsim.scenario.batch import Compiler, run_all
    from fabsim.study.advance import run_batch
    from fabsim.sweeps.design import design
    from fabsim.sweeps.draft import SHARD
    from fabsim.sweeps.sweep import sweep

    devices = len(jax.local_devices())
    problem, model = load(SCENARIO).compile()

    def once() -> Any:
        return jax.block_until_ready(simulate(problem, model, steps=STEPS).completion)

    whole, few = variants(problem, model, members), variants(problem, model, 128 * devices)

    def batches(some: Any, count: int) -> None:
        run_batch(some, until=STEPS * float(problem.dt), devices=count)

    buffers = [f"{200_000 + 300 * number} B" for number in range(members)]
    metrics = ["last_completion", "completion_p99", "queue_peak"]
    scenario = load({**SCENARIO, "sweep": {"grid": {"queue.buffer": buffers}, "metrics": metrics}})

    def built() -> None:
        single, points, compiler = scenario.single(), design(scenario), Compiler()
        ready = [compiler.compile(points.scenario(single, number)) for number in range(members)]
        run_all(ready, metrics, size=SHARD, devices=devices)

    def layered() -> None:
        with tempfile.TemporaryDirectory() as folder:
            sweep(scenario, Path(folder) / "sweep", progress=False)

    for work in (once, lambda: batches(few, 1), lambda: batches(few, devices), built, layered):
        work()  # compiles
    singly, single, every, from_keys, whole_sweep = least(
        lambda: [once() for _ in range(members)],
        lambda: batches(whole, 1),
        lambda: batches(whole, devices),
        built,
        layered,
        rounds=1,
    )
    times = Times(singly, single, every, from_keys, whole_sweep, devices)
    print(json.dumps(vars(times)))


def variants(problem: Any, model: Any, members: int) -> Any:
    """The same network with buffers from half to one and a half times as large."""
    import numpy as np

    from fabsim.engine.batch import batch

    sizes = np.linspace(0.5, 1.5, members, dtype=np.float32)
    buffer = np.asarray(model.queue.buffer)
    return batch([problem] * members, [replace(model, queue=replace(model.queue, buffer=buffer * x)) for x in sizes])
