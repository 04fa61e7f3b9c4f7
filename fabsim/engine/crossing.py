"""What long wires do in a run: their delays, what is on them, and how it gets on and off."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from fabsim.engine.feedback import heard
from fabsim.engine.line import put, take
from fabsim.typing import Array

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.engine.setup import Setup


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Stretch:
    """The wires of a run, in steps. N = X K lines.

    Attributes:
        delay: [N] of each line, 1 where there is none; stride: [N] of its cells.
        long: [X, K] whether there is a line.
        ahead: [H + 1, F, K] steps on the long wire behind the NIC and behind each fabric hop, 0 for none.
        back: [G] of each way back; back_stride: [G] of its cells.
        home: [F] the same for all flows, 0 for those that do not cross.
    """

    delay: Array
    stride: Array
    long: Array
    ahead: Array
    back: Array
    back_stride: Array
    home: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Lines:
    """What is on the long wires. Channels C as in Fluid.moving.

    Attributes:
        ahead: [D, N, C] on the way to the receivers.
        back: [D, G, C] acknowledgements on the way back.
        paths: [D, G, 3 K] the same by path, for balancers; None without one.
    """

    ahead: Array
    back: Array
    paths: Array | None


def stretch(p: Problem, wire: Array, share: Array, beyond: Array) -> Stretch | None:
    """The wires with the latencies [L + 1] (steps) of the model. share, beyond: [F, K].

    The wire's line takes its latency less the pipeline's step. Where the other links of a lane are so short that the
    pipeline would be slower than they are, the line is shorter by as much.
    """
    w = p.wires
    if w is None:
        return None
    nic = jnp.repeat(p.port_link, share.shape[-1] // p.planes, -1)
    link = jnp.concatenate([nic[None], p.route[:-1]])[w.source, w.flow]
    long, real = w.stride > 0, share.dtype
    whole = jnp.where(long, wire[link], 0.0)
    many, on_wire, extra = (
        jnp.zeros_like(share).at[w.flow].add(x.astype(real)) for x in (long, whole, jnp.where(long, whole - 1.0, 0.0))
    )
    short = jnp.maximum(1.0 - (beyond - extra), 0.0) / jnp.maximum(many, 1.0)
    delay = jnp.where(long, whole - 1.0 - short[w.flow], 0.0)
    home = (share * on_wire).sum(-1)
    return Stretch(
        delay=jnp.where(long, delay, 1.0).reshape(-1),
        stride=jnp.maximum(w.stride, 1).astype(jnp.int32).reshape(-1),
        long=long,
        ahead=jnp.zeros(p.route.shape, real).at[w.source, w.flow].set(delay),
        back=home[w.far],
        back_stride=jnp.maximum(w.back, 1).astype(jnp.int32),
        home=home,
    )


def empty(s: Setup, channels: int, back: int) -> Lines | None:
    """Wires with nothing on them. channels, back: of what goes ahead, and of what comes back."""
    w, real = s.problem.wires, s.share.dtype
    if w is None:
        return None
    lines, flows = w.stride.size, w.far.shape[0]
    return Lines(
        ahead=jnp.zeros((w.cells, lines, channels), real),
        back=jnp.zeros((w.cells, flows, back), real),
        paths=None if s.balancer is None else jnp.zeros((w.cells, flows, 3 * s.share.shape[1]), real),
    )


def cross(s: Setup, line: Array, step: Array, entering: Array, leaving: Array) -> tuple[Array, Array, Array]:
    """Put what leaves for long wires onto them, and take off what arrives: the line, and both as the ports behind get
    them.

    entering: [F, C, K] from the NICs; leaving: [H, F, C, K] from the fabric hops.
    """
    w, wires = s.problem.wires, s.wires
    assert w is not None
    assert wires is not None
    out = jnp.concatenate([entering[None], leaving])
    here = out[w.source, w.flow]
    rows = jnp.where(wires.long[:, None], here, 0.0).swapaxes(1, 2).reshape(line.shape[1:])
    line = put(line, step, wires.stride, rows)
    there = take(line, step, wires.stride, wires.delay).reshape(*wires.long.shape, -1).swapaxes(1, 2)
    out = out.at[w.source, w.flow].set(jnp.where(wires.long[:, None], there, here))
    return line, out[0], out[1:]


def come_back(s: Setup, ring: Array, line: Array | None, step: Array) -> tuple[Array, Array | None]:
    """[C, F] what comes back to the senders now, of what reached the receivers (a ring [D, C, F]), and the line
    [D, G, C] of the flows that cross."""
    w, wires = s.problem.wires, s.wires
    near = heard(ring, step, s.beyond_mean + s.near_back)
    if w is None or wires is None or line is None:
        return near, None
    line = put(line, step, wires.back_stride, near[:, w.far].T)
    return near.at[:, w.far].set(take(line, step, wires.back_stride, wires.back).T), line


def after(wires: Stretch, share: Array) -> Array:
    """[H + 1, F] steps on long wires between each port and the receiver, on average over the paths."""
    on_wire = (share * wires.ahead).sum(-1)
    return jnp.concatenate([on_wire[:0:-1].cumsum(0)[::-1], jnp.zeros_like(on_wire[:1])])


def unfit(p: Problem, wires: Stretch) -> Array:
    """Whether a line is longer than it has cells, or shorter than one of these."""
    w = p.wires
    assert w is not None
    delay, stride = (jnp.concatenate(x) for x in ((wires.delay, wires.back), (wires.stride, wires.back_stride)))
    real = jnp.concatenate([wires.long.reshape(-1), w.far < p.flows])
    fits = (delay >= stride - 1) & (delay <= (w.cells - 2) * stride)
    return (real & ~fits).any()
