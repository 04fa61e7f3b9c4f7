"""All hops at once: load the links, let each port cut, mark and serve, and move what leaves one hop on."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import jax
import jax.numpy as jnp

from fabsim.engine.across import total
from fabsim.engine.crossing import cross
from fabsim.engine.faults import Now
from fabsim.engine.layers import Layers, by_place
from fabsim.engine.remade import remade
from fabsim.engine.setup import Setup
from fabsim.engine.state import Fluid, State
from fabsim.models.queue import NOTHING, PortState, Signal, TrimQueue
from fabsim.typing import Array
from fabsim_kernels.load import load, read


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Missing:
    """What does not go on, units.

    Attributes:
        fabric: [H, F, K].
        egress: [F, P] at the receivers' down links.
        nic: [F, P] behind the senders' ports; None where nothing is lost there.
        headers: [F] of these, what had been cut before, and whose header is lost now; None where nothing is lost.
    """

    fabric: Array
    egress: Array
    nic: Array | None = None
    headers: Array | None = None

    def by_flow(self) -> Array:
        """[F] all of it."""
        inner = self.fabric.sum((0, -1)) + self.egress.sum(-1)
        return inner if self.nic is None else inner + self.nic.sum(-1)


def serve(s: Setup, state: State, opening: Array | None) -> tuple[PortState, Signal, Array]:
    """What every port does with what arrives in this step, and [L + 1] units of headers of trimmed packets that pass
    it. opening: [L + 1] share of the step in which a port may send.

    Acknowledgements go ahead of the data, as the headers of trimmed packets do. They take the links of the data the
    other way: what leaves a link now is acknowledged over its opposite, a round trip later, which is not waited for.
    """
    p = s.problem
    scale = jnp.stack([jnp.ones_like(s.header), s.header], -1)[:, :, None]
    fabric, egress = state.moving.fabric[:, :, :2] * scale, state.moving.egress[:, :2] * scale
    arrive = total(p, load(p.at, fabric, egress, p.queues))
    cut = arrive[:, 1] + s.header_mean * state.ports.trimmed
    headers = cut
    if state.sent is not None:
        headers = headers + s.header_mean * state.sent[p.reverse]
    tail = p.tail if s.queue.shares else None
    step = remade(s.queue.step)
    return *step(state.ports, s.capacity, arrive[:, 0], headers, s.random, opening, tail, s.classes), cut


def hold(s: Setup, ports: PortState, signal: Signal, events: Now | None) -> tuple[PortState, Signal]:
    """Dead ports keep what they would trim."""
    if events is None or not s.queue.trims:
        return ports, signal
    more = signal.drop * events.dead
    queue, drop = ports.queue + more, signal.drop - more
    stands = queue + signal.sent
    return replace(ports, queue=queue, trimmed=drop), replace(
        signal,
        drop=drop,
        keep=signal.keep + (1.0 - signal.keep) * events.dead,
        leave=jnp.where(more > 0, signal.sent / jnp.where(stands > NOTHING, stands, 1.0), signal.leave),
    )


def give_up(ports: PortState, signal: Signal, events: Now | None) -> tuple[PortState, Signal]:
    """Ports without what their senders take for lost."""
    if events is None:
        return ports, signal
    kept = 1.0 - events.given_up
    drop = signal.drop + ports.queue * events.given_up
    return replace(ports, queue=ports.queue * kept, headers=ports.headers * kept), replace(signal, drop=drop)


def arriving(state: State) -> tuple[Fluid, Fluid]:
    """What arrives at each hop in this step: data (marked, waited), and what has been trimmed."""
    fabric, egress = apart(state.moving.fabric), apart(state.moving.egress)
    return Fluid(fabric[0], egress[0]), Fluid(fabric[1], egress[1])


@remade
def depart(
    s: Setup,
    waiting: Fluid,
    data: Fluid,
    signal: Signal,
    layers: Layers | None,
    opening: Array | None,
    events: Now | None,
) -> tuple[Fluid, Fluid, Missing]:
    """What waits after this step, what leaves each hop in it (both without what was trimmed before, which waits
    nowhere), and what was cut or given up."""
    fabric, egress = read(s.problem.at, acts(s, signal, layers, opening, events))
    wait_f, out_f, cut_f = mix_hop(waiting.fabric, data.fabric, fabric, s.queue, events is not None)
    wait_e, out_e, cut_e = mix_hop(waiting.egress, data.egress, egress, s.queue, events is not None)
    return Fluid(wait_f, wait_e), Fluid(out_f, out_e), Missing(cut_f, cut_e)


def acts(s: Setup, signal: Signal, layers: Layers | None, opening: Array | None, events: Now | None) -> Array:
    """[L + 1, ...] what each port does to what passes it, as `mix_hop` reads it."""
    seen = [signal.keep] + ([signal.leave] if layers is None else [layers.gone, layers.place])
    seen += [signal.mark, signal.wait] if s.signals else []
    if s.signals and opening is not None:
        seen.append(1.0 - opening)
    if events is not None:
        seen.append(events.given_up)
    return jnp.stack(seen, -1)


def leaves(s: Setup, out: Fluid, trimmed: Fluid, cut: Missing) -> Fluid:
    """All that leaves each hop: what was trimmed before passes all queues, and what is cut now goes with it."""
    return Fluid(
        together(out.fabric, trimmed.fabric, cut.fabric, s.queue),
        together(out.egress, trimmed.egress, cut.egress, s.queue),
    )


def travel(
    s: Setup, state: State, leaving: Fluid, sent: Array, loss: Array | None
) -> tuple[Fluid, Array, Missing | None, Array, Array | None]:
    """Move what leaves one hop on: moving of the next step, [C, F] what reached the receivers, what links lost,
    [F, C, K] what comes to the receivers' down links by each lane, and the lines of long wires.

    sent: [F, P] units that leave by each port of the senders; loss: [L + 1] share of what leaves that a link loses.
    Every amount that leaves one place is the very number that arrives in the next: conservation by construction.
    """
    p, line = s.problem, None
    out_f, out_e, gone = leaving.fabric, leaving.egress, None
    if loss is not None:
        fabric, egress = read(p.at, loss[:, None])
        out_f, off_f = over_wire(out_f, fabric)
        out_e, off_e = over_wire(out_e, egress)
        off = sent * loss[p.port_link]
        headers = off_f[..., 1, :].sum((0, -1)) + off_e[..., 1, :].sum(-1)
        sent, gone = sent - off, Missing(off_f[..., 0, :] + off_f[..., 1, :], off_e[..., 0, :] + off_e[..., 1, :], off)
        gone = replace(gone, headers=headers)
    hops, flows, channels, lanes = out_f.shape
    planes = sent.shape[1]

    def by_plane(x: Array) -> Array:
        """[..., K] -> [..., P] sums."""
        return x.reshape(*x.shape[:-1], planes, lanes // planes).sum(-1)

    entering = (s.within.reshape(flows, planes, -1) * sent[:, :, None]).reshape(flows, lanes)
    entering = jnp.pad(entering[:, None], ((0, 0), (0, channels - 1), (0, 0)))
    if state.lines is not None:
        line, entering, out_f = cross(s, state.lines.ahead, state.step, entering, out_f)
    enters = (jnp.arange(hops + 1)[:, None, None] == p.first)[:, :, None]
    onward, onto = out_f, jnp.where(enters[hops], entering, 0.0)
    if hops:
        onto = onto + out_f[-1]
        onward = jnp.where(enters[:hops], entering, jnp.concatenate([jnp.zeros_like(out_f[:1]), out_f[:-1]]))
    return Fluid(onward, by_plane(onto)), out_e.sum(-1).T, gone, onto, line


def pass_hop(waiting: Array, moving: Array, seen: Array, queue: TrimQueue, dies: bool) -> tuple[Array, Array, Array]:
    """The well-mixed queue of one subflow at one hop. [..., C, K] -> waiting, leaving, cut [..., K].

    Channels of waiting: data (marked, waited); of moving and leaving: data, trimmed (marked, waited). See mix_hop.
    """
    data, trimmed = apart(moving)
    stay, out, cut = mix_hop(waiting, data, seen, queue, dies)
    return stay, together(out, trimmed, cut, queue), cut


def apart(moving: Array) -> tuple[Array, Array]:
    """Channels data (marked, waited), and [..., 1, K] trimmed."""
    data, trimmed, *signals = jnp.split(moving, moving.shape[-2], -2)
    return jnp.concatenate([data, *signals], -2), trimmed


def together(out: Array, trimmed: Array, cut: Array, queue: TrimQueue) -> Array:
    """The reverse; what is cut goes on as trimmed, or not at all."""
    data, *signals = jnp.split(out, out.shape[-2], -2)
    return jnp.concatenate([data, trimmed + cut[..., None, :] if queue.trims else trimmed, *signals], -2)


def mix_hop(waiting: Array, data: Array, seen: Array, queue: TrimQueue, dies: bool) -> tuple[Array, Array, Array]:
    """[..., C, K] -> waiting, leaving, cut [..., K], with channels data (marked, waited); of waiting each in N layers.

    A pause makes all that stands wait longer than it was to when it joined. Where a port `dies`, the last of what is
    seen is the share of what stands there that is given up.
    """
    keep, leave, *signals = jnp.split(seen, seen.shape[-2], -2)
    layers = waiting.shape[-2] // data.shape[-2]
    leave, into = (leave, 1.0) if layers == 1 else by_place(leave, signals.pop(0), layers)
    given_up = signals.pop() if dies else None
    came, *came_signals = jnp.split(data, data.shape[-2], -2)
    stood, *stood_signals = jnp.split(waiting, waiting.shape[-2] // layers, -2)
    kept = came * keep
    cut = came - kept
    stands = stood + kept * into
    goes = leave * stands
    left, out = stands - goes, all_of(goes)
    if given_up is not None:
        cut = cut + all_of(left) * given_up
        left = left * (1.0 - given_up)
    stay, go = [left], [out]
    if stood_signals:
        mark, wait, *paused = signals
        joins = came_signals[0] * keep
        joins = joins + (kept - joins) * mark if queue.at_enqueue else joins
        marked = stood_signals[0] + joins * into
        marked_goes = leave * marked
        waited = stood_signals[1] + (came_signals[1] * keep + kept * wait) * into
        if paused:
            waited = waited + stood * paused[0]
        waited_goes = leave * waited
        rest = [marked - marked_goes, waited - waited_goes]
        stay += rest if given_up is None else [x * (1.0 - given_up) for x in rest]
        marked_out = all_of(marked_goes)
        go += [marked_out if queue.at_enqueue else marked_out + (out - marked_out) * mark, all_of(waited_goes)]
    return jnp.concatenate(stay, -2), jnp.concatenate(go, -2), cut[..., 0, :]


def all_of(layers: Array) -> Array:
    """[..., N, K] -> [..., 1, K] sums."""
    return layers if layers.shape[-2] == 1 else layers.sum(-2, keepdims=True)


def over_wire(leaving: Array, loss: Array) -> tuple[Array, Array]:
    """What is lost on the link behind a port. [..., C, K], loss [..., 1, K] -> the rest, and what is lost."""
    off = leaving * loss
    return leaving - off, off
