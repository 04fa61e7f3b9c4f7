"""One step of the dynamics."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import jax
import jax.numpy as jnp

from fabsim.engine import behind, classed, faults, found, paths, tags, telemetry
from fabsim.engine.across import total
from fabsim.engine.crossing import Lines, come_back
from fabsim.engine.even import even_split
from fabsim.engine.fair import beside_acks, fair_rates
from fabsim.engine.faults import Now
from fabsim.engine.feedback import as_feedback, heard, tell_apart
from fabsim.engine.flags import watch
from fabsim.engine.holes import NEXT_TO_NOTHING, late, tell
from fabsim.engine.layers import turn
from fabsim.engine.network import Missing, arriving, depart, give_up, hold, leaves, serve, travel
from fabsim.engine.part import Moved, Passage
from fabsim.engine.pause import at_down_links, ingress, opening
from fabsim.engine.port import for_data, inject
from fabsim.engine.release import complete, fire, release
from fabsim.engine.setup import Setup, steer
from fabsim.engine.state import FlowState, LastPorts, State, sender
from fabsim.models import acks
from fabsim.models.go_back import GoBackN
from fabsim.models.protocol import Feedback
from fabsim.models.queue import Signal
from fabsim.models.recovery import RecoveryState
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Seen:
    """What one step shows to the outside. [L + 1] and [F], units.

    Attributes:
        signal: what the ports did.
        queue: [L + 1] data waiting at the end of the step.
        again: [F] units that the sender learnt it must send again.
        injected: [F, P] units that the sender's ports sent.
        left: [L + 1] data that left each link, those of senders included.
        opening: [L + 1] share of the step in which each link was not paused; None where nobody pauses.
        loss: [L + 1] share of what left that links lost; None where they lose nothing.
    """

    signal: Signal
    queue: Array
    again: Array
    injected: Array
    left: Array
    opening: Array | None
    loss: Array | None


def step(s: Setup, state: State) -> tuple[State, Seen]:
    """Advance everything by one step. Laws know the fabric as it was built: `base`."""
    with jax.named_scope("complete"):
        landed, when = tags.landing(s, state.tags)
        flow, done = complete(s, state.flow, state.tags, landed, when, state.step)
        flow, fired = fire(s, flow, state.fired, done, state.step)
    with jax.named_scope("hear"):
        lines = state.lines
        back, home = come_back(s, state.ring, None if lines is None else lines.back, state.step)
        feedback = as_feedback(back)
        if state.links is not None:
            feedback = replace(feedback, path=telemetry.look_back(s, state.links, state.step))
        recovery, lots, since = time_out(s, state, feedback)
        missed = lots.sum(-1)
        feedback = replace(feedback, nacked=feedback.nacked + missed)
        flow = hear(flow, feedback)
    balance = by_path_home = None
    if s.balancer is not None and state.paths is not None:
        with jax.named_scope("balance"):
            lanes, gone_by = found.miss(state.paths, lots, recovery)
            state = replace(state, paths=lanes)
            by_path_line = None if lines is None else lines.paths
            back, by_path_home = paths.look_back(s, lanes, by_path_line, state.step)
            back = replace(back, lost=gone_by, found=found.find(s, state.step))
            if s.evens:
                fabric = faults.slowed(*faults.look(s, state.step))
                now = s.balancer.split(state.balance, s.share)
                back = replace(back, even=even_split(fabric, flow, state.ports.queue, now))
            balance = s.balancer.step(state.balance, back, s.share, sender(s, flow))
            s = steer(s, s.balancer.split(balance, faults.known(s, state.step)))
    base = s
    pauses, (s, events) = opening(s, state), faults.look(s, state.step)
    may = both(pauses, events)
    with jax.named_scope("send"):
        stream = heard(state.ring, state.step, s.beyond_mean)[0] if s.problem.coupled else flow.credit
        flow, released, at = release(s, flow, landed, when, stream, state.step)
        flow = replace(flow, credit=flow.credit + released)
        if recovery is not None:
            at = jnp.maximum(jnp.where(released > 0, at, 0.0), jnp.where(missed > 0, since, 0.0))
            released = released + missed
        fair = fair_rates(beside_acks(faults.slowed(s, events), state.sent), flow) if s.transport.needs_fair else None
        told = sender(base, flow, fair)
        law = s.transport.step(state.law, feedback, told)
        room = s.transport.offer(law, told)
        sent, goes = inject(for_data(s, may, state.sent), flow, state.ports, room, released, at)
    with jax.named_scope("move"):
        ports, signal, headers = serve(s, state, may)
        ports, signal = hold(s, ports, signal, events)
        joined = signal.sent + ports.queue - state.ports.queue
        layers = turn(state.layers, ports.queue, signal, events)
        ports, signal = give_up(ports, signal, events)
        pace = may if signal.pace is None else signal.pace
        data, trimmed = arriving(state)
        waiting, out, cut = depart(s, state.waiting, data, signal, layers, pace, events)
        leaving = leaves(s, out, trimmed, cut)
        left = signal.sent + total(s.problem, by_link(s, sent))
        ports = classed.spend(s, ports, left)
        down = at_down_links(s, state, signal, layers, events)
        pause, loss = ingress(s, state, waiting, down, left)
        moving, reached, gone, onto, ahead = travel(s, state, leaving, sent, loss)
        reached = tell_apart(reached, onto) if s.apart else reached
        last = None if down is None else LastPorts(down, onto[:, 0])
        parts = state.behind, state.ahead
        if state.behind is None:
            recovery, reached, lost, anew = lose(s, recovery, reached, cut.by_flow(), gone)
        else:
            full = late(signal, state.ports.queue, ports.queue)
            how = Passage(signal, layers, pace, events, loss, full)
            moved = Moved(data, waiting, moving, cut, gone, reached)
            torn = behind.go_back(s, replace(state, recovery=recovery), how, moved, sent, flow.in_flight, room)
            parts, recovery, reached, lost, anew = torn
        by_path = paths.advance(s, state, signal, layers, pace, events, loss, onto, (cut, gone), anew)
    with jax.named_scope("tag"):
        tag = tags.close(state.tags, landed)
        met = tags.Met(state.past, state.ports.queue, joined, passing(pace, events))
        tag = tags.advance(s, tag, data, state.waiting, met)
        begun = flow
        flow, now, final = account(s, flow, sent.sum(-1), lost)
        tag = tags.attach(s, tag, now, goes, final, pace_of(s, begun, feedback.nacked, sent.sum(-1)))
        flags = watch(state, tag, now, final)
    ring = state.ring.at[state.step % state.ring.shape[0]].set(reached)
    links = state.links
    if links is not None:
        links = telemetry.remember(links, state.step, ports.queue, signal.sent)
    after = State(
        step=state.step + 1,
        flow=flow,
        tags=tag,
        ports=ports,
        waiting=waiting,
        moving=moving,
        ring=ring,
        links=links,
        past=tags.remember(state.past, ports.queue),
        fired=fired,
        sent=None if state.sent is None else left * per_packet(s, signal, reached) + headers / s.header_mean,
        law=law,
        flags=flags,
        recovery=recovery,
        layers=layers,
        pause=pause,
        last=last,
        balance=balance,
        paths=by_path,
        lines=None if ahead is None or home is None else Lines(ahead, home, by_path_home),
        behind=parts[0],
        ahead=parts[1],
    )
    return after, Seen(signal, ports.queue, feedback.nacked, sent, left, pauses, loss)


def both(pauses: Array | None, events: Now | None) -> Array | None:
    """[L + 1] the share of the step in which each link may send, as its head says and as the link itself can."""
    if events is None:
        return pauses
    return events.up if pauses is None else pauses * events.up


def passing(may: Array | None, events: Now | None) -> Array | None:
    """[L + 1] the same for last bytes: one that is given up goes on, and what is lost of its message comes later."""
    return may if events is None or may is None else jnp.maximum(may, events.given_up)


def per_packet(s: Setup, signal: Signal, reached: Array) -> Array | float:
    """Acknowledgements of a packet on average in this step: of all flows together, of which so much is marked at ports,
    while so much has `reached` [C, F] receivers."""
    if s.per_ack is None:
        return 1.0
    came = total(s.problem, reached[0].sum())
    return acks.per_packet(signal.marked.sum() / jnp.maximum(came, 1e-6), s.per_ack)


def pace_of(s: Setup, flow: FlowState, again: Array, sent: Array) -> Array:
    """[F] units per step that a flow sends: what comes back, or, where it has nothing but what it sends `again` [F] in
    this step, as fast as that comes."""
    going = jnp.where(flow.in_flight > s.packet, flow.in_flight / s.round_trip, s.rate.sum(-1))
    return jnp.where(flow.credit <= again * (1.0 + 1e-6), sent, going)


def time_out(s: Setup, state: State, back: Feedback) -> tuple[RecoveryState | None, Array, Array]:
    """Silent losses whose timeout is in this step, [F, N] units by lots, and [F] when in it; the sender takes them as
    reported."""
    if s.recovery is None or state.recovery is None:
        none = jnp.zeros_like(back.acked)
        return None, none[:, None], none
    recovery = state.recovery
    if isinstance(s.recovery, GoBackN):
        recovery = s.recovery.hear(recovery, back.acked)
    return s.recovery.expire(recovery, back.acked > NEXT_TO_NOTHING * s.few)


def lose(
    s: Setup, recovery: RecoveryState | None, reached: Array, cut: Array, gone: Missing | None
) -> tuple[RecoveryState | None, Array, Array, Array | None]:
    """Book silent losses: the state, [C, F] what the receivers take of what reached them, [F] all that is lost, and
    [F] whether that begins a new lot.

    Of each loss a part is lost again, and so on: what is next to nothing arrives.

    cut: [F] units that ports cut; gone: what links lost.
    """
    if s.recovery is None or recovery is None:
        return None, reached, cut, None
    silent = jnp.zeros_like(cut) if s.queue.trims else cut
    silent = silent if gone is None else silent + gone.by_flow()
    (silent,), nothing = tell(s, silent[None])
    reached = reached.at[0].add(nothing)
    recovery, anew = s.recovery.lose(recovery, silent)
    lost = silent + cut if s.queue.trims else silent
    if gone is not None and gone.headers is not None:  # what was cut before is lost already
        lost = lost - gone.headers
    return recovery, reached, lost, anew


def by_link(s: Setup, sent: Array) -> Array:
    """[L + 1] what the senders' own links carried."""
    return jnp.zeros_like(s.capacity).at[s.problem.port_link].add(sent)


def hear(flow: FlowState, back: Feedback) -> FlowState:
    """Acknowledgements free the window; what was lost waits to be sent again."""
    return replace(
        book(flow, -back.nacked),
        credit=flow.credit + back.nacked,
        until=flow.until + back.nacked,
        in_flight=flow.in_flight - back.acked - back.nacked,
    )


def book(flow: FlowState, lost: Array) -> FlowState:
    """[F] units more that are lost, summed up without rounding (Knuth, The Art of Computer Programming, vol. 2, section
    4.2.2, theorem B)."""
    more = lost + flow.slip
    now = flow.lost + more
    took = now - flow.lost
    return replace(flow, lost=now, slip=(flow.lost - (now - took)) + (more - took))


def account(s: Setup, flow: FlowState, sent: Array, lost: Array) -> tuple[FlowState, Array, Array]:
    """Book what was sent and lost; say which flows [F] have just sent the last byte of a message, and of all."""
    credit = flow.credit - sent
    owed = flow.owed | (flow.credit + flow.lost > s.few)
    final = (credit <= 0) & (flow.held <= 0)
    ends = (sent > 0) & (final | ((s.grain > 0) & (sent >= flow.until * (1.0 - 1e-6))))
    now = ends & (owed | ~final)
    spill = jnp.maximum(sent - flow.until, 0.0)
    left = credit + flow.held + spill
    following = jnp.where(final, 0.0, jnp.where(s.grain > 0, jnp.minimum(s.grain, left), left) - spill)
    flow = replace(
        book(flow, lost),
        credit=credit,
        in_flight=flow.in_flight + sent,
        until=jnp.where(ends, following, flow.until - sent),
        owed=owed & ~(now & final),
    )
    return flow, now, final
