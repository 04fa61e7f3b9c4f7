"""The protocols of a transport and of a balancer: what the engine tells them and what they answer.

A law is any frozen dataclass that is a registered pytree and has the three methods; nothing is registered with fabsim.
Inside, bytes are in units of what the fastest NIC sends in one step (`Sender.unit` bytes), and time is in steps of
`Sender.dt` seconds.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Protocol, TypeVar

import jax
import jax.numpy as jnp

from fabsim.typing import Array

S = TypeVar("S")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sender:
    """What a sender knows before it sends. Shapes [F] unless said otherwise.

    Attributes:
        unit: scalar, bytes in one unit.
        dt: scalar, seconds in one step.
        rate: units per step that its NIC port can send.
        rtt: steps of its own unloaded round trip.
        packet: units of its largest packet.
        credit: units that are released and not sent.
        in_flight: units sent, of which the sender has heard nothing yet.
        dice: uint32, a number of its own for each flow, from the seed of the run; for laws with chance in them.
        fair: [F] units per step of its max-min fair share now; None unless the law asks for it (`needs_fair`).
        out: [F, P] links out of the sender, for a law that knows what else its port sends.
        into: [F, P] links into the receiver, for a law that acts at receivers.
        capacity: [L + 1] units per step of all links.
    """

    unit: Array
    dt: Array
    rate: Array
    rtt: Array
    packet: Array
    credit: Array
    in_flight: Array
    dice: Array
    fair: Array | None = None
    out: Array | None = None
    into: Array | None = None
    capacity: Array | None = None

    @property
    def base(self) -> Array:
        """[F] steps of the round trip of a full packet without queues."""
        return self.rtt + self.packet / self.rate

    def product(self, rate: Array, seconds: Array) -> Array:
        """[F] units of a bandwidth-delay product: B/s times s."""
        return rate * seconds / self.unit + jnp.zeros_like(self.rtt)

    def paced(self, window: Array, seconds: Array) -> Array:
        """[F] units that a window leaves free, at no more than a window in so many seconds."""
        return jnp.minimum(jnp.maximum(window - self.in_flight, 0.0), window * self.dt / seconds)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Telemetry:
    """What switches wrote into the packets that are acknowledged now (in-band telemetry): N switch ports on a path.

    It is as old as the way from that port to the receiver and back, with empty queues. A hop that a path does not have
    reads zero, with a capacity beyond all others.

    Attributes:
        queue: [N, F, K] units waiting.
        grown: [N, F, K] units by which that grew in the step.
        sent: [N, F, K] units of data that left in the step.
        capacity: [N, F, K] units per step.
        share: [F, K] of the flow's bytes on each path.
    """

    queue: Array
    grown: Array
    sent: Array
    capacity: Array
    share: Array

    def worst(self, by_port: Array) -> Array:
        """[N, F, K] -> [F]: the largest on each path, and the mean over paths by bytes: what the packets of a flow say
        on average."""
        return (by_port.max(0) * self.share).sum(-1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Feedback:
    """What came back to the sender in this step. Shapes [F].

    Attributes:
        acked: units acknowledged.
        nacked: units reported as trimmed, or missed after a timeout; they will be sent again.
        marked: units of the acknowledged that carried a congestion mark; zero unless the law has `signals`.
        delay: steps that the acknowledged bytes waited in queues, on average, as they met them when they queued;
            zero where nothing was acknowledged, or unless the law has `signals`.
        path: what the switches wrote; None unless the law has `telemetry`.
        marked_delay: the same as `delay`, of the marked bytes alone; None unless the law tells them `apart` and its
            flows have several paths: on one, all bytes of a moment have waited alike.
    """

    acked: Array
    nacked: Array
    marked: Array
    delay: Array
    path: Telemetry | None = None
    marked_delay: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Found:
    """What a sender finds out about its paths by itself, with nobody to tell it of links.

    Attributes:
        through: [F, K] share of probes on this path that come back.
        ports: [F, P] 1 where the ports of both ends were up the law's `remap` ago, else 0.
    """

    through: Array
    ports: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PathFeedback:
    """What came back to the sender in this step, by path. Shapes [F, K].

    Attributes:
        acked: units acknowledged.
        marked: units of these that carried a congestion mark, wherever it was set.
        trimmed: units reported as trimmed; for a law that `finds`, before the last hop.
        lost: units that it misses now: lost in silence on this path, and sent again from now on; None unless the law
            `misses`, and where nothing can be lost in silence.
        found: what else it finds out; None unless the law `finds`.
        even: the split of all flows that leaves the busiest links as idle as they can be; None unless the law `evens`.
    """

    acked: Array
    marked: Array
    trimmed: Array
    lost: Array | None = None
    found: Found | None = None
    even: Array | None = None


class Transport(Protocol[S]):
    """A congestion-control law.

    `signals` says whether it reads marks and delays (the engine then carries them with the bytes); `needs_fair`
    whether it wants to be told its max-min fair rate (an ideal law); `telemetry` whether it reads the queues and loads
    of its path (the engine then remembers those of all links). What no law asks for costs nothing.
    One with `signals` that has `apart = True` is told, too, how long marked bytes waited, where paths are several.
    One that looks at the flows of other senders by itself has `alone = True`: it cannot be spread over devices.
    """

    signals: ClassVar[bool]
    needs_fair: ClassVar[bool]
    telemetry: ClassVar[bool]

    def init(self, sender: Sender) -> S:
        """The law's state before the first step: arrays with a leading axis of flows, or any pytree."""
        ...

    def offer(self, state: S, sender: Sender) -> Array:
        """[F] units that each flow may send in this step, beyond what is in flight (its room)."""
        ...

    def step(self, state: S, feedback: Feedback, sender: Sender) -> S:
        """The state after what came back in this step."""
        ...


class Balancer(Protocol[S]):
    """A law that splits a flow over its paths by what came back from each.

    `base` [F, K] is the split of the routing: what a flow begins with, and what is drawn where nothing is known. A path
    on which it is zero is never used. Delays are those of `base`, as the transport's are.

    A law with `misses = True` (others need not say) is told by which path it lost what it misses after a timeout: it
    knows where it sent what nobody acknowledged. To its flows a dead link is one that loses all.
    A law with `finds = True` is a `Finder`, which `misses`, too.
    A law with `evens = True` (others need not say) is told the ideal split: it knows everything.
    """

    def init(self, base: Array, sender: Sender) -> S:
        """The law's state before the first step: arrays with a leading axis of flows, or any pytree."""
        ...

    def split(self, state: S, base: Array) -> Array:
        """[F, K] shares of what each flow sends in this step; rows sum to 1. `base` is here over the paths that are
        alive, as far as senders know."""
        ...

    def step(self, state: S, feedback: PathFeedback, base: Array, sender: Sender) -> S:
        """The state after what came back in this step."""
        ...


class Finder(Balancer[S], Protocol[S]):
    """A balancer that finds out about links by itself, from its own losses, probes and ports: it is told what it
    `Found`, and nobody redirects its flows when links die.

    `remap` is the time in s from a port's going down, or up, until the law is told.
    """

    misses: ClassVar[bool]
    finds: ClassVar[bool]
    remap: Array
