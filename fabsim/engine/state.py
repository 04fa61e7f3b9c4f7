"""What changes from step to step: a handful of wide arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from fabsim.engine import crossing, telemetry
from fabsim.engine.crossing import Lines
from fabsim.engine.layers import Layers, no_layers
from fabsim.engine.setup import LATER, Setup
from fabsim.models.pfc import PauseState, PfcQueue
from fabsim.models.protocol import Sender
from fabsim.models.queue import PortState
from fabsim.models.recovery import RecoveryState
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FlowState:
    """The senders. [F] where nothing else is said; units and steps. Differences are carried, never growing totals
    (float32).

    Attributes:
        credit: released and not sent (what was trimmed comes back here).
        held: not released yet (a follower waits for its leader).
        in_flight: sent, and nothing heard of it.
        lost: trimmed or gone, and the sender does not know yet; a flow ends when there is none.
        slip: what rounding has left of `lost` so far: much is lost on long wires, for many steps.
        until: units to send until the last byte of the current message is in.
        owed: whether a byte that completes the flow has still to be sent (again).
        start_in: steps until the flow starts; LATER while it waits for its trigger.
        begin: step at which it started; LATER before.
        completion: step at which the last byte was at the receiver; LATER before.
    """

    credit: Array
    held: Array
    in_flight: Array
    lost: Array
    slip: Array
    until: Array
    owed: Array
    start_in: Array
    begin: Array
    completion: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TagState:
    """The last byte of each message under way, hop by hop. T slots, F flows, K lanes.

    Attributes:
        due: [T, F, K] steps until it is at its next hop, or, once `hop` is H + 1, at the receiver.
        hop: [T, F, K] that hop: 0 to H - 1 in the fabric, H the down link, H + 1 the receiver.
        open: [T, F] whether the slot is in use.
        final: [T, F] whether it is the flow's very last byte.
        turn: [F] the slot of the next message.
    """

    due: Array
    hop: Array
    open: Array
    final: Array
    turn: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Fluid:
    """Bytes by subflow. Channels C: data, and, for laws that read signals, marked bytes and bytes times steps waited.
    Of what waits at ports that know its age each channel has N places, one for each layer (see layers).

    Attributes:
        fabric: [H, F, C, K].
        egress: [F, C, P] the same at the receiver's down links, where the lanes of a plane have met.
    """

    fabric: Array
    egress: Array

    def data(self, layers: int) -> Fluid:
        """The data alone, of so many layers together."""
        fabric, egress = self.fabric[:, :, :layers], self.egress[:, :layers]
        if layers == 1:
            return Fluid(fabric, egress)
        return Fluid(fabric.sum(2, keepdims=True), egress.sum(1, keepdims=True))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LastPorts:
    """The receivers' down links, where the lanes of a plane have met, by the lane that bytes came by. Units.

    Attributes:
        down: [F, N, K] what waits there, by layers.
        onto: [F, K] what comes there in the next step.
    """

    down: Array
    onto: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Paths:
    """What a balancer hears of each path: the receivers' down links again, lane by lane. Channels C as in Fluid.

    Attributes:
        waiting: [F, C, K] what waits there, each channel by layers.
        moving: [F, C, K] what comes there in the next step.
        ring: [D, 3 K, F] what reached the receivers by each lane in the last D steps: data, trimmed, marked.
        gone: [F, K, N] what was lost in silence on each lane and is not missed yet, in the lots of the recovery; None
            unless the balancer `misses` and something can be lost.
    """

    waiting: Array
    moving: Array
    ring: Array
    gone: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the fluid (see engine.holes). Units.

    Attributes:
        waiting: what stands at each hop, by layers.
        moving: what arrives in the next step. Channels: data, trimmed.
        line: [D, N, 2] what is on long wires; None where there are none.
    """

    waiting: Fluid
    moving: Fluid
    line: Array | None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """The scan carry.

    Attributes:
        step: int32 steps done.
        flow, tags, ports: see there.
        waiting: what stands at each hop. Channels: data (marked, waited), each by layers.
        moving: what arrives at each hop in the next step. Channels: data, trimmed (marked, waited).
        ring: [D, C, F] what reached the receivers in the last D steps. Channels: data, trimmed (marked, waited (and
            that of marked bytes, for a law that tells them apart)).
        links: [D, L + 1, 2] queue and data sent of each link in the last steps; None unless the law has `telemetry`.
        past: [L + 1] running mean of each queue, see tags.BEHIND; None where flows have a single lane.
        fired: [N] activations of each trigger.
        sent: [L + 1] data that left each link in the last step, and what of it had been trimmed before, for their
            acknowledgements; None where these are free.
        law: the transport's own state.
        flags: int32 bits, see engine.flags.
        recovery: what each sender will miss; None where nothing is lost in silence.
        layers: what stands at each port by age; None where ports are well mixed.
        pause: what the heads of links want; None where nobody pauses.
        last: what the receivers' down links hold by lane; None where nobody pauses.
        balance: the balancer's own state.
        paths: what it hears of; None without one.
        lines: what is on long wires; None where there are none.
        behind, ahead: what is behind a hole, and ahead of one; None unless receivers take bytes in order only.
    """

    step: Array
    flow: FlowState
    tags: TagState
    ports: PortState
    waiting: Fluid
    moving: Fluid
    ring: Array
    links: Array | None
    past: Array | None
    fired: Array
    sent: Array | None
    law: Any
    flags: Array
    recovery: RecoveryState | None
    layers: Layers | None
    pause: PauseState | None
    last: LastPorts | None
    balance: Any
    paths: Paths | None
    lines: Lines | None
    behind: Part | None
    ahead: Part | None


def initial(s: Setup) -> State:
    """An empty fabric at time zero."""
    p = s.problem
    hops, flows, lanes, planes = p.at.row.shape[0], p.flows, s.share.shape[-1], p.planes
    real = s.size.dtype
    channels = 3 if s.signals else 1
    stand = channels * s.layers
    zero = jnp.zeros(flows, real)
    later = jnp.full(flows, LATER, real)
    grained = s.grain > 0
    flow = FlowState(
        credit=zero,
        held=s.size,
        in_flight=zero,
        lost=zero,
        slip=zero,
        until=jnp.where(grained, jnp.minimum(s.grain, s.size), s.size),
        owed=jnp.ones(flows, bool),
        start_in=jnp.where(p.trigger == p.triggers, s.start, LATER),
        begin=later,
        completion=later,
    )
    tags = TagState(
        due=jnp.full((p.slots, flows, lanes), LATER, real),
        hop=jnp.full((p.slots, flows, lanes), hops + 1, jnp.int32),
        open=jnp.zeros((p.slots, flows), bool),
        final=jnp.zeros((p.slots, flows), bool),
        turn=jnp.zeros(flows, jnp.int32),
    )
    nobody = no_part(s) if s.in_order else None
    return State(
        step=jnp.zeros((), jnp.int32),
        flow=flow,
        tags=tags,
        ports=s.queue.init(s.capacity, s.classes),
        waiting=Fluid(jnp.zeros((hops, flows, stand, lanes), real), jnp.zeros((flows, stand, planes), real)),
        moving=Fluid(
            jnp.zeros((hops, flows, channels + 1, lanes), real), jnp.zeros((flows, channels + 1, planes), real)
        ),
        ring=jnp.zeros((p.heard, channels + 1 + s.apart, flows), real),
        links=telemetry.blank(s) if s.transport.telemetry else None,
        past=jnp.zeros_like(s.capacity) if s.share.shape[-1] > 1 else None,
        fired=jnp.zeros(p.triggers, jnp.int32),
        sent=None if p.reverse is None else jnp.zeros_like(s.capacity),
        law=s.transport.init(sender(s, flow)),
        flags=jnp.zeros((), jnp.int32),
        recovery=None if s.recovery is None else s.recovery.init(zero),
        layers=no_layers(s.capacity, s.layers),
        pause=s.queue.quiet(s.capacity, p.ring) if isinstance(s.queue, PfcQueue) else None,
        last=last_ports(s) if s.queue.pauses else None,
        balance=None if s.balancer is None else s.balancer.init(s.share, sender(s, flow)),
        paths=None if s.balancer is None else no_paths(s),
        lines=crossing.empty(s, channels + 1, channels + 1 + s.apart),
        behind=nobody,
        ahead=nobody,
    )


def no_part(s: Setup) -> Part:
    """Nothing of the fluid."""
    p, count, line = s.problem, s.layers, crossing.empty(s, 2, 1)
    (hops, flows), lanes, real = p.at.row.shape, s.share.shape[-1], s.size.dtype

    def blank(channels: int) -> Fluid:
        return Fluid(jnp.zeros((hops, flows, channels, lanes), real), jnp.zeros((flows, channels, p.planes), real))

    return Part(blank(count), blank(2), None if line is None else line.ahead)


def last_ports(s: Setup) -> LastPorts:
    """Down links with nothing there."""
    flows, lanes = s.share.shape
    return LastPorts(jnp.zeros((flows, s.layers, lanes), s.size.dtype), jnp.zeros_like(s.share))


def no_paths(s: Setup) -> Paths:
    """Paths with nothing on them."""
    flows, lanes = s.share.shape
    real = s.size.dtype
    return Paths(
        jnp.zeros((flows, 3 * s.layers, lanes), real),
        jnp.zeros((flows, 4, lanes), real),
        jnp.zeros((s.problem.heard, 3 * lanes, flows), real),
        jnp.zeros((flows, lanes, s.recovery.lots), real) if s.misses and s.recovery is not None else None,
    )


def sender(s: Setup, flow: FlowState, fair: Array | None = None) -> Sender:
    """What the law is told."""
    p = s.problem
    out, into, capacity = p.port_link, p.at.last, s.capacity
    if p.classes > 1:  # receivers know their links, not the queues of the switches there
        out, into, capacity = out % p.links, into % p.links, jnp.append(capacity[: p.links], capacity[-1])
    packet = jnp.where(s.packet > 0, s.packet, p.mtu / p.unit)  # an empty flow has none, and laws divide by it
    return Sender(
        unit=p.unit,
        dt=p.dt,
        rate=s.rate.sum(-1),
        rtt=s.round_trip,
        packet=packet,
        credit=flow.credit,
        in_flight=flow.in_flight,
        dice=p.dice,
        fair=fair,
        out=out,
        into=into,
        capacity=capacity,
    )
