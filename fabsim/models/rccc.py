"""RCCC, the receiver-side congestion control of Ultra Ethernet: a sender sends what it was given credit for."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.chance import roll, uniform
from fabsim.models.protocol import Feedback, Sender
from fabsim.models.told import Told
from fabsim.typing import Array

PACE, TURN = 0.99, 4.0
"""Of the receiver's rate, at which credit is given (uet-htsim), and packets of a turn (UEC specification)."""

LITTLE = 1e-3
"""Packets: who asks for less has its demand met. Requests are that much larger than what is wanted, as they are whole
quanta there."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RcccState:
    """[F].

    Attributes:
        credit: units that may be sent.
        known: 1 once the sender has heard from the receiver.
        in_flight: units, as of the step before.
        asked: units of credit asked for and not got; below zero, got and not asked for.
        told: requests on the way to the receiver.
        places: that the flow has in its receiver's line of those whose demand was met.
        waited: how far they are in it, from 0 to 1.
        dice: uint32.
    """

    credit: Array
    known: Array
    in_flight: Array
    asked: Array
    told: Told
    places: Array
    waited: Array
    dice: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rccc:
    """A receiver gives credit at `pace` times the rate of its ports, in turn to all flows that want more: of n flows
    each is given pace C / n, the last hop is never overbooked after the first round trip, and a queue there drains at
    (1 - pace) C (UEC specification; it descends from EQDS: Olteanu et al., NSDI 2022). As uet-htsim has it:

    * A flow begins with `first` bytes of credit that nobody gave; what is left of it when the receiver is first heard
      of is void.
    * A packet tells the receiver up to how much credit its flow asks for: all that is left to send, at most `first`,
      less what it has, and divided by the flows that stand in line at the sender's port, which cannot send more. The
      largest request counts; the first one is for a packet.
    * So a flow may be out of credit with nothing asked for. While nobody wants any, the receiver gives in advance:
      `turn` packets to each place in a line that goes round, up to `first` for each flow. A flow gets a place at the
      end each time that its demand is met (that of each packet by itself, if it finds the receiver idle; else that of
      all that have come meanwhile), and the receiver does not know who has finished: in an all-to-all a flow waits a
      hundred microseconds among those that have.

    What is trimmed wants credit again. A receiver acts on what had reached it when it sent what its sender hears now:
    credit is as old as acknowledgements.

    Whole packets: a fluid has what a flow sends on average. Who has credit for half of one sends it, since any credit
    sends a packet on debt. The packets of a turn stay together: they meet one demand, and stand together in line at the
    sender's port. How many flows stand there is chance where it is not full: k or more with probability r ^ (k - 1) for
    a load r of the others (processor sharing: Kleinrock, Queueing Systems II, 1976), drawn by the seed for each turn.

    Smooth almost everywhere; jumps where a flow is first heard of, has its demand met, or a draw turns.

    Attributes: scalars or [F].
        first: B of credit at the start; 1.5 bandwidth-delay products in the specification.
        pace: of the receiver's rate; 0.99 in uet-htsim.
        turn: packets of credit that are given at a time; 4 in the specification.
        coalesced: B of clean packets that one acknowledgement stands for (UEC specification; the sink of uet-htsim).
    """

    signals: ClassVar[bool] = False
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    alone: ClassVar[bool] = True
    chance: ClassVar[float] = 1.0
    coalesced: ClassVar[float] = 16384.0
    first: Array
    pace: Array
    turn: Array

    def init(self, sender: Sender) -> RcccState:
        """Credit for the first round trip."""
        zero = jnp.zeros_like(sender.rtt)
        return RcccState(self.most(sender), zero, zero, zero, Told.nothing(zero), zero, zero, sender.dice)

    def most(self, sender: Sender) -> Array:
        """[F] units of the first credit, and of the largest request."""
        return self.first / sender.unit + jnp.zeros_like(sender.rtt)

    def offer(self, state: RcccState, sender: Sender) -> Array:
        """All credit, once it is half a packet, or half of what is left."""
        goes = state.credit >= 0.5 * jnp.minimum(sender.credit, sender.packet)
        return jnp.where(goes, jnp.maximum(state.credit, 0.0), 0.0)

    def step(self, state: RcccState, feedback: Feedback, sender: Sender) -> RcccState:
        """Credit spent in the last step, asked for with it, and given now."""
        packet, turn = sender.packet, self.turn * sender.packet
        heard = feedback.acked + feedback.nacked
        spent = sender.in_flight + heard - state.in_flight
        known = jnp.where(heard > 0, 1.0, state.known)
        credit = jnp.where(known > state.known, 0.0, state.credit - spent)
        first = roll(state.dice)
        second = roll(first)
        more = jnp.where(spent > 0, self.request(credit, state.asked, spent, first, known, sender), 0.0)
        told = state.told.after(spent, more, heard, jnp.clip(feedback.nacked / packet, 0.0, 1.0), sender.rtt)
        asked = state.asked + more
        wants = jnp.maximum(asked - told.unheard, 0.0)
        given, rest = self.give(wants, sender)
        met = (wants > LITTLE * packet) & (wants - given <= LITTLE * packet)
        places = state.places + feedback.nacked / turn  # who is trimmed is asked, too
        places = jnp.where(met, jnp.maximum(places + self.visits(heard, rest, sender), 1.0), places)
        places = jnp.where(told.unheard - asked + given < self.most(sender), places, 0.0)
        begins = jnp.where((places > 0) & (state.places <= 0), uniform(second, places.dtype), -1.0)
        waited, advance = self.in_advance(state.waited, begins, places, rest, sender)
        asked = asked - given - advance
        return RcccState(credit + given + advance, known, sender.in_flight, asked, told, places, waited, second)

    def visits(self, heard: Array, rest: Array, sender: Sender) -> Array:
        """[F] how often it is met for those whose demand is met in this step, once at most, of [F] units heard: that of
        each packet by itself if it finds the receiver idle, of a turn together if not. rest: as `give` leaves it."""
        assert sender.into is not None
        assert sender.capacity is not None
        idle = (rest / sender.capacity)[sender.into].mean(-1)
        return jnp.clip(heard / sender.packet * (idle + (1.0 - idle) / self.turn), 0.0, 1.0)

    def request(self, credit: Array, asked: Array, spent: Array, dice: Array, known: Array, sender: Sender) -> Array:
        """[F] units by which what was just sent raises what is asked for."""
        left = sender.credit
        others = self.in_line(spent, jnp.minimum(credit, left), dice, sender)
        wish = (jnp.minimum(left, self.most(sender)) - credit) / others
        wish = jnp.where(known > 0, wish, jnp.maximum(wish, jnp.minimum(left, sender.packet)))
        return jnp.where(left > 0, jnp.maximum(wish + LITTLE * sender.packet - asked, 0.0), 0.0)

    def in_line(self, spent: Array, stands: Array, dice: Array, sender: Sender) -> Array:
        """[F] flows in line at the sender's port, at the best time for those who sent `spent` [F] units; who still has
        more than a packet that `stands` [F] there is one of them."""
        assert sender.out is not None
        assert sender.capacity is not None
        of = jnp.stack([spent, (stands > sender.packet).astype(spent.dtype)], -1)
        here = jnp.zeros((*sender.capacity.shape, 2), of.dtype).at[sender.out].add(of[:, None] / sender.out.shape[1])
        load, number = jnp.moveaxis(here[sender.out].sum(1), -1, 0)
        others = jnp.clip((load - spent) / jnp.maximum(sender.rate, 1e-9), 1e-6, 1.0 - 1e-6)
        odds = uniform(dice, spent.dtype)
        draws = jnp.maximum(spent / (self.turn * sender.packet), LITTLE)
        return jnp.maximum(number, 1.0 + jnp.floor(jnp.log(odds) / (draws * jnp.log(others))))

    def in_advance(
        self, waited: Array, begins: Array, places: Array, rest: Array, sender: Sender
    ) -> tuple[Array, Array]:
        """[F] how far each flow is in its receiver's line now, and the units that it was given there.

        A line goes round. The places of a flow stand together, and have their turns one after another once all others
        have had theirs; of those who join the line in one step, some are first, by chance.

        Args:
            waited: [F] how far they were.
            begins: [F] for who joins the line now, a number between 0 and 1; below zero for all others.
            rest: [L + 1] units of time that the receivers' ports have left.
        """
        assert sender.into is not None
        joins = begins >= 0
        both = jnp.stack([places, jnp.where(joins, places, 0.0)])
        everyone, joining = (at_ports(x, rest, sender)[sender.into].sum(-1) for x in both)
        some = places > 0
        safe = jnp.where(some, everyone, 1.0)
        waited = jnp.where(joins, begins * joining / safe, waited)
        due = 1.0 - jnp.where(some, places / safe, 0.0)
        whole = jnp.where(some, safe * self.turn * sender.packet, 1.0)

        def turns(rounds: Array) -> Array:
            return jnp.floor(rounds) * (1.0 - due) + jnp.maximum(rounds - jnp.floor(rounds) - due, 0.0)

        now = waited + self.pace * rest[sender.into].sum(-1) / whole
        given = jnp.maximum(turns(now) - turns(waited), 0.0) * whole
        return jnp.where(some, now - jnp.floor(now), 0.0), jnp.where(some, given, 0.0)

    def give(self, wants: Array, sender: Sender) -> tuple[Array, Array]:
        """[F] units of credit for those who want it, and [L + 1] what is left of the time of the receivers' ports."""
        assert sender.capacity is not None
        demand = wants / self.pace
        time, rest = share(demand, sender.capacity, sender)
        more, rest = share(demand - time, rest, sender)
        return self.pace * (time + more), rest


def share(demand: Array, room: Array, sender: Sender) -> tuple[Array, Array]:
    """[F] what a receiver's ports give of a demand [F] with so much room [L + 1], in equal parts, and the room left."""
    assert sender.into is not None
    flows = at_ports((demand > 0).astype(demand.dtype), room, sender)
    each = (room / jnp.where(flows > 0, flows, 1.0))[sender.into].mean(-1)
    given = jnp.minimum(demand, each)
    return given, jnp.maximum(room - at_ports(given, room, sender), 0.0)


def at_ports(x: Array, like: Array, sender: Sender) -> Array:
    """[F] -> [L + 1] sums over the flows of a receiver's ports, which carry equal parts."""
    assert sender.into is not None
    return jnp.zeros_like(like).at[sender.into].add(x[:, None] / sender.into.shape[1])
