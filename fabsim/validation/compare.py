"""One case: run it in the fluid model and hold its completions against the packets'."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields

import numpy as np

from fabsim.engine.problem import build
from fabsim.engine.run import run
from fabsim.errors import Stopped
from fabsim.results import duration
from fabsim.routing import Routes
from fabsim.typing import Bool, Float
from fabsim.validation.acks import knows
from fabsim.validation.case import SEEDS, Case
from fabsim.validation.family import family, network
from fabsim.validation.model import model_of

QUANTILES = 0.01, 0.5, 0.99
"""Of the completion times that are compared."""

PATIENCE = 3.0, 1e-3
"""A run is given up after so many times the packets' last completion, and so many seconds."""


@dataclass(frozen=True)
class Row:
    """One line of the packet table; NaN where the case cannot be run. Errors are fractions.

    Completion times are from a flow's own start to its last byte at the receiver.

    Attributes:
        family: of cases that have law, traffic, kind of balancer and state of the fabric in common.
        network: what cases that differ in the balancer alone have in common.
        kind: "paths" (errors flow by flow) or "drawn" (sorted completions). Fluid figures are medians over
            seeds, of the drawn sprays and of a law's chance.
        packet_last_us, fluid_last_us: the last byte of all, from the first start: a collective waits for it.
        p1_error, p50_error, p99_error: of these quantiles of the completions, fluid over packet less one.
        err_median, err_p90: of |fluid / packet - 1|.
        null_p90: p90 of the error of predicting the packets' median completion for every flow.
        spread_ratio: fluid over packet of (max - min) / mean.
        drops: packets that were trimmed in the fluid model.
        wall_s, packet_cpu_s: seconds of this row (compilation and all its seeds), CPU seconds of the packet simulator.
        note: what could not be done, or what to know.
    """

    case: str
    family: str
    network: str
    flows: int
    kind: str
    packet_mean_us: float
    fluid_mean_us: float
    packet_p99_us: float
    fluid_p99_us: float
    packet_max_us: float
    fluid_max_us: float
    packet_last_us: float
    fluid_last_us: float
    p1_error: float
    p50_error: float
    p99_error: float
    err_median: float
    err_p90: float
    null_p90: float
    spread_ratio: float
    drops: float
    wall_s: float
    packet_cpu_s: float
    note: str


COLUMNS = tuple(field.name for field in fields(Row))


@dataclass(frozen=True)
class Fluid:
    """One run of the fluid model.

    Attributes:
        took: [F] us from start to the last byte at the receiver.
        last: us, the last completion from time zero.
        trimmed: packets.
    """

    took: Float
    last: float
    trimmed: float


def compare(case: Case) -> Row:
    """The row of a case. What the model cannot do becomes a row with the reason in its note."""
    reason = case.cannot()
    if reason:
        return undone(case, reason)
    began = time.perf_counter()
    kind, choices = case.routes()
    try:
        runs = [fluid(case, routes, seed) for routes, seed in zip(draws(case, choices), SEEDS, strict=False)]
    except Stopped as stopped:
        return undone(case, f"stopped: {stopped}")
    wall = time.perf_counter() - began
    packets = case.measured.duration * 1e6
    found = [one.took for one in runs]
    if kind == "drawn":
        packets, found = np.sort(packets), [np.sort(took) for took in found]
    error = np.abs(np.median(np.stack(found), 0) / packets - 1)
    null = np.quantile(np.abs(np.median(packets) / packets - 1), 0.9)
    levels = np.quantile(packets, QUANTILES)
    fluid_levels = np.median([np.quantile(took, QUANTILES) for took in found], 0)
    p1, p50, p99 = (fluid_levels / levels - 1).tolist()
    failed = kind == "paths" and len(packets) > 1 and np.quantile(error, 0.9) >= null
    return Row(
        case=case.name,
        family=family(case),
        network=network(case),
        flows=len(packets),
        kind=kind,
        packet_mean_us=float(packets.mean()),
        fluid_mean_us=float(np.median([took.mean() for took in found])),
        packet_p99_us=float(levels[-1]),
        fluid_p99_us=float(fluid_levels[-1]),
        packet_max_us=float(packets.max()),
        fluid_max_us=float(np.median([took.max() for took in found])),
        packet_last_us=float(case.measured.finish.max() - case.measured.start.min()) * 1e6,
        fluid_last_us=float(np.median([one.last for one in runs]) - case.measured.start.min() * 1e6),
        p1_error=p1,
        p50_error=p50,
        p99_error=p99,
        err_median=float(np.median(error)),
        err_p90=float(np.quantile(error, 0.9)),
        null_p90=float(null),
        spread_ratio=float(np.median([spread(took) for took in found]) / (spread(packets) or math.nan)),
        drops=float(np.median([one.trimmed for one in runs])),
        wall_s=wall,
        packet_cpu_s=number(case.row.get("user_s", "")),
        note="; ".join(remarks(case, runs, bool(failed))),
    )


def draws(case: Case, choices: list[Routes]) -> list[Routes]:
    """A routing for each seed, where the routing or the law draws; else the one there is. Receiver credit draws what
    else a sender's port sends."""
    control, src = case.options.congestion_control, case.flows.src
    chance = control == "nscc" or (control == "rccc" and len(set(src)) < len(src))
    return choices * len(SEEDS) if len(choices) == 1 and chance else choices


def remarks(case: Case, runs: list[Fluid], failed: bool) -> list[str]:
    """What a reader of the row should know."""
    said = ["failed: no better than the median for all"] if failed else []
    said += [case.remark()] if case.remark() else []
    near = same_leaf(case)
    if len(set(case.flows.dst)) == 1 and 0 < near.sum() < len(near):
        took, packets = np.median(np.stack([one.took for one in runs]), 0), case.measured.duration * 1e6
        parts = ((f"{of.sum()} {name}", took[of].mean(), packets[of].mean()) for name, of in groups(near))
        said.append("; ".join(f"{name}: mean {ours:.1f} us, packets {theirs:.1f}" for name, ours, theirs in parts))
    if len(set(case.measured.start)) > 1:
        last, packets = np.median([one.last for one in runs]), case.measured.finish.max() * 1e6
        said.append(f"starts differ: last byte of all at {last:.2f} us, packets {packets:.2f}")
    return said


def same_leaf(case: Case) -> Bool:
    """[F] whether a flow stays below one leaf."""
    up = np.flatnonzero(case.fabric.src < case.fabric.hosts)
    leaf = np.zeros(case.fabric.hosts, int)
    leaf[case.fabric.src[up]] = case.fabric.dst[up]
    return leaf[case.flows.src] == leaf[case.flows.dst]


def groups(near: Bool) -> tuple[tuple[str, Bool], tuple[str, Bool]]:
    """Senders below the receiver's own leaf, and the others."""
    return ("below the receiver's leaf", near), ("remote", ~near)


def fluid(case: Case, routes: Routes, seed: int) -> Fluid:
    """A run with the packet simulator's own defaults."""
    problem = build(case.fabric, case.flows, routes, packet=case.packet, seed=seed)
    model = model_of(case, routes)
    horizon = PATIENCE[0] * float(case.measured.finish.max()) + PATIENCE[1]
    at_sender = case.measured.at_sender
    made = run(problem, model, every=1 if at_sender else 10, horizon=horizon, progress=False)
    done = made.trace
    completion = knows(case, done, made.dt) if at_sender else np.asarray(done.completion, float)
    took = duration(np.asarray(done.start, float), completion)
    return Fluid(
        took * 1e6, float(completion.max()) * 1e6, float(done.frames.dropped.sum(dtype=float)) / case.packet.mtu
    )


def spread(completion: Float) -> float:
    """(max - min) / mean."""
    return float((completion.max() - completion.min()) / completion.mean())


def undone(case: Case, reason: str) -> Row:
    """A row without figures."""
    words = "case", "family", "network", "flows", "kind", "note"
    figures = {name: math.nan for name in COLUMNS if name not in words}
    figures["packet_cpu_s"] = number(case.row.get("user_s", ""))
    flows = number(case.row.get("flows", ""))
    return Row(
        case=case.name,
        family="",
        network="",
        flows=0 if math.isnan(flows) else int(flows),
        kind="",
        note=reason,
        **figures,
    )


def number(text: str) -> float:
    """A number that a table may leave out: NaN then."""
    try:
        return float(text)
    except ValueError:
        return math.nan
