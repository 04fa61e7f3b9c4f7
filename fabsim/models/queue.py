"""The queue of an output port: finite buffer, marks on a ramp, and trimming of what does not fit."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from fabsim.models.classes import Classes
from fabsim.typing import Array

TIE = 1e-6
"""A port is saturated from this relative distance below its capacity. Equal links fed at line rate sit on a kink (load
equals capacity); treating them as saturated makes the derivative that of a *slower* link, and of several equal links in
a row the last one carries it."""

NOTHING = 1e-15
"""Units that are no bytes any more: what is left of a flow that has ended shrinks by a factor a step, and one over its
square is no number in the derivative of a share."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PortState:
    """What stands at each port, or, with several classes of traffic, in each of its queues. [L + 1], in units.

    Attributes:
        queue: data waiting.
        headers: headers of trimmed packets waiting (they have strict priority).
        trimmed: data cut here in the last step, whose headers leave in this one; zero where nothing is trimmed.
        shape, police: tokens of the buckets of its class; None without.
    """

    queue: Array
    headers: Array
    trimmed: Array
    shape: Array | None = None
    police: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Signal:
    """What a port does to the fluid that passes it in one step. [L + 1].

    Attributes:
        keep: share of the arriving data that is not cut.
        leave: share of what stands at the port after arrival that leaves.
        mark: share that is marked of the data that leaves, or that joins, as the queue samples it.
        wait: steps that a byte arriving in the middle of the step will wait.
        sent: units of data that leave.
        drop: units of data that are cut.
        marked: units of data that are marked.
        headers: units of headers that leave, ahead of the data: of what was trimmed here and before, and
            acknowledgements. With several classes those of a port stand at its first.
        pace: share of the line rate that the queue would have in this step, the other classes being as they are; None
            where a port has but one queue.
    """

    keep: Array
    leave: Array
    mark: Array
    wait: Array
    sent: Array
    drop: Array
    marked: Array
    headers: Array
    pace: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrimQueue:
    """A well-mixed FIFO of finite size that trims (UEC).

    With Q waiting, A arriving in the step and C leaving at most: min(C, Q + A) leaves, and what would stand above B
    after that, at most A, is cut. For constant inflow the totals are exact at any step length, since the queue is
    monotone and meets at most one bound. What is cut goes on as a header of `ack` bytes with strict priority, so C is
    the capacity less the headers. Smooth almost everywhere; the derivative of the drop by B is minus one for each busy
    period with a loss (infinitesimal perturbation analysis: Cassandras et al., IEEE TAC 48(5), 2003).

    Marks rise linearly from none at `ecn_low` to `ecn_max` at `ecn_high`, and are certain above that. They are set when
    a byte leaves (as uet-htsim does), or when it joins: then the sender hears of them later by the time that the byte
    waits. Defaults of the UEC specification, derived when a scenario is compiled: buffer 1 bandwidth-delay product,
    thresholds 0.2 and 0.8 of it. Below 1, `ecn_max` makes the ramp that of random early detection, with a jump at
    `ecn_high` (Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993).

    Attributes:
        buffer: [L] bytes.
        ecn_low, ecn_high: [L] bytes.
        ecn_max: share marked just below `ecn_high`, a scalar or [L].
        at_enqueue: whether marks are set when a byte joins.
    """

    granular: ClassVar[bool] = False
    trims: ClassVar[bool] = True
    pauses: ClassVar[bool] = False
    shares: ClassVar[bool] = False
    buffer: Array
    ecn_low: Array
    ecn_high: Array
    ecn_max: Array | float = dataclasses.field(default=1.0, kw_only=True)
    at_enqueue: bool = dataclasses.field(default=False, kw_only=True, metadata={"static": True})

    def inside(self, unit: Array, dt: Array, none: float) -> Self:
        """The same with sizes in units and times in steps, and `none` for the entry of no link: [L + 1]."""
        share = jnp.append(jnp.broadcast_to(self.ecn_max, self.buffer.shape), 1.0)
        sizes = dataclasses.replace(self, ecn_max=self.buffer)
        return dataclasses.replace(jax.tree.map(lambda x: jnp.append(x / unit, none), sizes), ecn_max=share)

    def init(self, like: Array, classes: Classes | None = None) -> PortState:
        """Empty ports with full buckets. like: any [L + 1] array."""
        zero, shape, police = jnp.zeros_like(like), classes and classes.shape, classes and classes.police
        return PortState(zero, zero, zero, shape and shape.burst, police and police.burst)

    def serve(self, stands: Array, room: Array, random: Array | None) -> Array:
        """[L + 1] what leaves of what stands at a port with so much room: all of it, or as much as there is room."""
        return jnp.where(stands >= room, room, stands)

    def bound(self, stands: Array, tail: Array | None) -> Array:
        """[L + 1] what each port may hold, where so much would stand without a bound."""
        return self.buffer

    def step(
        self,
        port: PortState,
        capacity: Array,
        arrive: Array,
        headers: Array,
        random: Array | None = None,
        opening: Array | None = None,
        tail: Array | None = None,
        classes: Classes | None = None,
    ) -> tuple[PortState, Signal]:
        """One step of all ports.

        Args:
            capacity, arrive, headers: [L + 1] units per step of line rate, of data, and of headers in bytes.
            random: [L + 1] how irregularly the data arrives, 0 (paced) to 1 (as at random); for granular ports.
            opening: [L + 1] the share of the step in which the port may send; None: all of it.
            tail: [L + 1] number of the switch of each port, below L + 1; for ports that share its memory.
            classes: how the queues of a port share it; None: each port has one. The tokens of shapers are taken
                elsewhere (see fabsim.engine.port), since senders' ports have them, too.
        """
        police, tokens, passes = classes and classes.police, port.police, arrive
        if police is not None and tokens is not None:
            passes = jnp.minimum(arrive, police.most(tokens))
            tokens = police.after(tokens, passes)
        control = port.headers + headers
        able = capacity if opening is None else capacity * opening
        if classes is None:
            served = jnp.minimum(control, able)
            room = (able - served) * (1.0 - TIE)
        else:
            room, control, served = classes.share(able, control, port.queue + passes, port.shape, TIE)
        sent = self.serve(port.queue + passes, room, random)
        excess = port.queue + passes - sent
        drop = jnp.clip(excess - self.bound(excess, tail), 0.0, passes)
        drop = drop if police is None else drop + (arrive - passes)
        stands = port.queue + arrive - drop
        sent = jnp.where(sent > stands, stands, sent)  # by a rounding at most
        leave = jnp.where(sent < stands, sent / jnp.where(stands > NOTHING, stands, 1.0), 1.0)
        queue = stands - sent
        some = arrive > NOTHING
        keep = jnp.where(some, 1.0 - drop / jnp.where(some, arrive, 1.0), 1.0)
        ramp = (queue - self.ecn_low) / jnp.maximum(self.ecn_high - self.ecn_low, 1e-6)
        mark = jnp.where(ramp >= 1.0, 1.0, jnp.clip(ramp, 0.0, 1.0) * self.ecn_max)
        wait = 0.5 * (port.queue + queue) / capacity
        after = dataclasses.replace(
            port,
            queue=queue,
            headers=control - served,
            trimmed=drop if self.trims else jnp.zeros_like(drop),
            police=tokens,
        )
        marked = (arrive - drop if self.at_enqueue else sent) * mark
        pace = None if classes is None else room / (capacity * (1.0 - TIE))
        return after, Signal(keep, leave, mark, wait, sent, drop, marked, served, pace)
