"""Small problems for the tests of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import Packet, Problem, build
from fabsim.models.model import Links, Model, Split
from fabsim.models.queue import TrimQueue
from fabsim.models.window import Window
from fabsim.routing.choose import all_paths
from fabsim.routing.routes import Routes
from fabsim.topology.graph import Fabric
from fabsim.workload.flows import Flows

RATE = 50e9
"""400 Gbps in bytes per second, the line rate of all small fabrics."""


def case(
    fabric: Fabric,
    flows: Flows,
    routes: Routes | None = None,
    *,
    transport: Any = None,
    window: float = 1e12,
    buffer: Any = 1e12,
    ecn: tuple[float, float] = (0.2, 0.8),
    ecn_max: float = 1.0,
    dtype: str = "float32",
    **options: Any,
) -> tuple[Problem, Model[Any]]:
    """Problem and model; without more said: all paths in equal parts, window and buffers without end.

    `ecn`: marks begin and end at these fractions of the buffer, with `ecn_max`; `options` go to `build`.
    """
    routes = all_paths(fabric, flows) if routes is None else routes
    problem = build(fabric, flows, routes, dtype=dtype, **options)

    def real(x: Any) -> jax.Array:
        return jnp.asarray(np.asarray(x), dtype)

    size = np.broadcast_to(np.asarray(buffer, float), (fabric.links,))
    model = Model(
        links=Links(real(fabric.capacity), real(fabric.latency)),
        queue=TrimQueue(real(size), real(size * ecn[0]), real(size * ecn[1]), ecn_max=real(ecn_max)),
        transport=Window(real(window)) if transport is None else transport,
        split=Split(real(routes.weight)),
    )
    return problem, model


def wire(size: Any) -> Any:
    """Bytes on the wire of a message, in packets of the default size."""
    return Packet().wire(np.asarray(size, float))


def slopes(
    value: Callable[[Problem, Model[Any]], Any], problem: Problem, model: Model[Any], leaves: Mapping[str, Callable]
) -> tuple[Any, dict[str, tuple[float, float]]]:
    """The values, and for each leaf the slope by all of it at once: as JAX has it, and by a central difference. All of
    it is one sweep, in float64."""
    h = 1e-7
    ways = [
        jax.tree.map(lambda x, pick=pick: x if x is pick(model) else jnp.zeros_like(x), model)
        for pick in leaves.values()
    ]
    steps = [jax.tree.map(lambda x, y, by=by: x + by * y, model, way) for way in ways for by in (-h, h)]
    many = jax.tree.map(lambda *x: jnp.stack(x), model, *steps)
    sweep = jax.vmap(jax.value_and_grad(value, argnums=1), (None, 0))
    values, found = jax.jit(sweep, compiler_options={"xla_backend_optimization_level": 0})(problem, many)
    got = [float((pick(found)[0] * pick(model)).sum()) for pick in leaves.values()]
    want = [float(up - down) / (2 * h) for down, up in zip(values[1::2], values[2::2], strict=True)]
    return values, dict(zip(leaves, zip(got, want, strict=True), strict=True))
