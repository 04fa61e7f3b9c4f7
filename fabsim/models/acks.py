"""Packets as their acknowledgements show them: marked ones have their own, and some clean ones share one.

A receiver acknowledges a marked packet at once, and one that asks for it; else every n-th. With odds m to be marked and
a to ask, s = (1 - m) (1 - a) are those to be silent. A run of packets to the next acknowledgement has
(1 - s^n) / (1 - s) on average, and of all packets those in runs that end marked are
m / (1 - s) (1 - n s^n (1 - s) / (1 - s^n)).

A packet asks that fills the window: the last one that the sender may send then. Where each acknowledgement releases as
many as it stands for, R, and the port is busy for a part r of the time, that is one of (1 - r) / R (a queue with batch
arrivals). Of no marks that gives a = 1 - r^(1/n); of marks, which make runs of R' packets on average without any that
ask, nearly 1 - r^(1/R').

Sources: UEC specification 1.0 (when receivers acknowledge); the sink of uet-htsim.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback
from fabsim.typing import Array

LEAST = 1e-3
"""Odds of a run's end, and a port's load, that are not gone below: what divides by them stays finite."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Heard:
    """Packets of a step as their acknowledgements show them. [F].

    Attributes:
        clean_acks, marked_acks: how many come back unmarked and marked.
        clean: units that unmarked ones tell of.
        clean_delay, marked_delay: steps that the packets which they name waited.
    """

    clean_acks: Array
    marked_acks: Array
    clean: Array
    clean_delay: Array
    marked_delay: Array


def by_ack(feedback: Feedback, delays: tuple[Array, Array], packet: Array, many: Array, busy: Array) -> Heard:
    """What comes back in a step. The odds m are those that its packets had: where chance has marked them, and they are
    few, those around them are taken to be like them, and clean ones share more than they would (of a packet a step, a
    quarter of them marked, acknowledgements of clean ones tell of 0.75 of all bytes in place of 0.46).

    Args:
        delays: see `delays_apart`.
        packet: units of a packet.
        many: clean packets that one acknowledgement stands for, n above.
        busy: [F] part of the time that the sender's port sends, r; 1 where no packet asks.
    """
    packets, some = feedback.acked / packet, feedback.acked > 1e-9
    marked = jnp.where(some, feedback.marked / jnp.where(some, feedback.acked, 1.0), 0.0)
    clean = jnp.clip(1.0 - marked, 0.0, 1.0 - LEAST)
    asks = 1.0 - jnp.clip(busy, LEAST, 1.0) ** ((1.0 - clean) / (1.0 - clean**many))
    silent = clean * (1.0 - asks)
    nobody = silent**many
    run = (1.0 - nobody) / (1.0 - silent)
    told_marked = marked / (1.0 - silent) * (1.0 - many * nobody / run)
    marked_delay, clean_delay = delays
    return Heard(
        clean_acks=packets * jnp.maximum(1.0 / run - marked, 0.0),
        marked_acks=packets * marked,
        clean=feedback.acked * (1.0 - jnp.clip(told_marked, marked, 1.0)),
        clean_delay=clean_delay,
        marked_delay=marked_delay,
    )


def per_packet(marked: Array, many: Array) -> Array:
    """Acknowledgements of a packet on average, where such a share is marked, and nobody asks for one."""
    marked = jnp.clip(marked, LEAST, 1.0 - LEAST)
    return marked / -jnp.expm1(many * jnp.log1p(-marked))


def delays_apart(feedback: Feedback) -> tuple[Array, Array]:
    """[F] steps that marked packets waited on average, and that the others did."""
    if feedback.marked_delay is None:
        return feedback.delay, feedback.delay
    waited, of_marked = feedback.delay * feedback.acked, feedback.marked_delay * feedback.marked
    clean = feedback.acked - feedback.marked
    some = clean > jnp.maximum(1e-6 * feedback.acked, 1e-9)  # one over its square is a number, too
    others = jnp.where(some, jnp.maximum(waited - of_marked, 0.0) / jnp.where(some, clean, 1.0), feedback.delay)
    return feedback.marked_delay, others
