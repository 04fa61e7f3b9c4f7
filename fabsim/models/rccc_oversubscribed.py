"""RCCC over an oversubscribed fabric: a receiver whose packets meet congestion on the way gives credit more slowly."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.chance import roll, uniform
from fabsim.models.protocol import Feedback, Sender
from fabsim.models.rccc import Rccc, RcccState, at_ports
from fabsim.typing import Array

LEAST = 0.9
"""Over the oversubscription: the smallest part of the pace (uet-htsim)."""

DEFAULTS = {"target": 0.3, "increase": 0.01, "decrease": 0.5, "smoothing": 0.5}
"""Of uet-htsim."""

ROUNDS, APART = 1.5, 0.25
"""Base round trips between two changes, and how far they are apart by chance, of that (uet-htsim)."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class OversubscribedState:
    """[F]; what a flow's receiver knows stands with each of its flows.

    Attributes:
        credit: of the flow.
        rate: part of the pace at which it gives credit.
        smoothed: share of marks.
        rises: changes since the rate was last cut.
        change_in: steps until the next one.
        acked, marked, nacked: units of the flow since the last one.
        dice: uint32.
    """

    credit: RcccState
    rate: Array
    smoothed: Array
    rises: Array
    change_in: Array
    acked: Array
    marked: Array
    nacked: Array
    dice: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RcccOversubscribed:
    """Every 1.5 base round trips, give or take a quarter by chance, a receiver changes the part r of its pace (as
    uet-htsim does by itself where leaves or pods have less capacity up than down):

    * r -= trimmed / received, of packets trimmed before the last hop;
    * with the share of marks g, smoothed: r *= 1 - decrease (g - target) where g is above the target;
    * without either r += increase; where nothing at all is marked, 2^n increase, n changes after the last cut;
    * r is never below `least`, nor above 1.

    The last hop is to set no marks (`queue.ecn_last_hop: false`): there the credit itself is the control. What is
    trimmed there is told from the rest by that: a full port in the fabric marks all that leaves it.

    Smooth but for where r is cut or not, and for Rccc's own jumps.

    Attributes: those of Rccc; scalars or [F].
        least: part of the pace.
        network_rtt: s, base round trip of the longest path.
        target: share of marks.
        increase: part of the pace.
        decrease: strength of a cut.
        smoothing: weight of the last share of marks.
    """

    signals: ClassVar[bool] = True
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    alone: ClassVar[bool] = True
    chance: ClassVar[float] = 1.0
    first: Array
    pace: Array
    turn: Array
    least: Array
    network_rtt: Array
    target: Array
    increase: Array
    decrease: Array
    smoothing: Array

    def init(self, sender: Sender) -> OversubscribedState:
        """The whole pace."""
        zero = jnp.zeros_like(sender.rtt)
        begins, change_in = self.at(zero + 1.0).init(sender), self.next_change(sender.dice, sender)
        return OversubscribedState(begins, zero + 1.0, zero, zero, change_in, zero, zero, zero, sender.dice)

    def at(self, rate: Array) -> Rccc:
        """The law of credit at this part [F] of the pace."""
        return Rccc(self.first, self.pace * rate, self.turn)

    def offer(self, state: OversubscribedState, sender: Sender) -> Array:
        """All credit."""
        return self.at(state.rate).offer(state.credit, sender)

    def step(self, state: OversubscribedState, feedback: Feedback, sender: Sender) -> OversubscribedState:
        """Credit at the receiver's rate of now."""
        state = self.listen(state, feedback, sender)
        return replace(state, credit=self.at(state.rate).step(state.credit, feedback, sender))

    def listen(self, state: OversubscribedState, feedback: Feedback, sender: Sender) -> OversubscribedState:
        """What has come to the receivers since the last change, and the next one where it is due."""
        acked, nacked = state.acked + feedback.acked, state.nacked + feedback.nacked
        marked = state.marked + feedback.marked
        due = state.change_in <= 1.0
        data, cut, marks = (of_receiver(x, sender) for x in (acked, nacked, marked))
        some = data > 0
        share = jnp.where(some, marks / jnp.where(some, data, 1.0), (cut > 0).astype(data.dtype))
        smoothed = state.smoothed + self.smoothing * (share - state.smoothed)
        trimmed = share * cut / jnp.maximum(data + cut, 1e-9)
        over = jnp.maximum(smoothed - self.target, 0.0)
        cuts = (trimmed > 0) | (over > 0)
        grown = self.increase * jnp.where(marks > 0, 1.0, 2.0 ** jnp.minimum(state.rises, 20.0))
        lower = (state.rate - trimmed) * (1.0 - self.decrease * over)
        rate = jnp.clip(jnp.where(cuts, lower, state.rate + grown), self.least, 1.0)
        dice = roll(state.dice)
        return replace(
            state,
            dice=dice,
            rate=jnp.where(due, rate, state.rate),
            smoothed=jnp.where(due, smoothed, state.smoothed),
            rises=jnp.where(due, jnp.where(cuts, 0.0, state.rises + 1.0), state.rises),
            change_in=jnp.where(due, self.next_change(dice, sender), state.change_in - 1.0),
            acked=jnp.where(due, 0.0, acked),
            marked=jnp.where(due, 0.0, marked),
            nacked=jnp.where(due, 0.0, nacked),
        )

    def next_change(self, dice: Array, sender: Sender) -> Array:
        """[F] steps until then, the same for all flows of a receiver."""
        own = of_receiver(uniform(dice, sender.rtt.dtype), sender)
        chance = own - jnp.floor(own)
        return ROUNDS * (1.0 + APART * (2.0 * chance - 1.0)) * self.network_rtt / sender.dt


def of_receiver(x: Array, sender: Sender) -> Array:
    """[F] the sum of x [F] over the flows of a flow's receiver."""
    assert sender.into is not None
    assert sender.capacity is not None
    return at_ports(x, sender.capacity, sender)[sender.into].sum(-1)
