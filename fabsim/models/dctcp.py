"""DCTCP: a window cut in proportion to the share of marked packets."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender
from fabsim.typing import Array

CERTAIN = 1.0 - 1e-6
"""Of packets that are all marked: so that the logarithm of none has a slope."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DctcpState:
    """[F]. window: units; share: smoothed share of marked bytes (alpha)."""

    window: Array
    share: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Dctcp:
    """Window W and smoothed share of marks a, of a round trip R in which a share p of the packets is marked:

    dW/dt = packet / R - (W a / 2 R) (1 - (1 - p)^n),   da/dt = (g / R) (p - a),   n = W / packet

    (Alizadeh et al., SIGCOMM 2010; the fluid model, for marks that are certain: Alizadeh, Javanmard, Prabhakar,
    SIGMETRICS 2011). The window is cut once a round trip if any of its n packets is marked: of marks with odds that is
    1 - (1 - p)^n. Time goes by in acknowledgements: a window of them is a round trip. A trimmed byte counts as a marked
    one. Slow start is left out.

    It wants marks that begin and are certain at one queue K (ecn_low = ecn_high). N long flows through a port of rate C
    then oscillate; with W = (C d + K) / N packets for a round trip d without queueing, a is near sqrt(2 / W). The queue
    reaches K + N packets where marks are set on arrival, and a little less where they are set on leaving.

    Smooth in all parameters; the step of the marks at K is not, a ramp between two thresholds is.

    Attributes: scalars or [F].
        first: B, window at the start.
        largest: B, largest window.
        gain: weight of one round trip in a (g); 1/16 in the paper.
        increase: packets by which the window grows a round trip.
    """

    signals: ClassVar[bool] = True
    needs_fair: ClassVar[bool] = False
    telemetry: ClassVar[bool] = False
    first: Array
    largest: Array
    gain: Array
    increase: Array

    def init(self, sender: Sender) -> DctcpState:
        """The first window, and no marks seen."""
        zero = jnp.zeros_like(sender.rtt)
        return DctcpState(zero + self.first / sender.unit, zero)

    def offer(self, state: DctcpState, sender: Sender) -> Array:
        """What the window leaves free."""
        return jnp.maximum(state.window - sender.in_flight, 0.0)

    def step(self, state: DctcpState, feedback: Feedback, sender: Sender) -> DctcpState:
        """All acknowledgements of a step at once."""
        heard, marked = feedback.acked + feedback.nacked, feedback.marked + feedback.nacked
        trips = heard / state.window
        cut = cuts(marked, heard, state.window, sender.packet)
        window = state.window + self.increase * sender.packet * trips - 0.5 * state.share * heard * cut
        share = state.share + self.gain * (marked / state.window - state.share * trips)
        window = jnp.clip(window, sender.packet, self.largest / sender.unit)
        return DctcpState(window, jnp.clip(share, 0.0, 1.0))


def cuts(marked: Array, heard: Array, window: Array, packet: Array) -> Array:
    """[F] how likely it is that a window has a marked packet, where [F] `marked` of [F] `heard` units are."""
    some = heard > 1e-9
    share = jnp.where(some, marked / jnp.where(some, heard, 1.0), 0.0)
    clean = jnp.log1p(-jnp.minimum(share, CERTAIN))
    return -jnp.expm1(clean * window / jnp.where(packet > 0, packet, 1.0))  # an empty flow has no packet
