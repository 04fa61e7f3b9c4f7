"""TIMELY, a rate that follows the gradient of the round trip, and the patch that gives it a fixed point."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TimelyState:
    """[F].

    Attributes:
        rate: units per step.
        delay: steps of queueing, as last heard.
        lagged: the same with a lag of half an update.
        gradient: how much the delay grows in an update, in shortest round trips, smoothed.
    """

    rate: Array
    delay: Array
    lagged: Array
    gradient: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Timely:
    """Rate R, queueing delay d and its smoothed gradient g; an update each t = max(segment / R, shortest):

    dg/dt = (smoothing / t) ((d - d an update ago) / shortest - g)

    * d < low: dR/dt = increase / t;
    * d > high: dR/dt = -(beta / t) (1 - high / d) R;
    * between, g <= 0: dR/dt = increase / t; g > 0: dR/dt = -(beta / t) g R.

    (Mittal et al., SIGCOMM 2015, as the fluid model of Zhu, Ghobadi, Misra, Padhye, CoNEXT 2016.) By how much the delay
    changed in an update is twice what it is ahead of its lag of t / 2 (the first Pade approximant of a delay). There is
    no fixed point: any split of the capacity among flows can last. The hyperactive increase is left out. Delays are of
    queueing, the propagation apart. Trims are not seen.

    Jumps at the two thresholds, and where the gradient changes sign.

    Attributes: scalars or [F].
        first: B/s, rate at the start.
        increase: B/s, additive increase (delta); 10 Mbps in the papers.
        beta: strength of the decrease; 0.8.
        smoothing: weight of an update in the gradient (alpha); 0.875.
        low, high: s; 50 us, 500 us.
        shortest: s, the shortest round trip; 20 us.
        segment: B, for which one delay is measured; 16 kB.
        least: B/s, smallest rate.
    """

    signals: ClassVar[bool] = True
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    first: Array
    increase: Array
    beta: Array
    smoothing: Array
    low: Array
    high: Array
    shortest: Array
    segment: Array
    least: Array

    def init(self, sender: Sender) -> TimelyState:
        """At the first rate, with no delay seen."""
        zero = jnp.zeros_like(sender.rtt)
        return TimelyState(zero + jnp.minimum(self.first * sender.dt / sender.unit, sender.rate), zero, zero, zero)

    def offer(self, state: TimelyState, sender: Sender) -> Array:
        """A step at the rate; there is no window."""
        return state.rate

    def between(self, rate: Array, delay: Array, gradient: Array, increase: Array, low: Array) -> Array:
        """[F] change of the rate by an update between the thresholds; delays and `low` in steps, rates in units."""
        return jnp.where(gradient <= 0.0, increase, -self.beta * gradient * rate)

    def step(self, state: TimelyState, feedback: Feedback, sender: Sender) -> TimelyState:
        """One step of the equations."""
        dt, some = sender.dt, feedback.acked > 0
        delay = jnp.where(some, feedback.delay, state.delay)
        shortest, low, high = self.shortest / dt, self.low / dt, self.high / dt
        rate, increase = state.rate, self.increase * dt / sender.unit
        update = jnp.where(some, 1.0 / jnp.maximum(self.segment / sender.unit / rate, shortest), 0.0)
        change = 2.0 * (delay - state.lagged) / shortest
        gradient = state.gradient + self.smoothing * update * (change - state.gradient)
        lagged = state.lagged + 2.0 * update * (delay - state.lagged)
        down = -self.beta * (1.0 - high / jnp.maximum(delay, high)) * rate
        within = self.between(rate, delay, gradient, increase, low)
        rate = rate + update * jnp.where(delay < low, increase, jnp.where(delay > high, down, within))
        least = jnp.minimum(self.least * dt / sender.unit, sender.rate)
        return TimelyState(jnp.clip(rate, least, sender.rate), delay, lagged, gradient)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PatchedTimely(Timely):
    """TIMELY with another rule between the thresholds (Zhu, Ghobadi, Misra, Padhye, CoNEXT 2016):

    dR/dt = (1 - w) increase / t - (w beta / t) R (d - low) / low,   w = clip(2 g + 1/2, 0, 1)

    and beta 0.008. N flows through a port of rate C settle at equal rates and a delay of
    low (1 + N increase / (beta C)), if that is below `high`. Else as Timely, with the same parameters.

    Jumps at `high`; between the thresholds it is smooth almost everywhere.
    """

    def between(self, rate: Array, delay: Array, gradient: Array, increase: Array, low: Array) -> Array:
        """The patched rule."""
        weight = jnp.clip(2.0 * gradient + 0.5, 0.0, 1.0)
        return (1.0 - weight) * increase - weight * self.beta * rate * (delay - low) / low
