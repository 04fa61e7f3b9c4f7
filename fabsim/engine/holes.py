"""Where on the way, and when in a step, flows that take nothing out of order get a hole.

A hole is a packet that is missing. What was sent after it is behind it, upstream of its place and at the sender; what
is downstream is ahead of it.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fabsim.engine.network import Missing
from fabsim.engine.setup import Setup
from fabsim.models.queue import NOTHING, Signal
from fabsim.typing import Array

NEXT_TO_NOTHING = 1e-6
"""Of what completes a flow when it is missing: a loss in a step that is none, and an arrival that says nothing."""

ALMOST_NONE = 1e-4
"""Holes in a step below which one is as likely at any time of it: the mean over the step is its series."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Holes:
    """What a flow without a hole loses in one step, on average, in packets.

    Attributes:
        ports: [H + 1, F] at each hop.
        wires: [H + 1, F] on the link behind it.
        nic: [F] on that of the sender.
    """

    ports: Array
    wires: Array
    nic: Array

    def some(self) -> Array:
        """[F] those that have one then: one minus the chance of none."""
        return -jnp.expm1(-(self.ports.sum(0) + self.wires.sum(0) + self.nic))

    def downstream(self) -> tuple[Array, Array]:
        """[H + 1, F] of what waits at a hop, and of what comes to it: the share that has a hole ahead of it there."""
        here = self.ports + self.wires
        ahead = jnp.cumsum(here[::-1], 0)[::-1]
        beyond = jnp.concatenate([ahead[1:], jnp.zeros_like(ahead[:1])])
        return -jnp.expm1(-(self.wires + beyond)), -jnp.expm1(-ahead)

    def upstream(self) -> tuple[Array, Array]:
        """[H + 1, F] the same for a hole behind it."""
        here = self.ports + self.wires
        before = self.nic + jnp.cumsum(here, 0) - here
        return -jnp.expm1(-(before + self.ports)), -jnp.expm1(-before)

    def came_over(self) -> Array:
        """[H + 1, F] holes on the link before each hop; for the first see `nic`."""
        return jnp.concatenate([jnp.zeros_like(self.wires[:1]), self.wires[:-1]])


def later_than_one(holes: Array) -> Array:
    """The share of what passes in a step that has a hole ahead of it, where so many come evenly in the step."""
    many = holes > ALMOST_NONE
    safe = jnp.where(many, holes, 1.0)
    return jnp.where(many, 1.0 + jnp.expm1(-safe) / safe, 0.5 * holes)


def late(signal: Signal, before: Array, after: Array) -> Array:
    """[L + 1] the part of the step in which a port was full, of those that cut: what comes too much joins the queue
    until then, and is cut from then on. before, after: its queue."""
    over = signal.drop + jnp.maximum(after - before, 0.0)
    return jnp.where(over > NOTHING, signal.drop / jnp.where(over > NOTHING, over, 1.0), 0.0)


def by_hop(missing: Missing) -> Array:
    """[H + 1, F] what is missing at each hop."""
    return jnp.concatenate([missing.fabric.sum(-1), missing.egress.sum(-1)[None]])


def less(whole: Missing, part: Missing) -> Missing:
    """What is missing but for a part of it."""
    return jax.tree.map(lambda x, y: jnp.maximum(x - y, 0.0), whole, part)


def tell(s: Setup, lost: Array) -> tuple[Array, Array]:
    """[..., F] what is lost, none where it is next to nothing in all; and [F] that."""
    all_of = lost.sum(range(lost.ndim - 1))
    nothing = all_of < NEXT_TO_NOTHING * s.few
    return jnp.where(nothing, 0.0, lost), jnp.where(nothing, all_of, 0.0)
