"""RCCC, the receiver-side congestion control of Ultra Ethernet: a sender sends what it was given credit for."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array

PACE = 0.99
"""Of the receiver's rate, at which credit is given (uet-htsim)."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RcccState:
    """[F].

    Attributes:
        credit: units that may be sent.
        known: 1 once the sender has heard from the receiver.
        in_flight: units, as of the step before.
    """

    credit: Array
    known: Array
    in_flight: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rccc:
    """Credit is given at `pace` times the rate of the receiver's ports, in turn to all flows that want more (UEC
    specification; it descends from EQDS: Olteanu et al., NSDI 2022). So of n flows that want credit each is given
    pace C / n, the last hop is never overbooked after the first round trip, and a queue there drains at (1 - pace) C.

    A flow begins with `first` bytes of credit that nobody gave; what is left of it when the receiver is first heard of
    is void. What is trimmed wants credit again. A receiver acts on what had reached it when it sent what its sender
    hears now: credit is as old as acknowledgements.

    Smooth almost everywhere; jumps where a flow is first heard of, or wants no more.

    Attributes: scalars or [F].
        first: B of credit at the start; 1.5 bandwidth-delay products in the specification.
        pace: of the receiver's rate; 0.99 in uet-htsim.
    """

    signals: ClassVar[bool] = False
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    first: Array
    pace: Array

    def init(self, sender: Sender) -> RcccState:
        """Credit for the first round trip."""
        zero = jnp.zeros_like(sender.rtt)
        return RcccState(zero + self.first / sender.unit, zero, zero)

    def offer(self, state: RcccState, sender: Sender) -> Array:
        """All credit."""
        return jnp.maximum(state.credit, 0.0)

    def step(self, state: RcccState, feedback: Feedback, sender: Sender) -> RcccState:
        """Credit spent in the last step, and given now."""
        heard = feedback.acked + feedback.nacked
        spent = sender.in_flight + heard - state.in_flight
        known = jnp.where(heard > 0, 1.0, state.known)
        credit = jnp.where(known > state.known, 0.0, state.credit - spent)
        wants = jnp.where(known > 0, jnp.maximum(sender.credit - credit, 0.0), 0.0)
        given = jnp.minimum(wants, self.share(wants > 0, sender))
        return RcccState(credit + given, known, sender.in_flight)

    def share(self, wants: Array, sender: Sender) -> Array:
        """[F] units per step for a flow that wants credit: the ports of a receiver in equal parts."""
        assert sender.into is not None
        assert sender.capacity is not None
        flows = jnp.zeros_like(sender.capacity).at[sender.into].add(wants[:, None].astype(sender.capacity.dtype))
        each = sender.capacity / jnp.maximum(flows, 1.0)
        return self.pace * each[sender.into].sum(-1)
