"""DCQCN: a rate cut by notifications of marked packets, and raised by a timer and a byte counter (RoCEv2)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DcqcnState:
    """[F]. rate, target: units per step (R_C, R_T); share: smoothed share of marked periods (alpha)."""

    rate: Array
    target: Array
    share: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Dcqcn:
    """Rate R_C, target rate R_T and cut strength a; r, p: packets acknowledged a second, and their marked share.

    With the fluid model of Zhu, Ghobadi, Misra, Padhye (CoNEXT 2016), for the algorithm of Zhu et al. (SIGCOMM 2015):

    A = 1 - (1 - p)^(tau r)                       a period tau between two notifications has a marked packet
    b = p / ((1 - p)^-B - 1), c = b (1 - p)^(F B)         rounds of the byte counter B for a packet; those beyond F
    d = p / ((1 - p)^(-T r) - 1), e = d (1 - p)^(F T r)   rounds of the timer T for a packet; those beyond F

    dR_C/dt = -R_C a A / (2 tau) + (R_T - R_C) r (b + d) / 2
    dR_T/dt = -(R_T - R_C) A / tau + increase r (c + e)
    da/dt = (gain / tau') (1 - (1 - p)^(tau' r) - a)

    Of the three ways to raise the rate, fast recovery and additive increase; not hyper increase. A trimmed packet
    counts as a marked one. Marks want a ramp of 5 to 200 kB with 1 % at its end at 40 Gbps (ecn_low, ecn_high,
    ecn_max). N flows settle at rates C / N where A^2 a / ((b + d)(c + e)) = tau^2 increase C / N, if that p is below
    ecn_max and the feedback is fast enough; else the queue swings.

    Smooth in all parameters; the marks above ecn_high jump.

    Attributes: scalars or [F].
        first: B/s, rate at the start; the paper starts at line rate.
        strength: a at the start; 1 in the paper.
        gain: weight of a period in a (g), 1/256.
        increase: B/s, additive increase (R_AI), 40 Mbps.
        cut_period: s, least time between two notifications (tau), 50 us.
        gain_period: s, time of an update of a (tau'), 55 us.
        raise_period: s, timer of the increase (T), 55 us.
        raise_bytes: B, byte counter of the increase (B), 10 MB.
        recovery: rounds of fast recovery (F), 5.
        least: B/s, smallest rate.
    """

    signals: ClassVar[bool] = True
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    first: Array
    strength: Array
    gain: Array
    increase: Array
    cut_period: Array
    gain_period: Array
    raise_period: Array
    raise_bytes: Array
    recovery: Array
    least: Array

    def init(self, sender: Sender) -> DcqcnState:
        """At the first rate, which is also the target."""
        zero = jnp.zeros_like(sender.rtt)
        rate = jnp.minimum(self.first * sender.dt / sender.unit, sender.rate)
        return DcqcnState(rate + zero, rate + zero, self.strength + zero)

    def offer(self, state: DcqcnState, sender: Sender) -> Array:
        """A step at the rate; there is no window."""
        return state.rate

    def step(self, state: DcqcnState, feedback: Feedback, sender: Sender) -> DcqcnState:
        """One step of the equations, with time in steps and bytes in units."""
        dt, packet, unit = sender.dt, sender.packet, sender.unit
        heard, marked = feedback.acked + feedback.nacked, feedback.marked + feedback.nacked
        some = heard > 1e-9
        p = jnp.clip(jnp.where(some, marked / jnp.where(some, heard, 1.0), 0.0), 1e-9, 1.0 - 1e-6)
        clean, packets = jnp.log1p(-p), heard / packet

        def hit(period: Array) -> Array:
            """Whether a period has a marked packet."""
            return -jnp.expm1(clean * packets * period / dt)

        def rounds(length: Array) -> tuple[Array, Array]:
            """Rounds of so many packets begun for a packet that is sent, and those of them beyond recovery."""
            through = jnp.minimum(-clean * jnp.maximum(length, 1.0), 60.0)
            begun = p / jnp.expm1(through)
            return begun, begun * jnp.exp(-self.recovery * through)

        b, c = rounds(self.raise_bytes / unit / packet)
        d, e = rounds(packets * self.raise_period / dt)
        cut = hit(self.cut_period) * dt / self.cut_period
        rate, target, gap = state.rate, state.target, state.target - state.rate
        rate = rate - 0.5 * rate * state.share * cut + 0.5 * gap * packets * (b + d)
        target = target - gap * cut + self.increase * dt / unit * packets * (c + e)
        share = state.share + self.gain * dt / self.gain_period * (hit(self.gain_period) - state.share)
        least = jnp.minimum(self.least * dt / unit, sender.rate)
        return DcqcnState(jnp.clip(rate, least, sender.rate), jnp.clip(target, least, sender.rate), share)
