"""The model of a case: the packet simulator's own defaults, and what its options change."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from fabsim.models.bitmap import Bitmap
from fabsim.models.go_back import GoBackN
from fabsim.models.granular import ENDLESS, GranularQueue
from fabsim.models.model import Links, Model, Split
from fabsim.models.nscc import Nscc, nscc
from fabsim.models.pfc import PfcQueue
from fabsim.models.queue import TrimQueue
from fabsim.models.rccc import PACE, TURN, Rccc
from fabsim.models.rccc_oversubscribed import DEFAULTS, LEAST, RcccOversubscribed
from fabsim.models.recovery import Recovery
from fabsim.models.reps import Reps
from fabsim.models.reps_bitmap import RepsBitmap
from fabsim.models.window import Window
from fabsim.routing import Routes
from fabsim.topology.baseline import Baseline, Queues, baseline, default_queues, oversubscription
from fabsim.validation.case import Case

WINDOW = 1.5
"""First and largest window of the packet simulator, in bandwidth-delay products of the longest path."""

PENALTIES = {"mark": 1.0, "trim": 4.0}
"""Turns that a bad entropy value loses in the packet simulator."""

KEPT, ECHO = 8.0, 0.25
"""Good values that it keeps, and the part of clean packets that its acknowledgements name: one each 16 KiB."""

IN_ROUNDS, AT_RANDOM = ("oblivious", "bitmap", "mixed"), ("reps", "ecmp_ar")
"""Balancers that go through all of a flow's entropy values in an order that is drawn; those by which each packet goes
where chance, or the queues, will have it."""

UNBOUND = 1e12
"""Bytes: a window or a buffer that no flow here fills."""


def model_of(case: Case, routes: Routes) -> Model[Any]:
    """Buffers of 1 BDP and a window of 1.5, where the options say nothing else."""
    mtu = case.packet.mtu
    base = baseline(case.fabric, mtu, case.packet.header)
    queues = default_queues(case.fabric, base.bdp, mtu, buffer=case.options.real("q", 0) * mtu or None)
    return Model(
        Links(jnp.asarray(case.fabric.capacity, "float32"), jnp.asarray(case.fabric.latency, "float32")),
        ports(case, queues),
        transport(case, base),
        Split(jnp.asarray(routes.weight, "float32")),
        recovery(case, base),
        balancer(case),
    )


def ports(case: Case, queues: Queues) -> TrimQueue:
    """The queues, with thresholds of -ecn; they feel packets that come at random."""
    mtu, given = case.packet.mtu, case.options.ecn
    low, high = (queues.ecn_low, queues.ecn_high) if given is None else (x * mtu * case.fabric.speed for x in given)
    if case.options.congestion_control == "rccc":  # the receiver's port sets no marks: credit is the control there
        low, high = (np.where(case.fabric.dst < case.fabric.hosts, UNBOUND, x) for x in (low, high))
    buffer, low, high = (jnp.asarray(x, "float32") for x in (queues.buffer, low, high))
    if case.options.pauses is not None:
        fabric = case.fabric
        xon, xoff = (jnp.full(fabric.links, x * mtu, "float32") for x in case.options.pauses)
        delay = 2 * (fabric.latency + mtu / fabric.capacity)
        room = buffer - xoff  # -q is the room of an input; outputs there have no bound
        return PfcQueue(jnp.full_like(buffer, UNBOUND), low, high, xoff, xon, room, jnp.asarray(delay, "float32"))
    if case.options.balancer in (*IN_ROUNDS, *AT_RANDOM):
        rounds = ENDLESS if case.options.balancer in AT_RANDOM else case.options.entropies
        packet, turn = jnp.full(case.fabric.links, mtu, "float32"), jnp.asarray(rounds, "float32")
        return GranularQueue(buffer, low, high, packet, turn=turn)
    return TrimQueue(buffer, low, high)


def recovery(case: Case, base: Baseline) -> Recovery | None:
    """Of senders over pauses, which begin again at what was lost."""
    if case.options.congestion_control != "roce":
        return None
    return GoBackN(*(jnp.asarray(x, "float32") for x in (base.rtt, 1.0, 1.0)))


def balancer(case: Case) -> Reps | Bitmap | RepsBitmap | None:
    """The one at the sender, where it listens, with the simulator's penalties and its 8 values kept."""
    if not case.balances:
        return None
    keep = {"memory": jnp.asarray(KEPT, "float32"), "echo": jnp.asarray(ECHO, "float32")}
    penalties = {name: jnp.asarray(value, "float32") for name, value in PENALTIES.items()}
    turns = penalties | {"entropies": jnp.asarray(case.options.entropies, "float32")}
    if case.options.balancer == "reps":
        return Reps(**keep)
    return Bitmap(**turns) if case.options.balancer == "bitmap" else RepsBitmap(**turns, **keep)


def transport(case: Case, base: Baseline) -> Window | Nscc | Rccc | RcccOversubscribed:
    """The law with the simulator's defaults: a constant window of 1.5 BDP, NSCC, or RCCC; over pauses no window at
    all."""
    packet, options = case.packet, case.options
    if options.congestion_control == "roce":
        return Window(jnp.asarray(UNBOUND, "float32"))
    if options.congestion_control == "const":
        return Window(jnp.asarray(options.real("cwnd", 0) * packet.mtu or WINDOW * base.bdp, "float32"))
    if options.congestion_control == "rccc":
        return credit(case, base)
    changes = {}
    if "target_q_delay" in options.values:
        changes["target"] = options.real("target_q_delay", 0) * 1e-6
    if "qa_gate" in options.values:
        changes["gate"] = 0.5 ** options.whole("qa_gate", 3, least=0)
    if "enable_accurate_base_rtt" in options.values:
        changes["knows_rtt"] = 1.0
    return nscc(base.rtt, base.rate, packet.mtu - packet.header, **changes)


def credit(case: Case, base: Baseline) -> Rccc | RcccOversubscribed:
    """Of receivers; they heed congestion on the way where the fabric is oversubscribed."""
    plain = Rccc(*(jnp.asarray(x, "float32") for x in (WINDOW * base.bdp, PACE, TURN)))
    narrow = oversubscription(case.fabric)
    if narrow <= 1.0:
        return plain
    more = {"least": LEAST / narrow, "network_rtt": base.rtt} | DEFAULTS
    return RcccOversubscribed(**vars(plain), **{name: jnp.asarray(x, "float32") for name, x in more.items()})
