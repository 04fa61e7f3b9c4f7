"""One case: run it in the fluid model and hold its completions against the packets'."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields

import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import Packet, build
from fabsim.engine.run import run
from fabsim.errors import Stopped
from fabsim.models.model import Links, Model, Split
from fabsim.models.queue import TrimQueue
from fabsim.models.window import Window
from fabsim.routing import Routes
from fabsim.topology.baseline import baseline, default_queues
from fabsim.typing import Float
from fabsim.validation.case import Case

WINDOW = 1.5
"""First and largest window of the packet simulator, in bandwidth-delay products of the longest path."""


@dataclass(frozen=True)
class Row:
    """One line of the packet table; NaN where the case cannot be run. Errors are fractions.

    Attributes:
        kind: "paths" (errors flow by flow) or "drawn" (sorted completions; fluid figures are medians over seeds).
        err_median, err_p90: of |fluid / packet - 1|.
        null_p90: p90 of the error of predicting the packets' median completion for every flow.
        spread_ratio: fluid over packet of (max - min) / mean.
        drops: packets that were trimmed in the fluid model.
        wall_s, packet_cpu_s: seconds of this run (compilation included), CPU seconds of the packet simulator.
        note: what could not be done, or what to know.
    """

    case: str
    flows: int
    kind: str
    packet_mean_us: float
    fluid_mean_us: float
    packet_p99_us: float
    fluid_p99_us: float
    packet_max_us: float
    fluid_max_us: float
    err_median: float
    err_p90: float
    null_p90: float
    spread_ratio: float
    drops: float
    wall_s: float
    packet_cpu_s: float
    note: str


COLUMNS = tuple(field.name for field in fields(Row))


def compare(case: Case) -> Row:
    """The row of a case. What the model cannot do becomes a row with the reason in its note."""
    reason = case.cannot()
    if reason:
        return _undone(case, reason)
    began = time.perf_counter()
    kind, choices = case.routes()
    try:
        runs = [_fluid(case, routes) for routes in choices]
    except Stopped as stopped:
        return _undone(case, str(stopped))
    wall = time.perf_counter() - began
    measured = case.measured * 1e6
    fluid = [completion * 1e6 for completion, _ in runs]
    if kind == "drawn":
        measured = np.sort(measured)
        fluid = [np.sort(completion) for completion in fluid]
    error = np.abs(np.median(np.stack(fluid), 0) / measured - 1)
    null = np.quantile(np.abs(np.median(measured) / measured - 1), 0.9)
    failed = kind == "paths" and len(measured) > 1 and np.quantile(error, 0.9) >= null

    def median(of: np.ufunc | None = None, share: float | None = None) -> float:
        return float(np.median([np.quantile(x, share) if share is not None else np.mean(x) for x in fluid]))

    return Row(
        case=case.name,
        flows=len(measured),
        kind=kind,
        packet_mean_us=float(measured.mean()),
        fluid_mean_us=median(),
        packet_p99_us=float(np.quantile(measured, 0.99)),
        fluid_p99_us=median(share=0.99),
        packet_max_us=float(measured.max()),
        fluid_max_us=median(share=1.0),
        err_median=float(np.median(error)),
        err_p90=float(np.quantile(error, 0.9)),
        null_p90=float(null),
        spread_ratio=float(np.median([_spread(x) for x in fluid]) / _spread(measured)) if len(measured) > 1 else np.nan,
        drops=float(np.median([drops for _, drops in runs])),
        wall_s=wall,
        packet_cpu_s=float(case.row.get("user_s") or "nan"),
        note=("failed: no better than the median for all; " if failed else "") + case.remark(),
    )


def _fluid(case: Case, routes: Routes) -> tuple[Float, float]:
    """[F] seconds at the receiver, and trimmed packets, of one fluid run with the simulator's own defaults."""
    packet = Packet(mtu=case.mtu)
    base = baseline(case.fabric, packet.mtu, packet.header)
    queues = default_queues(case.fabric, base.bdp, packet.mtu)
    problem = build(case.fabric, case.matrix.flows, routes, packet=packet)
    model = Model(
        Links(jnp.asarray(case.fabric.capacity, "float32"), jnp.asarray(case.fabric.latency, "float32")),
        TrimQueue(*(jnp.asarray(x, "float32") for x in (queues.buffer, queues.ecn_low, queues.ecn_high))),
        Window(jnp.asarray(WINDOW * base.bdp, "float32")),
        Split(jnp.asarray(routes.weight, "float32")),
    )
    done = run(problem, model, horizon=case.horizon, progress=False)
    return done.trace.completion.astype(float), float(done.trace.frames.dropped.sum(dtype=float)) / packet.mtu


def _spread(completion: Float) -> float:
    """(max - min) / mean."""
    return float((completion.max() - completion.min()) / completion.mean())


def _undone(case: Case, reason: str) -> Row:
    """A row without figures."""
    nan = float("nan")
    figures = {name: nan for name in COLUMNS if name not in ("case", "flows", "kind", "note")}
    flows = int(case.row.get("flows") or 0)
    figures["packet_cpu_s"] = float(case.row.get("user_s") or "nan")
    return Row(case=case.name, flows=flows, kind="", note=reason, **figures)
