"""NSCC, the sender-side congestion control of Ultra Ethernet."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array

REFERENCE = 100e9 / 8 * 12e-6
"""Bytes: the bandwidth-delay product for which the gains are stated (100 Gbps, 12 us; UEC specification)."""

REFERENCE_RTT = 12e-6
"""Seconds of that product."""

TARGET = 0.75
"""Of the base round trip: the queueing delay that is aimed at where switches trim (UEC specification)."""

COALESCE = 16384.0
"""Bytes for which one acknowledgement is sent (UEC specification, uet-htsim)."""

SMALL_DELAY = 1e-6
"""Seconds of queueing below which the fast increase counts (the reference packet simulator's choice)."""


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
        trimmed: 1 once a packet of the period was trimmed.
        ignore: bytes of acknowledgement for which marks are ignored.
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


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Nscc:
    """Window control by delay and marks, byte by byte of acknowledgement.

    With target T, queueing delay d of an acknowledgement, smoothed delay D, window W and M payload bytes of a packet
    (UEC specification, and uet-htsim, which this follows where the two differ):

    * not marked, d >= T: W += fi / W a byte (fair increase), fi = 5 a M;
    * not marked, d < T: W += alpha (T - d) / W a byte (proportional), alpha = 4 a b M / T; after a window of bytes with
      d < 1 us instead W += 0.25 a a byte (fast increase);
    * marked, d >= T and D > T: W *= max(1 - gamma (D - T) / D, 1/2), at most once a base round trip;
    * marked, d < T: nothing (that is for the load balancer);
    * eta = 0.15 a M once a network round trip;
    * a trimmed packet: W -= packet; quick adapt, at the end of a period of base round trip + T in which one was
      trimmed and less than an eighth of the largest window arrived: W = what arrived, and marks and trims are ignored
      for one flight.

    a = bandwidth-delay product / 150 kB, b = T / 12 us. Base round trip and largest window (1.5 of it) are the flow's
    own, as measured by its first packet. An acknowledgement is sent for every 16 KiB, and at once for a marked packet:
    so a share p of marked packets leaves only 4 q^4 (1 - q) / (1 - q^4), q = 1 - p, of the bytes in unmarked ones.

    Smooth almost everywhere; jumps at quick adapt and at the moment of a cut.

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
        coalesce: B for which one acknowledgement is sent.
    """

    signals: ClassVar[bool] = True
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
    coalesce: Array

    def base(self, sender: Sender) -> Array:
        """[F] steps of the base round trip as the flow's first packet measures it."""
        return sender.rtt + sender.packet / sender.rate

    def limits(self, sender: Sender) -> tuple[Array, Array]:
        """[F] smallest and largest window, units."""
        own = jnp.minimum(self.base(sender), self.network_rtt / sender.dt)
        return sender.packet, self.largest * own * self.rate * sender.dt / sender.unit

    def init(self, sender: Sender) -> NsccState:
        """The first window is the largest of the network: the flow has not measured its own round trip yet."""
        zero = jnp.zeros_like(sender.rtt)
        window = self.largest * self.network_rtt * self.rate / sender.unit + zero
        never = zero + 1e6
        return NsccState(window, zero, zero, zero, never, zero, zero - 1.0, zero, zero, zero)

    def offer(self, state: NsccState, sender: Sender) -> Array:
        """What the window leaves free for whole packets: on average half a packet of it stays unused."""
        whole = jnp.maximum(state.window - 0.5 * sender.packet, sender.packet)
        return jnp.maximum(whole - sender.in_flight, 0.0)

    def step(self, state: NsccState, feedback: Feedback, sender: Sender) -> NsccState:
        """All acknowledgements of a step at once."""
        heard = (feedback.acked + feedback.nacked) > 0
        state = self.measure(state, feedback, sender)
        state, acts, ignores = self.quick_adapt(state, feedback, sender, heard)
        return self.adjust(state, feedback, sender, acts, ignores)

    def unmarked(self, feedback: Feedback, sender: Sender) -> tuple[Array, Array, Array]:
        """[F] units acknowledged without a mark, and numbers of unmarked and of marked acknowledgements."""
        some = feedback.acked > 1e-9
        marked = jnp.where(some, feedback.marked / jnp.where(some, feedback.acked, 1.0), 0.0)
        marked = jnp.clip(marked, 1e-6, 1.0 - 1e-6)
        packets = feedback.acked / sender.packet
        run = jnp.maximum(self.coalesce / sender.unit / sender.packet, 1.0)
        through = run * jnp.log1p(-marked)
        share = -run * jnp.exp(through) * marked / jnp.expm1(through)
        return feedback.acked * share, packets * share / run, packets * marked

    def measure(self, state: NsccState, feedback: Feedback, sender: Sender) -> NsccState:
        """The smoothed delay. Unmarked samples above the target pull towards a quarter of the base round trip, and a
        trimmed packet counts as a network round trip of delay."""
        _, clean, marked = self.unmarked(feedback, sender)
        target, network = self.target / sender.dt, self.network_rtt / sender.dt
        high = feedback.delay > target
        cut = feedback.nacked / sender.packet
        clean_to = jnp.where(high, 0.25 * self.base(sender), feedback.delay)
        count = clean + marked + cut
        towards = (clean * clean_to + marked * feedback.delay + cut * network) / jnp.maximum(count, 1e-9)
        weight = 1.0 - (1.0 - self.smoothing) ** count
        return replace(state, average=state.average + weight * (towards - state.average))

    def quick_adapt(
        self, state: NsccState, feedback: Feedback, sender: Sender, heard: Array
    ) -> tuple[NsccState, Array, Array]:
        """The end of a period; [F] whether it acted, and whether marks and trims are ignored now."""
        least, most = self.limits(sender)
        achieved = state.achieved + feedback.acked
        ignore = jnp.maximum(state.ignore - feedback.acked - feedback.nacked, 0.0)
        trimmed = jnp.where(feedback.nacked > 0, 1.0, state.trimmed)
        first = heard & (state.adapt_in < 0)
        ends = heard & (state.adapt_in >= 0) & (state.adapt_in <= 1.0)
        runs = state.adapt_in > 1.0
        acts = ends & (trimmed > 0) & (achieved < self.gate * most) & (ignore <= 0)
        period = self.base(sender) + self.target / sender.dt
        state = replace(
            state,
            window=jnp.where(acts, jnp.maximum(achieved, least), state.window),
            achieved=jnp.where(first | ends, 0.0, achieved),
            trimmed=jnp.where(acts, 0.0, trimmed),
            ignore=jnp.where(acts, sender.in_flight, ignore),
            adapt_in=jnp.where(first | ends, period, jnp.where(runs, state.adapt_in - 1.0, state.adapt_in)),
        )
        return state, acts, ignore > 0

    def adjust(self, state: NsccState, feedback: Feedback, sender: Sender, acts: Array, ignores: Array) -> NsccState:
        """Increase, decrease and trims. What had grown when a mark is ignored is forgotten."""
        adapted = acts | ignores
        least, most = self.limits(sender)
        scale = self.rate * self.network_rtt / REFERENCE
        target, unit = self.target / sender.dt, sender.unit
        clean, _, marked = self.unmarked(feedback, sender)
        delay, window = feedback.delay, jnp.maximum(state.window, least)
        low = jnp.where(delay < SMALL_DELAY / sender.dt, state.low + clean, 0.0)
        low = jnp.where(feedback.acked > 0, low, state.low)
        rising = jnp.where(feedback.acked > 0, ((low > window) | (state.rising > 0)) & (low > 0), state.rising > 0)
        below = jnp.maximum(target - delay, 0.0) / target
        proportional = self.proportional * scale * (self.target / REFERENCE_RTT) * self.payload / unit * below / window
        fair = self.fair * scale * self.payload / unit / window
        gain = jnp.where(delay >= target, fair, jnp.where(rising, self.fast * scale, proportional))
        period = self.network_rtt / sender.dt
        steady = jnp.where(feedback.acked > 0, self.steady * scale * self.payload / unit / period, 0.0)
        grown = jnp.where(ignores & (feedback.marked > 0), 0.0, gain * clean) + steady
        window = jnp.clip(window + jnp.where(acts, 0.0, grown), least, most)
        allowed = (state.since_cut > self.base(sender)) & (delay >= target) & (state.average > target) & ~adapted
        marks = jnp.where(allowed, state.marks + marked, 0.0)
        cuts = allowed & (marks >= 1.0)
        over = (state.average - target) / jnp.maximum(state.average, 1e-9)
        window = jnp.where(cuts, window * jnp.maximum(1.0 - self.gamma * over, self.deepest), window)
        window = window - jnp.where(adapted, 0.0, feedback.nacked)
        return replace(
            state,
            window=jnp.clip(window, least, most),
            low=jnp.where(cuts, 0.0, low),
            rising=jnp.where(cuts, 0.0, rising * 1.0),
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
        "smoothing": 0.0125, "gate": 0.125, "coalesce": COALESCE,
    } | changes  # fmt: skip
    return Nscc(**{name: jnp.asarray(value, dtype) for name, value in values.items()})
