"""Run twice by test_sharded.py: `python -m tests.two_processes PORT NUMBER`, two processes that share one problem."""

from __future__ import annotations

import json
import sys

import jax
import jax.numpy as jnp

from fabsim.engine.run import run
from fabsim.engine.spread import over
from fabsim.models.window import Window
from fabsim.topology import leaf_spine
from fabsim.workload import assemble
from tests.small import RATE, case


def main(port: str, number: str) -> list[list[float]]:
    """Completions as two processes find them, and as one does."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(number))
    flows = assemble([0, 1, 2, 3], [3, 3, 0, 1], 2e5, trigger=[-1, -1, 0, -1], need=[0, 0, 2, 0], fires=[0, 0, -1, -1])
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)
    problem, model = case(fabric, flows, transport=Window(jnp.float32(3e5)), buffer=1e5)
    shared = run(problem, model, mesh=over(jax.devices()), progress=False)
    alone = run(problem, model, progress=False)
    return [found.trace.completion.tolist() for found in (shared, alone)]


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
