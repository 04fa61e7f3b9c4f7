"""From SI to the engine's own units: bytes in what the fastest NIC sends in a step, time in steps."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp

from fabsim.engine.across import total
from fabsim.engine.crossing import Stretch, stretch
from fabsim.engine.faults import Faults
from fabsim.engine.luck import few
from fabsim.engine.problem import STATIC, Problem, by_port
from fabsim.errors import InputError
from fabsim.models.chance import exponential
from fabsim.models.classes import Classes, each
from fabsim.models.model import Model
from fabsim.models.pfc import PfcQueue
from fabsim.models.protocol import Balancer, Finder, Transport
from fabsim.models.queue import TIE, TrimQueue
from fabsim.models.recovery import Recovery
from fabsim.typing import Array
from fabsim_kernels.load import load

LATER = 1e9
"""Steps that stand for "not yet known": finite, so that no gradient meets an infinity."""

LAYERS = 4
"""Of a port, by age: with 2, half of what the order of bytes does to a permutation over pauses is there; with 8, no
more than with 4 of its mean, and a third of the error in its last completion."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Setup:
    """Constants of a run. Shapes: F flows, K lanes, L links (entry L: no link), H fabric hops; units and steps. With
    classes of traffic, L counts queues, as in Problem.

    Attributes:
        problem: the arrays as built.
        transport: the law, as given (it scales itself by the sender's unit).
        queue: the ports with their sizes in units, [L + 1].
        capacity: [L + 1] units per step.
        rate: [F, P] units per step of the sender's ports, a hair below their links (see TIE); 0 where none is used.
        share: [F, K] split.
        plane: [F, P] share of the lanes of each plane.
        within: [F, K] split of what leaves by a port over the lanes of its plane.
        used: [F, K] whether a lane carries anything.
        ages: [F, K] what is drawn of how early the last packet of each lane goes (see tags); None with a single lane.
        beyond: [F, K] steps of latency beyond the pipeline's one per link and beyond those on long wires.
        beyond_mean: [F] the same, averaged over the split.
        back: [F] steps from the receiver's last byte to the sender's knowing.
        round_trip: [F] steps from sending a byte to its acknowledgement, with empty queues.
        size, head, grain, packet: [F] units.
        few: [F] units, of which none is still missing: see fabsim.engine.luck.
        header: [F] header bytes per byte trimmed.
        header_mean: scalar, the same for a full packet.
        per_ack: scalar, full packets to an acknowledgement while nothing is marked; None: each has its own.
        start: [F] steps.
        loss: [L + 1] share of what leaves that is lost on the link; None where no link loses anything.
        recovery: from silent losses, with times in steps; None where there are none.
        balancer: what moves the split from step to step (see `steer`); None where it stays.
        faults: the schedule, with times in steps; None where nothing happens on the way.
        random: [L + 1] how irregularly packets come to each port, 0 (paced) to 1; None unless the ports ask.
        classes: how the queues of a port share it; None where each has one.
        wires: delays on long wires; None where there are none.
        side_by_side: whether many members make the step together on a CPU: there a branch that is seldom taken pays;
            in a single run it costs more than what is in it.
    """

    problem: Problem
    transport: Transport[Any]
    queue: TrimQueue
    capacity: Array
    rate: Array
    share: Array
    plane: Array
    within: Array
    used: Array
    ages: Array | None
    beyond: Array
    beyond_mean: Array
    back: Array
    round_trip: Array
    size: Array
    head: Array
    grain: Array
    packet: Array
    few: Array
    header: Array
    header_mean: Array
    per_ack: Array | None
    start: Array
    loss: Array | None
    recovery: Recovery | None
    balancer: Balancer[Any] | None
    faults: Faults | None
    random: Array | None
    classes: Classes | None
    wires: Stretch | None
    side_by_side: bool = dataclasses.field(default=False, metadata=STATIC)

    @property
    def near_back(self) -> Array:
        """[F] steps of the way back, without those on long wires."""
        return self.back if self.wires is None else self.back - self.wires.home

    @property
    def signals(self) -> bool:
        """Whether anybody reads marks and delays, so that they are carried with the bytes."""
        return self.transport.signals or self.balancer is not None

    @property
    def apart(self) -> bool:
        """Whether the law is told how long marked bytes waited, where that may be another time than others did."""
        return self.transport.signals and getattr(self.transport, "apart", False) and self.share.shape[-1] > 1

    @property
    def layers(self) -> int:
        """How many layers by age a port has (see fabsim.engine.layers). Where flows have a path each, or links are
        paused, bytes come in batches, and their order counts; a spray brings some of all at any time."""
        return LAYERS if self.queue.pauses or self.share.shape[-1] == 1 else 1

    @property
    def in_order(self) -> bool:
        """Whether holes are followed through the fabric (see fabsim.engine.holes): where receivers take bytes in order
        only, and ports or links lose some. What a port that pauses has no headroom for is missed alone."""
        lossy = self.loss is not None or (self.faults is not None and (self.faults.loss is not None or self.misses))
        return self.recovery is not None and self.recovery.ordered and (lossy or not self.queue.pauses)

    @property
    def evens(self) -> bool:
        """Whether the balancer is told the ideal split; laws need not say that they are not."""
        return getattr(self.balancer, "evens", False)

    @property
    def misses(self) -> bool:
        """Whether senders learn by which path they lost what they miss; a dead link loses all of theirs, then."""
        return misses(self.balancer)

    @property
    def finds(self) -> bool:
        """Whether senders find out about links by themselves; nobody tells them, then."""
        return finds(self.balancer)


def misses(balancer: Balancer[Any] | None) -> bool:
    """Whether a balancer learns by which path it lost what it misses; laws need not say that they do not."""
    return getattr(balancer, "misses", False)


def finds(balancer: Balancer[Any] | None) -> TypeGuard[Finder[Any]]:
    """Whether a balancer finds out about links by itself; laws need not say that they do not."""
    return getattr(balancer, "finds", False)


def per_ack(problem: Problem, transport: Transport[Any]) -> Array | None:
    """Full packets to an acknowledgement; laws need not say that theirs are coalesced."""
    coalesced = getattr(transport, "coalesced", None)
    if coalesced is None:
        return None
    return jnp.maximum(jnp.ceil(jnp.mean(jnp.asarray(coalesced)) / problem.mtu - 1e-3), 1.0)


def irregular(problem: Problem, share: Array) -> Array:
    """[L + 1] how much at random packets meet each port, by the routing's split [F, K]: of flows that have shares w of
    what they send there, 1 - sum of w^2 / (sum of w)^2, since no two packets of one flow come at once. At a receiver's
    port all of a flow arrives."""
    comes = jnp.broadcast_to(share, problem.same.shape)
    both = jnp.stack([comes, comes * share_of_link(problem, share)], 2)
    last = jnp.zeros((*problem.at.last.shape, 2), share.dtype).swapaxes(1, 2)
    one, two = jnp.moveaxis(total(problem, load(problem.at, both, last, problem.queues)), 1, 0)
    some = one > 0
    return jnp.where(some, 1.0 - jnp.minimum(two / jnp.where(some, one * one, 1.0), 1.0), 0.0)


def share_of_link(problem: Problem, share: Array) -> Array:
    """[H, F, K] the share of a flow that takes the link of each lane at each hop, by whichever lanes."""
    hops, flows, lanes = problem.same.shape
    hop, flow = jnp.arange(hops)[:, None, None], jnp.arange(flows)[:, None]
    whole = jnp.zeros((hops, flows, lanes), share.dtype).at[hop, flow, problem.same].add(share)
    return jnp.minimum(whole[hop, flow, problem.same], 1.0)


def refuse_wider(problem: Problem, model: Model[Any]) -> None:
    """Raises InputError for numbers that are wider than the problem's: one would make others wide, and no loop may
    change the type of what it carries. Looks at types only, while a program is built."""
    for path, leaf in jax.tree_util.tree_leaves_with_path({"problem": problem, "model": model}):
        floating = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        if floating and jnp.result_type(leaf, problem.dt) != problem.dt.dtype:
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            text = f"{leaf.dtype}, and the problem is {problem.dt.dtype}"
            raise InputError(f'{name}: is {text}; .astype("{problem.dt.dtype}"), or a wider problem, would do')


def prepare(problem: Problem, model: Model[Any], side_by_side: bool = False) -> Setup:
    """Scale, pad and derive; differentiable in every field of the model. Raises InputError for silent losses that no
    recovery answers, for another number of classes than that of the problem, and for wider numbers than its own."""
    refuse_wider(problem, model)
    losing = problem.faults is not None and (problem.faults.loss is not None or misses(model.balancer))
    silent = not model.queue.trims or model.links.loss is not None or losing
    if silent and model.recovery is None:
        raise InputError("what links or ports lose in silence comes back by a recovery; the model has none")
    have = 1 if model.classes is None else model.classes.count
    if have != problem.classes:
        raise InputError(f"the problem is built for {problem.classes} classes of traffic, the model has {have}")
    p, dt = problem, problem.dt
    speed = each(model.links.capacity, p.classes)
    capacity = jnp.append(speed, LATER * p.unit / dt)
    alive = speed > 0  # a dead link is on no path, and must not spoil a gradient
    slowness = jnp.append(jnp.where(alive, 1.0 / jnp.where(alive, speed, 1.0), 0.0), 0.0)
    wire = jnp.append(each(model.links.latency, p.classes), 0.0)
    share = model.split.weight
    plane, within = by_port(p, share)
    nic = jnp.repeat(p.port_link, share.shape[-1] // p.planes, -1)
    latency, slow = wire[p.route].sum(0) + wire[nic], slowness[p.route].sum(0)
    # One packet is stored and forwarded at each link but the slowest, where the bytes pace themselves.
    forward = slow + slowness[nic] - jnp.maximum(slowness[p.route].max(0), slowness[nic])
    beyond = (latency + p.packet[:, None] * forward) / dt - (p.hops - 1)
    back = (latency + p.ack * (slow + slowness[nic])) / dt
    beyond_mean, back = (share * beyond).sum(-1), (share * back).sum(-1)
    round_trip = (share * (p.hops - 1)).sum(-1) + beyond_mean + back
    wires = stretch(p, wire / dt, share, beyond)
    if wires is not None:
        beyond = beyond - wires.ahead.sum(0)
        beyond_mean = (share * beyond).sum(-1)
    rate = capacity[p.port_link] * dt / p.unit * (1.0 - 0.5 * TIE)
    queue = model.queue.inside(p.unit, dt, LATER)
    if isinstance(queue, PfcQueue):  # hosts take what comes
        hosts = total(p, jnp.zeros_like(capacity).at[p.at.last].add(1.0)) > 0
        queue = replace(queue, headroom=jnp.where(hosts, LATER, queue.headroom))
    return Setup(
        problem=p,
        transport=model.transport,
        queue=queue,
        capacity=jnp.maximum(capacity * dt / p.unit, 1.0 / LATER),  # a dead link's is divided by, too
        rate=jnp.where(plane > 0, rate, 0.0),
        share=share,
        plane=plane,
        within=within,
        used=share > 0,
        ages=exponential(p.dice, share.shape[-1], share.dtype) if share.shape[-1] > 1 else None,
        beyond=beyond,
        beyond_mean=beyond_mean,
        back=back,
        round_trip=round_trip,
        size=p.size / p.unit,
        head=p.head / p.unit,
        grain=p.grain / p.unit,
        packet=p.packet / p.unit,
        few=few(p, model, share.dtype) / p.unit,
        header=p.ack / jnp.maximum(p.packet, p.ack),  # an empty flow has no packet
        header_mean=p.ack / p.mtu,
        per_ack=per_ack(p, model.transport),
        start=p.start / dt,
        loss=None if model.links.loss is None else jnp.append(each(model.links.loss, p.classes), 0.0),
        recovery=None if model.recovery is None else model.recovery.inside(dt),
        balancer=model.balancer,
        faults=None if p.faults is None else p.faults.inside(dt, p.classes),
        random=irregular(p, share) if model.queue.granular else None,
        classes=model.classes and model.classes.inside(p.unit, dt, LATER),
        wires=wires,
        side_by_side=side_by_side,
    )


def steer(s: Setup, share: Array) -> Setup:
    """The constants of a step in which flows are split by `share` [F, K].

    Delays, and the ports in use, stay those of the routing's split. A port whose lanes have no share at all sends
    nothing.
    """
    plane, within = by_port(s.problem, share)
    return replace(
        s,
        share=share,
        rate=jnp.where(plane > 0, s.rate, 0.0),
        plane=plane,
        within=within,
    )
