"""NSCC, the sender-side congestion control of Ultra Ethernet."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import ClassVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.models.acks import Heard, by_ack, delays_apart
from fabsim.models.chance import roll, scatter
from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array

REFERENCE = 100e9 / 8 * 12e-6
"""Bytes: the bandwidth-delay product for which the gains are stated (100 Gbps, 12 us; UEC specification)."""

REFERENCE_RTT = 12e-6
"""Seconds of that product."""

TARGET = 0.75
"""Of the base round trip: the queueing delay that is aimed at where switches trim (UEC specification)."""

SMALL_DELAY = 1e-6
"""Seconds of queueing below which the fast increase counts (the reference packet simulator's choice)."""

SOME = 0.25
"""Marked packets of a step that count as some: chance makes them whole ones, or next to none."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class NsccState:
    """[F]; units and steps.

    Attributes:
        window: bytes that may be in flight.
        average: smoothed queueing delay.
        low: bytes acknowledged in a row with hardly any delay.
        rising: 1 while the fast increase goes on.
        since_cut: steps since the last multiplicative decrease.
        marks: marked acknowledgements since it was allowed again.
        adapt_in: steps to the end of the quick-adapt period; negative before the first acknowledgement.
        achieved: bytes acknowledged in that period.
        trimmed: bytes that were trimmed since quick adapt last acted.
        ignore: bytes of acknowledgement for which marks are ignored.
        dice: uint32, where each flow's chance stands.
    """

    window: Array
    average: Array
    low: Array
    rising: Array
    since_cut: Array
    marks: Array
    adapt_in: Array
    achieved: Array
    trimmed: Array
    ignore: Array
    dice: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Nscc:
    """Window control by delay and marks, byte by byte of acknowledgement.

    With target T, queueing delay d of an acknowledgement, smoothed delay D, window W and M payload bytes of a packet
    (UEC specification, and uet-htsim, which this follows where the two differ):

    * not marked, d >= T: W += fi / W a byte (fair increase), fi = 5 a M;
    * not marked, d < T: W += alpha (T - d) / W a byte (proportional), alpha = 4 a b M / T; after a window of bytes with
      d < 1 us instead W += 0.25 a a byte (fast increase);
    * marked, d >= T: the fast increase is over; and if D > T: W *= max(1 - gamma (D - T) / D, 1/2), at most once a base
      round trip;
    * marked, d < T: nothing (that is for the load balancer);
    * eta = 0.15 a M once a network round trip;
    * a trimmed packet: W -= packet; quick adapt, at the end of a period of base round trip + T, if one was trimmed and
      less than an eighth of the largest window arrived: W = what arrived, and marks and trims are ignored for one
      flight; a period does not end before that, as long as what comes back is marked.

    a = bandwidth-delay product / 150 kB, b = T / 12 us. Base round trip and largest window (1.5 of it) are the flow's
    own, as measured by its first packet; the first window is that of the network, unless the flow knows its own round
    trip from the start.

    The law acts at each acknowledgement, and the bytes that this tells of count as the packet that it names. A marked
    packet has its own, and so has one that fills the window; else one stands for 16 KiB (UEC specification; the sink of
    uet-htsim). So clean packets are seen less often than they are: of a flow over many paths the smoothed delay is
    mostly that of its bad ones, and where it grows past the target the flow keeps a small window for long.

    Which packets are trimmed or marked is chance: equal flows get different windows, and that is most of what sets
    them apart in an incast. The law hears the fluid's mean and adds seeded chance to it (fabsim.models.chance); the
    bytes themselves move as the fluid says.

    Smooth almost everywhere; jumps at quick adapt, at the moment of a cut, and where a chance turns.

    Attributes: scalars or [F].
        network_rtt: s, base round trip of the longest path.
        target: s, queueing delay that is aimed at; 0.75 network_rtt where switches trim.
        rate: B/s of the NIC.
        payload: B of a full packet (M).
        largest: of the window, in bandwidth-delay products.
        proportional, fair, steady, fast: the gains 4, 5, 0.15, 0.25 above.
        gamma: strength of the decrease.
        deepest: the smallest factor of one decrease.
        smoothing: weight of a sample in the smoothed delay.
        gate: share of the largest window below which quick adapt acts.
        chance: 1 for the chance of whole packets, 0 for none: equal flows then stay equal.
        knows_rtt: 1 where a flow knows its own base round trip before its first packet is back, else 0.
        coalesced: B of clean packets that one acknowledgement stands for.
    """

    signals: ClassVar[bool] = True
    apart: ClassVar[bool] = True
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    network_rtt: Array
    target: Array
    rate: Array
    payload: Array
    largest: Array
    proportional: Array
    fair: Array
    steady: Array
    fast: Array
    gamma: Array
    deepest: Array
    smoothing: Array
    gate: Array
    chance: Array
    knows_rtt: Array
    coalesced: Array

    def limits(self, sender: Sender) -> tuple[Array, Array]:
        """[F] smallest and largest window, units."""
        own = jnp.minimum(sender.base, self.network_rtt / sender.dt)
        return sender.packet, self.largest * own * self.rate * sender.dt / sender.unit

    def init(self, sender: Sender) -> NsccState:
        """The first window is the largest of the network: the flow has not measured its own round trip yet, unless it
        knows."""
        zero = jnp.zeros_like(sender.rtt)
        window = self.largest * self.network_rtt * self.rate / sender.unit + zero
        window = jnp.where(self.knows_rtt > 0, self.limits(sender)[1], window)
        never = zero + 1e6
        return NsccState(window, zero, zero, zero, never, zero, zero - 1.0, zero, zero, zero, sender.dice)

    def offer(self, state: NsccState, sender: Sender) -> Array:
        """What the window leaves free for whole packets: on average half a packet of it stays unused."""
        whole = jnp.maximum(state.window - 0.5 * sender.packet, sender.packet)
        return jnp.maximum(whole - sender.in_flight, 0.0)

    def step(self, state: NsccState, feedback: Feedback, sender: Sender) -> NsccState:
        """All acknowledgements of a step at once."""
        first = roll(state.dice)
        second = roll(first)
        delays = delays_apart(feedback)
        feedback = self.by_chance(feedback, sender, first, second)
        heard = self.by_ack(state, feedback, delays, sender)
        state = self.measure(replace(state, dice=second), heard, feedback.nacked / sender.packet, sender)
        marked = feedback.marked >= 0.5 * feedback.acked  # or nothing but trimmed packets came back
        state, acts, ignores = self.quick_adapt(state, feedback, sender, marked)
        return self.adjust(state, feedback, heard, sender, acts | ignores, acts | (ignores & marked))

    def by_ack(self, state: NsccState, feedback: Feedback, delays: tuple[Array, Array], sender: Sender) -> Heard:
        """Packets as their acknowledgements show them; while the window has room, none asks for one. A flow that shares
        its port takes this for idle while others send, and has somewhat too many of its packets ask."""
        flight = sender.in_flight + feedback.acked + feedback.nacked  # as it was before this was heard
        fills = flight > state.window - 2.0 * sender.packet
        many = jnp.maximum(jnp.ceil(self.coalesced / (sender.packet * sender.unit) - 1e-3), 1.0)
        busy = jnp.where(fills, feedback.acked / jnp.maximum(sender.rate, 1e-9), 1.0)
        return by_ack(feedback, delays, sender.packet, many, busy)

    def by_chance(self, feedback: Feedback, sender: Sender, first: Array, second: Array) -> Feedback:
        """What whole packets may have shown, some trimmed by chance and some of the others marked by chance."""
        acked, nacked = feedback.acked, feedback.nacked
        more = self.chance * scatter(nacked, acked, sender.packet, first)
        some = acked > 1e-9
        marked = feedback.marked * jnp.where(some, 1.0 - more / jnp.where(some, acked, 1.0), 1.0)
        acked, nacked = acked - more, nacked + more
        marked = marked + self.chance * scatter(marked, acked - marked, sender.packet, second)
        return replace(feedback, acked=acked, nacked=nacked, marked=marked)

    def measure(self, state: NsccState, heard: Heard, cut: Array, sender: Sender) -> NsccState:
        """The smoothed delay, a sample an acknowledgement. Clean samples above the target pull towards a quarter of the
        base round trip, and a trimmed packet counts as a network round trip of delay. cut: [F] trimmed packets."""
        target, network = self.target / sender.dt, self.network_rtt / sender.dt
        clean_to = jnp.where(heard.clean_delay > target, 0.25 * sender.base, heard.clean_delay)
        count = heard.clean_acks + heard.marked_acks + cut
        towards = heard.clean_acks * clean_to + heard.marked_acks * heard.marked_delay + cut * network
        towards = towards / jnp.maximum(count, 1e-9)
        weight = 1.0 - (1.0 - self.smoothing) ** count
        return replace(state, average=state.average + weight * (towards - state.average))

    def quick_adapt(
        self, state: NsccState, feedback: Feedback, sender: Sender, marked: Array
    ) -> tuple[NsccState, Array, Array]:
        """The end of a period; [F] whether it acted, and whether marks and trims are ignored now.

        marked: [F] whether most of what came back is.
        """
        least, most = self.limits(sender)
        heard = (feedback.acked + feedback.nacked) > 0
        achieved, trimmed = state.achieved + feedback.acked, state.trimmed + feedback.nacked
        ignore = jnp.maximum(state.ignore - feedback.acked - feedback.nacked, 0.0)
        first = heard & (state.adapt_in < 0)
        runs = state.adapt_in > 1.0
        ends = heard & (state.adapt_in >= 0) & ~runs & ~((ignore > 0) & marked)
        acts = ends & (trimmed > 0.5 * sender.packet) & (achieved < self.gate * most)
        period = sender.base + self.target / sender.dt
        state = replace(
            state,
            window=jnp.where(acts, jnp.maximum(achieved, least), state.window),
            achieved=jnp.where(first | ends, 0.0, achieved),
            trimmed=jnp.where(acts, 0.0, trimmed),
            ignore=jnp.where(acts, sender.in_flight, ignore),
            adapt_in=jnp.where(first | ends, period, state.adapt_in - runs),
        )
        return state, acts, ignore > 0

    def adjust(
        self, state: NsccState, feedback: Feedback, heard: Heard, sender: Sender, adapted: Array, still: Array
    ) -> NsccState:
        """Increase, decrease and trims; [F] whether it may not shrink, as it is just adapted, and not even grow."""
        least, most = self.limits(sender)
        scale = self.rate * self.network_rtt / REFERENCE
        target, unit = self.target / sender.dt, sender.unit
        clean, marked = heard.clean, heard.marked_acks
        delay, window = heard.clean_delay, jnp.maximum(state.window, least)
        low = jnp.where(delay < SMALL_DELAY / sender.dt, state.low + clean, 0.0)
        low = jnp.where(feedback.acked > 0, low, state.low)
        rising = jnp.where(feedback.acked > 0, ((low > window) | (state.rising > 0)) & (low > 0), state.rising > 0)
        below = jnp.maximum(target - delay, 0.0) / target
        proportional = self.proportional * scale * (self.target / REFERENCE_RTT) * self.payload / unit * below / window
        fair = self.fair * scale * self.payload / unit / window
        gain = jnp.where(delay >= target, fair, jnp.where(rising, self.fast * scale, proportional))
        period = self.network_rtt / sender.dt
        steady = jnp.where(feedback.acked > 0, self.steady * scale * self.payload / unit / period, 0.0)
        window = jnp.clip(window + jnp.where(still, 0.0, gain * clean + steady), least, most)
        late = heard.marked_delay >= target
        allowed = (state.since_cut > sender.base) & late & (state.average > target) & ~adapted
        marks = jnp.where(allowed, state.marks + marked, 0.0)
        cuts = allowed & (marks >= 1.0)
        slow = late & (heard.marked_acks > SOME)
        over = (state.average - target) / jnp.maximum(state.average, 1e-9)
        window = jnp.where(cuts, window * jnp.maximum(1.0 - self.gamma * over, self.deepest), window)
        window = window - jnp.where(adapted, 0.0, feedback.nacked)
        return replace(
            state,
            window=jnp.clip(window, least, most),
            low=jnp.where(slow, 0.0, low),
            rising=jnp.where(slow, 0.0, rising).astype(state.rising.dtype),
            since_cut=jnp.where(cuts, 0.0, jnp.minimum(state.since_cut + 1.0, 1e6)),
            marks=jnp.where(cuts, 0.0, marks),
        )


def nscc(network_rtt: float, rate: float, payload: float, dtype: str = "float32", **changes: float) -> Nscc:
    """NSCC with the defaults of the specification for a fabric whose longest path has this base round trip (s).

    rate: B/s of the NIC; payload: B of a full packet; changes: any field by name.
    """
    values = {
        "network_rtt": network_rtt, "target": TARGET * network_rtt, "rate": rate, "payload": payload, "largest": 1.5,
        "proportional": 4.0, "fair": 5.0, "steady": 0.15, "fast": 0.25, "gamma": 0.8, "deepest": 0.5,
        "smoothing": 0.0125, "gate": 0.125, "chance": 1.0, "knows_rtt": 0.0, "coalesced": 16384.0,
    } | changes  # fmt: skip
    return Nscc(**{name: cast(Array, np.asarray(value, dtype)) for name, value in values.items()})
