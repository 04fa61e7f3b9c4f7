"""Run by test_sharded.py in a process of its own, with eight devices on the CPU: prints what it finds as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.faults import faults
from fabsim.engine.problem import Problem
from fabsim.engine.run import run
from fabsim.engine.simulate import Trace, simulate
from fabsim.engine.spread import Spread, over, spread
from fabsim.errors import InputError, Stopped
from fabsim.models.bucket import Bucket
from fabsim.models.go_back import GoBackN
from fabsim.models.ideal import Ideal
from fabsim.models.model import Model
from fabsim.models.mrc import Mrc
from fabsim.models.nscc import nscc
from fabsim.models.window import Window
from fabsim.topology import Change, Fabric, degrade, leaf_spine
from fabsim.workload import assemble, merge, ring_coupled
from tests.small import RATE, case
from tests.test_classes import with_classes
from tests.test_pfc import pausing
from tests.test_shared_buffer import sharing
from tests.test_taildrop import losing

FABRIC = degrade(leaf_spine(4, 2, 4, rate=RATE, latency=1.03e-6), [Change("leaf0->spine1", speed=0.61)])
STEPS = 200


def drawn(
    seed: int,
    law: Any,
    dtype: str = "float32",
    deadlock: bool = False,
    own: Any = None,
    fabric: Fabric = FABRIC,
) -> tuple[Problem, Model[Any]]:
    """Each of 16 hosts sends at once; 14 of them again, after the barrier of the first eight or after their own. `own`
    is the class of traffic of each flow.

    Thirty flows on eight devices: two places stay empty.
    """
    rng = np.random.default_rng(seed)
    src = np.concatenate([np.arange(16), np.arange(14)])
    dst = (src + rng.integers(1, 16, 30)) % 16
    fires = np.where(np.arange(30) < 8, 0, np.where(np.arange(30) < 16, np.arange(30) - 7, -1))
    waits = np.where(np.arange(30) < 16, -1, np.where(np.arange(30) < 22, 0, np.arange(30) - 21))
    need = np.where(waits == 0, np.array([9 if deadlock else 8]), np.where(waits > 0, 1, 0))
    size = rng.uniform(1e5, 4e5, 30).round()
    flows = assemble(src, dst, size, trigger=waits, need=need, fires=fires)
    several: dict[str, Any] = {} if own is None else {"traffic_class": own, "classes": int(max(own)) + 1}
    return case(fabric, flows, transport=law, buffer=1.1e5, dtype=dtype, share_rows=False, ring=16, **several)


def everything(dtype: str) -> tuple[Problem, Model[Any]]:
    """Rings coupled by grains and as streams, with a barrier and a chain beside."""
    rings = [
        ring_coupled(16, 4 * 2.03e5, groups=[[0, 5, 9, 13]], grain=1.01e5),
        ring_coupled(16, 3 * 3.1e5, groups=[[1, 6, 10]]),
    ]
    chain = assemble(
        [2, 3, 7, 11, 2, 15], [11, 0, 3, 12, 6, 1], [3e5, 1.7e5, 2.3e5, 1.1e5, 0.9e5, 1.3e5],
        trigger=[-1, -1, -1, 0, 0, 1], need=[0, 0, 0, 2, 1, 1], fires=[0, 0, 1, -1, -1, -1],
        start=[0, 3e-7, 0, 0, 0, 2e-7],
    )  # fmt: skip
    law = Window(jnp.asarray(2.07e5, dtype))
    return case(FABRIC, merge([*rings, chain]), transport=law, buffer=1.1e5, dtype=dtype, share_rows=False)


def apart(one: Any, other: Any) -> float:
    """Largest difference, relative to the largest value."""
    one, other = np.asarray(one, float), np.asarray(other, float)
    return float(np.abs(one - other).max() / max(np.abs(one).max(), 1e-300))


def compare(one: Trace, other: Trace) -> dict[str, float]:
    """How far two traces are apart."""
    assert np.isfinite(one.completion).all()
    found = {name: apart(getattr(one, name), getattr(other, name)) for name in ("completion", "start", "flags")}
    frames = {name: x for name, x in vars(one.frames).items() if x is not None}
    by_class = frames.pop("by_class", None)
    if by_class is not None:
        found |= {
            f"{name} by class": apart(x, getattr(other.frames.by_class, name)) for name, x in vars(by_class).items()
        }
    return found | {name: apart(x, getattr(other.frames, name)) for name, x in frames.items()}


def ports(law: Any) -> dict[str, tuple[Problem, Model[Any]]]:
    """What ports may do besides trimming, in float64: pause, drop behind lossy links, share a memory, die,
    and die with nobody to tell."""
    problem, model = drawn(0, law, "float64")
    loss = np.where(np.arange(FABRIC.links) % 5 == 0, 1e-3, 0.0)
    some = [np.arange(2, FABRIC.links, 7), np.arange(3, FABRIC.links, 11)]
    schedule = faults(
        some, FABRIC.links, begin=[5e-6, 9.3e-6], end=40e-6, speed=[0.0, 0.3], react=4e-6, dtype="float64"
    )
    return {
        "pauses": (problem, pausing(model, xoff=5e4, headroom=6e4)),
        "drops": losing((problem, model), GoBackN, loss=loss),
        "shared": (problem, sharing(model, memory=2e5)),
        "faults": (replace(problem, faults=schedule), model),
        "found": (replace(problem, faults=schedule), finding(model)),
        "classes": classes(law),
        "wires": drawn(0, law, "float64", fabric=degrade(FABRIC, [Change("leaf2<->spine*", latency=31.3e-6)])),
    }


def finding(model: Model[Any]) -> Model[Any]:
    """Senders that find out about links by their own losses."""
    values = {"entropies": 32.0, "backup": 32.0, "skip": 1.0, "probe": 5e-6, "successes": 3.0, "min_active": 4.0}
    law = Mrc(**{name: jnp.asarray(x) for name, x in values.items()}, remap=jnp.asarray(3e-6))
    return replace(losing((None, model), timeout=8e-6)[1], balancer=law, queue=model.queue)


def classes(law: Any) -> tuple[Problem, Model[Any]]:
    """Three classes of traffic, one of them shaped at senders and switches alike."""
    problem, model = drawn(0, law, "float64", own=np.arange(30) % 3)
    rate = np.where(np.arange(3 * FABRIC.links) < FABRIC.links, 0.4 * RATE, 1e15)
    bucket = Bucket(jnp.asarray(rate), jnp.asarray(rate / RATE * 1e5))
    return problem, with_classes(model, (0, 1, 1), (1, 1, 3), shape=bucket)


def gradients() -> dict[str, float]:
    """Value and gradient by every leaf, in float64, over pauses with so little headroom that some bytes are lost."""

    def total(problem: Problem | Spread, model: Model[Any]) -> jax.Array:
        return simulate(problem, model, steps=80, every=20, checkpoint=False).completion.sum() * 1e6

    slope = jax.jit(jax.value_and_grad(total, argnums=1), compiler_options={"xla_backend_optimization_level": 0})
    problem, model = everything("float64")
    model = pausing(model, xoff=2e4, headroom=4e4)
    one, two = slope(problem, model), slope(spread(problem, over(jax.devices())), model)
    assert np.isfinite(one[0])
    leaves = zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(two), strict=True)
    found = {jax.tree_util.keystr(path): apart(x, y) for (path, x), y in leaves}
    steepest = {"capacity": one[1].links.capacity * model.links.capacity, "xoff": one[1].queue.xoff * model.queue.xoff}
    return found | {name: float(np.abs(x).max()) for name, x in steepest.items()}


def refused() -> str:
    """Eight devices for fewer senders."""
    flows = assemble([0, 1, 1], [2, 2, 3], 1e5)
    try:
        spread(case(FABRIC, flows)[0], over(jax.devices()))
    except InputError as error:
        return str(error)
    return "not refused"


def stuck(law: Any) -> str:
    """A barrier that waits for a ninth of eight."""
    try:
        run(*drawn(0, law, deadlock=True), mesh=over(jax.devices()), progress=False)
    except Stopped as error:
        return str(error)
    return "not stopped"


def waits(law: Any, mesh: Any) -> float:
    """How far completions are apart of flows that do nothing, for longer than any round trip, but wait for timeouts."""
    loss = np.where(np.arange(FABRIC.links) % 5 == 0, 0.1, 0.0)
    problem, model = losing(drawn(0, law), timeout=1e-3, loss=loss)
    one, two = (run(problem, model, mesh=where, progress=False).trace for where in (None, mesh))
    assert float(one.completion.max()) > 1e-3
    return apart(one.completion, two.completion)


def main() -> dict[str, Any]:
    """All of it."""
    jax.config.update("jax_num_cpu_devices", 8)
    mesh = over(jax.devices())
    window = Window(jnp.linspace(1e5, 3e5, 30, dtype="float32"))  # another one for each flow
    laws = {"window": (window, 3), "nscc": (nscc(12e-6, RATE, 4086.0), 2), "ideal": (Ideal(jnp.float32(0.97)), 1)}
    found: dict[str, Any] = {}
    for name, (law, seeds) in laws.items():
        for seed in range(seeds):
            problem, model = drawn(seed, law)
            one = simulate(problem, model, steps=STEPS)
            found[f"{name} {seed}"] = compare(one, simulate(spread(problem, mesh), model, steps=STEPS))
    problem, model = drawn(0, window)
    by_host = run(problem, model, mesh=mesh, until=STEPS * float(problem.dt), progress=False)
    found["run"] = compare(simulate(problem, model, steps=STEPS), by_host.trace)
    found["stuck"] = stuck(window)
    found["refused"] = refused()
    found["waits"] = waits(window, mesh)
    with jax.enable_x64(True):
        found["gradient"] = gradients()
        for name, (problem, model) in ports(jax.tree.map(lambda x: x.astype("float64"), window)).items():
            one = simulate(problem, model, steps=2 * STEPS)
            found[name] = compare(one, simulate(spread(problem, mesh), model, steps=2 * STEPS))
            found[name]["all"] = float((one.frames.dropped if one.frames.paused is None else one.frames.paused).sum())
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
