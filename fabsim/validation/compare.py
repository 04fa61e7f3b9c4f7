"""One case: run it in the fluid model and hold its completions against the packets'."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields

import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import build
from fabsim.engine.run import run
from fabsim.errors import Stopped
from fabsim.models.granular import GranularQueue
from fabsim.models.model import Links, Model, Split
from fabsim.models.nscc import Nscc, nscc
from fabsim.models.pfc import PfcQueue
from fabsim.models.queue import TrimQueue
from fabsim.models.recovery import GoBackN, Recovery
from fabsim.models.window import Window
from fabsim.results import duration
from fabsim.routing import Routes
from fabsim.topology.baseline import Baseline, Queues, baseline, default_queues
from fabsim.typing import Bool, Float
from fabsim.validation.acks import knows
from fabsim.validation.case import AT_SWITCHES, Case

WINDOW = 1.5
"""First and largest window of the packet simulator, in bandwidth-delay products of the longest path."""

UNBOUND = 1e12
"""Bytes: a window or a buffer that no flow here fills."""

PATIENCE = 3.0, 1e-3
"""A run is given up after so many times the packets' last completion, and so many seconds."""


@dataclass(frozen=True)
class Row:
    """One line of the packet table; NaN where the case cannot be run. Errors are fractions.

    Completion times are from a flow's own start to its last byte at the receiver.

    Attributes:
        kind: "paths" (errors flow by flow) or "drawn" (sorted completions; fluid figures are medians over seeds).
        err_median, err_p90: of |fluid / packet - 1|.
        null_p90: p90 of the error of predicting the packets' median completion for every flow.
        spread_ratio: fluid over packet of (max - min) / mean.
        drops: packets that were trimmed in the fluid model.
        wall_s, packet_cpu_s: seconds of this row (compilation and all its seeds), CPU seconds of the packet simulator.
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
        runs = [fluid(case, routes) for routes in choices]
    except Stopped as stopped:
        return undone(case, f"stopped: {stopped}")
    wall = time.perf_counter() - began
    packets = case.measured.duration * 1e6
    found = [one.took for one in runs]
    if kind == "drawn":
        packets, found = np.sort(packets), [np.sort(took) for took in found]
    error = np.abs(np.median(np.stack(found), 0) / packets - 1)
    null = np.quantile(np.abs(np.median(packets) / packets - 1), 0.9)
    failed = kind == "paths" and len(packets) > 1 and np.quantile(error, 0.9) >= null
    return Row(
        case=case.name,
        flows=len(packets),
        kind=kind,
        packet_mean_us=float(packets.mean()),
        fluid_mean_us=float(np.median([took.mean() for took in found])),
        packet_p99_us=float(np.quantile(packets, 0.99)),
        fluid_p99_us=float(np.median([np.quantile(took, 0.99) for took in found])),
        packet_max_us=float(packets.max()),
        fluid_max_us=float(np.median([took.max() for took in found])),
        err_median=float(np.median(error)),
        err_p90=float(np.quantile(error, 0.9)),
        null_p90=float(null),
        spread_ratio=float(np.median([spread(took) for took in found]) / (spread(packets) or math.nan)),
        drops=float(np.median([one.trimmed for one in runs])),
        wall_s=wall,
        packet_cpu_s=number(case.row.get("user_s", "")),
        note="; ".join(remarks(case, runs, bool(failed))),
    )


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


def fluid(case: Case, routes: Routes) -> Fluid:
    """A run with the packet simulator's own defaults: buffers of 1 BDP, a window of 1.5."""
    packet, options = case.packet, case.options
    base = baseline(case.fabric, packet.mtu, packet.header)
    buffer = options.real("q", 0) * packet.mtu or None
    queues = default_queues(case.fabric, base.bdp, packet.mtu, buffer=buffer)
    problem = build(case.fabric, case.flows, routes, packet=packet)
    model = Model(
        Links(jnp.asarray(case.fabric.capacity, "float32"), jnp.asarray(case.fabric.latency, "float32")),
        ports(case, queues),
        transport(case, base),
        Split(jnp.asarray(routes.weight, "float32")),
        recovery(case, base),
    )
    horizon = PATIENCE[0] * float(case.measured.finish.max()) + PATIENCE[1]
    at_sender = case.measured.at_sender
    made = run(problem, model, every=1 if at_sender else 10, horizon=horizon, progress=False)
    done = made.trace
    completion = knows(case, done, made.dt) if at_sender else np.asarray(done.completion, float)
    took = duration(np.asarray(done.start, float), completion)
    return Fluid(took * 1e6, float(completion.max()) * 1e6, float(done.frames.dropped.sum(dtype=float)) / packet.mtu)


def ports(case: Case, queues: Queues) -> TrimQueue:
    """The queues, with thresholds of -ecn; they feel packets where the switches spread these."""
    mtu, given = case.packet.mtu, case.options.ecn
    low, high = (queues.ecn_low, queues.ecn_high) if given is None else (x * mtu * case.fabric.speed for x in given)
    buffer, low, high = (jnp.asarray(x, "float32") for x in (queues.buffer, low, high))
    if case.options.pauses is not None:
        fabric = case.fabric
        xon, xoff = (jnp.full(fabric.links, x * mtu, "float32") for x in case.options.pauses)
        delay = 2 * (fabric.latency + mtu / fabric.capacity)
        room = buffer - xoff  # -q is the room of an input; outputs there have no bound
        return PfcQueue(jnp.full_like(buffer, UNBOUND), low, high, xoff, xon, room, jnp.asarray(delay, "float32"))
    if case.options.balancer in AT_SWITCHES:
        return GranularQueue(buffer, low, high, jnp.full(case.fabric.links, mtu, "float32"))
    return TrimQueue(buffer, low, high)


def recovery(case: Case, base: Baseline) -> Recovery | None:
    """Of senders over pauses, which begin again at what was lost."""
    if case.options.congestion_control != "roce":
        return None
    return GoBackN(*(jnp.asarray(x, "float32") for x in (base.rtt, 1.0, 1.0)))


def transport(case: Case, base: Baseline) -> Window | Nscc:
    """The law with the simulator's defaults: a constant window of 1.5 BDP, or NSCC; over pauses no window at all."""
    packet, options = case.packet, case.options
    if options.congestion_control == "roce":
        return Window(jnp.asarray(UNBOUND, "float32"))
    if options.congestion_control == "const":
        return Window(jnp.asarray(options.real("cwnd", 0) * packet.mtu or WINDOW * base.bdp, "float32"))
    changes = {}
    if "target_q_delay" in options.values:
        changes["target"] = options.real("target_q_delay", 0) * 1e-6
    if "qa_gate" in options.values:
        changes["gate"] = 0.5 ** options.whole("qa_gate", 3, least=0)
    return nscc(base.rtt, base.rate, packet.mtu - packet.header, **changes)


def spread(completion: Float) -> float:
    """(max - min) / mean."""
    return float((completion.max() - completion.min()) / completion.mean())


def undone(case: Case, reason: str) -> Row:
    """A row without figures."""
    figures = {name: math.nan for name in COLUMNS if name not in ("case", "flows", "kind", "note")}
    figures["packet_cpu_s"] = number(case.row.get("user_s", ""))
    flows = number(case.row.get("flows", ""))
    return Row(case=case.name, flows=0 if math.isnan(flows) else int(flows), kind="", note=reason, **figures)


def number(text: str) -> float:
    """A number that a table may leave out: NaN then."""
    try:
        return float(text)
    except ValueError:
        return math.nan
