"""Small problems for the tests of the engine."""

from __future__ import annotations

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
