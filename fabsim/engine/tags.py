"""Tagged bytes: the completion of a message is when its last byte, queueing at each hop, is at the receiver.

A tag meets at each hop the wait q/C of the moment when it gets there (first in, first out), on each lane that its flow
uses; the message is complete when the slowest lane is. The very last packet takes one lane, and the last ones of the
others went before it (see early). The well-mixed fluid decides shares; it never decides a completion, since its last
residue leaves a full port only exponentially.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from fabsim.engine.across import own
from fabsim.engine.luck import LAST_PACKET
from fabsim.engine.remade import remade
from fabsim.engine.setup import LATER, Setup
from fabsim.engine.state import Fluid, TagState
from fabsim.models.queue import TIE
from fabsim.typing import Array

BEHIND = 5.0
"""Steps by which the running mean of a queue is behind it where it grows evenly. Two numbers a link say what it was a
while ago, and a gradient has no past of all steps to keep. About half of a base round trip; of 2 to 8, which differ
little, the nearest to a memory of all steps on sprays over slow links."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Met:
    """The ports in a step, as tags meet them. [L + 1].

    Attributes:
        past: running mean of each queue, for last packets that came before the step; None where flows have a single
            lane, which has none.
        before, joined: queue at the start of the step, and what joined it in the step.
        opening: share of the step in which a port might send; None: all of it. A tag at a paused port stays.
    """

    past: Array | None
    before: Array
    joined: Array
    opening: Array | None


@remade
def landing(s: Setup, tags: TagState) -> tuple[Array, Array]:
    """Which messages reach their receiver within this step, and when in it: [T, F] bool, [T, F] in [0, 1)."""
    arrived = (tags.hop == s.problem.at.row.shape[0] + 1).all(-1)
    when = tags.due.max(-1)
    return tags.open & arrived & (when < 1.0), jnp.clip(when, 0.0, 1.0)


def close(tags: TagState, landed: Array) -> TagState:
    """Free the slots of messages that have landed."""
    return replace(tags, open=tags.open & ~landed)


@remade
def advance(s: Setup, tags: TagState, data: Fluid, waiting: Fluid, met: Met) -> TagState:
    """Move every tag by one step. data: what arrived at each hop in the step; waiting: what stood there before."""
    meets = (tags.hop <= s.problem.at.row.shape[0]) & (tags.due < 1.0)
    passed = 1.0 if met.opening is None else met.opening[port(s, tags.hop - 1)]
    if s.classes is not None:
        passed = served(s, tags, passed)
    elif s.faults is not None:  # unlike a pause, it befalls down links, too, but not what is on the wire behind them
        passed = jnp.where((tags.hop > s.problem.at.row.shape[0]) & (tags.due <= s.beyond), 1.0, passed)
    if s.wires is not None:
        passed = jnp.where(tags.due <= behind(s, tags.hop - 1), 1.0, passed)
    later = jnp.maximum(tags.due - passed, -LATER)
    capacity, met = own(s.problem, (s.capacity, met))
    s = replace(s, capacity=capacity)
    # In most steps no tag is at a port: then nothing has to be looked up.
    due = jax.lax.cond(
        meets.any(),
        lambda: jnp.where(meets, queued(s, tags, data, waiting, met), later),
        lambda: later,
    )
    return replace(tags, due=due, hop=tags.hop + meets)


def served(s: Setup, tags: TagState, pace: Array | float) -> Array:
    """[T, F, K] steps by which tags come nearer in this one, at a `pace` of their queues that is not that of the line:
    once they have left, it is that of the wire."""
    wire = 1.0 if s.wires is None else 1.0 + behind(s, tags.hop - 1)
    waits = tags.due - jnp.where(tags.hop > s.problem.at.row.shape[0], s.beyond, wire)
    to_go = jnp.maximum(waits, 0.0)
    return jnp.where((waits >= pace) & (waits > 0), pace, 1.0 + to_go - to_go / jnp.maximum(pace, 1e-6))


def port(s: Setup, hop: Array) -> Array:
    """[T, F, K] the link of each lane's port at these hops."""
    return at_hop(s.problem.route, hop)


def data_at(s: Setup, fluid: Fluid, hop: Array) -> Array:
    """[T, F, K] units of the flow's data at these hops, at the down link those of all its lanes."""
    down = jnp.repeat(fluid.egress[:, 0], s.share.shape[1] // s.problem.planes, -1)
    return at_hop(jnp.concatenate([fluid.fabric[:, :, 0], down[None]]), hop)


def at_hop(each: Array, hop: Array) -> Array:
    """[T, F, K] of something [N, F, K], what each lane has in these rows."""
    rows, flows, lanes = each.shape
    place = jnp.clip(hop, 0, rows - 1) * (flows * lanes) + jnp.arange(flows * lanes).reshape(flows, lanes)
    return each.reshape(-1)[place]


def behind(s: Setup, hop: Array) -> Array:
    """[T, F, K] steps on the long wires behind the ports of these hops, 0 where there are none; hop -1 is the NIC."""
    wires = s.wires
    assert wires is not None
    return jnp.where(hop < wires.ahead.shape[0] - 1, at_hop(wires.ahead, hop + 1), 0.0)


@remade
def queued(s: Setup, tags: TagState, data: Fluid, waiting: Fluid, met: Met) -> Array:
    """[T, F, K] `due` at the next hop of tags that are at a port in this step.

    A tag that gets to a port at t within the step waits for what stood there, and what has joined since, less what
    has left: q + own + (joined - own) t - C t. What its own flow brings in the step is all ahead of it, since it is the
    flow's last byte; the rest comes evenly.
    """
    hops, lanes = s.problem.at.row.shape[0], tags.hop.shape[2]
    link = port(s, tags.hop)
    t = jnp.clip(tags.due, 0.0, 1.0)
    stood, joins = jnp.moveaxis((jnp.stack([met.before, met.joined], -1) / s.capacity[:, None])[link], -1, 0)
    brought = data_at(s, data, tags.hop) / s.capacity[link]
    line = jnp.repeat(s.rate, lanes // s.problem.planes, -1)
    most = t * jnp.where(tags.hop < hops, line * s.within, line) / s.capacity[link]  # no flow is faster than its port
    own = at_most(at_most(brought, most), joins)
    may = 1.0 if met.opening is None else met.opening[link]
    others = joins - (own if s.wires is None else at_most(brought, joins))  # a line gives the last bytes late
    wait = stood + own + (others - (1.0 - TIE) * may) * t
    wait = jnp.where(wait > -TIE, wait, 0.0)  # a port at its capacity counts as full: see TIE
    if met.opening is not None:
        wait = wait + jnp.minimum((1.0 - may) * (1.0 - t), wait * (1.0 / jnp.maximum(may, 1e-6) - 1.0))
    due = tags.due + wait
    if met.past is not None:
        was = (met.past / s.capacity)[link]
        there = data_at(s, waiting.data(s.layers), tags.hop) > LAST_PACKET * s.packet[:, None]
        due = jnp.where(tags.due < 0, before_the_step(s, tags.due, stood, was, may, there), due)
    return due + jnp.where(tags.hop == hops, s.beyond - 1.0, 0.0 if s.wires is None else behind(s, tags.hop))


def before_the_step(s: Setup, due: Array, stood: Array, was: Array, may: Array | float, there: Array) -> Array:
    """[T, F, K] the same for a last packet that went before its flow's end (see early): it came at `due` < 0.

    It met the queue of then, less `may` of a step for each step since; the queue has since grown as fast as it does
    now, or shrunk, but not faster than its port sends. One that came more than a round trip ago has left, unless a
    packet of its flow is more likely than not still `there` (see LAST_PACKET): then it counts as if it had come a round
    trip ago. stood, was: [T, F, K] steps, the queue at the start of the step, and its running mean.
    """
    longest = s.round_trip[:, None]
    ago = jnp.clip(-due, 0.0, longest)
    grows = jnp.maximum((stood - was) / BEHIND, -may)
    then = jnp.maximum(stood - grows * ago, 0.0)
    left = then - may * ago
    return jnp.where((-due <= longest) | there, jnp.where(left > 0, left, left / jnp.maximum(may, 1e-6)), due)


def remember(past: Array | None, queue: Array) -> Array | None:
    """[L + 1] the running mean of each queue after a step that left `queue` [L + 1]."""
    return None if past is None else past + (queue - past) / (BEHIND + 1.0)


def at_most(x: Array, bound: Array) -> Array:
    """The smaller, with the derivative of x where the two are as good as equal."""
    return jnp.where(x <= bound * 1.001, x, bound)


def early(s: Setup, pace: Array) -> Array:
    """[F, K] steps by which the last packet of each lane goes before the flow's very last one, which takes some lane.

    Packets choose lanes by chance, so the last one of a lane with a share w goes before the end by an exponential time
    of a mean of 1 / w packets, and the flow's end is the latest of these (ages of independent Poisson processes). They
    are drawn once for each lane, by the seed of the run: smooth in the shares. A flow that ends with few packets, sent
    again one by one, ends on few lanes. pace: [F] units per step that it sends.
    """
    line = jnp.maximum(s.rate.sum(-1), 1e-9)
    assert s.ages is not None
    ages = s.ages / jnp.maximum(s.share, 1e-6)
    packets = ages - ages.min(-1, keepdims=True)
    return (s.packet / jnp.clip(pace, 1e-3 * line, line))[:, None] * packets


@remade
def attach(s: Setup, tags: TagState, now: Array, when: Array, final: Array, pace: Array) -> TagState:
    """Tag the byte that each flow of `now` [F] has just sent, `when` [F] in the step; it is final where `final` [F]."""
    p = s.problem
    mine = (jnp.arange(tags.open.shape[0])[:, None] == tags.turn) & now

    def tagged() -> TagState:
        hops = p.at.row.shape[0]
        sent = when[:, None] if s.ages is None else when[:, None] - early(s, pace)
        sent = sent if s.wires is None else sent + s.wires.ahead[0]
        due = jnp.where(s.used, sent, -LATER)
        hop = jnp.where(s.used, p.first, hops + 1)
        return TagState(
            due=jnp.where(mine[:, :, None], due, tags.due),
            hop=jnp.where(mine[:, :, None], hop, tags.hop),
            open=tags.open | mine,
            final=jnp.where(mine, final, tags.final),
            turn=jnp.where(now & ~final, (tags.turn + 1) % tags.open.shape[0], tags.turn),
        )

    # In most steps no message ends. The branch is a bound, too: what is known by flow is not made again for each lane.
    return jax.lax.cond(now.any(), tagged, lambda: tags) if s.side_by_side else tagged()
