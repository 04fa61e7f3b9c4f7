"""What falls behind holes that a step makes, and what is ahead of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp

from fabsim.engine.holes import Holes, later_than_one
from fabsim.engine.layers import by_place
from fabsim.engine.network import all_of
from fabsim.engine.part import Moved, Passage, Way
from fabsim.engine.setup import Setup
from fabsim.engine.state import Fluid, Part
from fabsim.typing import Array
from fabsim_kernels.load import read


def join(s: Setup, how: Passage, whole: Fluid, behind: Way, ahead: Way, holes: Array) -> tuple[Way, Way, Array]:
    """What joins queues behind holes [2, H + 1, F] that the port makes in the same step: both parts with it, and [2, F]
    how much it is. Before the port is full nothing is behind one."""
    share = later_than_one(holes)[..., None, None]
    acts = [how.signal.leave] * 2 if how.layers is None else [how.layers.gone, how.layers.place]
    seen = read(s.problem.at, jnp.stack([how.signal.keep, how.late, *acts], -1))
    more_f, goes_f = joins(whole.fabric, behind.data.fabric, ahead.data.fabric, seen[0], share[:, :-1], s.layers)
    more_e, goes_e = joins(whole.egress, behind.data.egress, ahead.data.egress, seen[1], share[:, -1], s.layers)

    def with_more(way: Way, by: Callable[[Array], Array]) -> Way:
        stay_f, stay_e, out_f, out_e = (by(x) for x in (more_f - goes_f, more_e - goes_e, goes_f, goes_e))
        waiting = Fluid(way.waiting.fabric + stay_f, way.waiting.egress + stay_e)
        out = Fluid(way.out.fabric + all_of(out_f), way.out.egress + all_of(out_e))
        return replace(way, waiting=waiting, out=out)

    joined = more_f.sum((1, 3, 4)) + more_e.sum((2, 3))
    return with_more(behind, lambda x: x.sum(0)), with_more(ahead, lambda x: -x[1]), joined


def joins(whole: Array, behind: Array, ahead: Array, seen: Array, share: Array, layers: int) -> tuple[Array, Array]:
    """[2, ..., N, K] what joins a queue behind holes, of the rest and of what is ahead of one, by layers; and what of
    it leaves in the same step."""
    keep, late, leave, place = jnp.split(seen, 4, -2)
    leave, into = (leave, 1.0) if layers == 1 else by_place(leave, place, layers)
    after = jnp.clip(keep - (1.0 - late), 0.0, 1.0)
    rest = jnp.maximum(whole[..., :1, :] - behind - ahead, 0.0)
    more = jnp.stack([rest, ahead]) * after * share * into
    return more, more * leave


def fall(s: Setup, new: Holes, again: Holes, whole: Moved, behind: Part, ahead: Part) -> tuple[Part, Part, Array]:
    """What falls behind holes downstream of it, and ahead of those upstream, of what stands at each hop and what comes
    there next: both parts with it, and [2, F] how much falls behind.

    new, again: holes of flows without one, and of those that have one.
    """
    p, count = s.problem, s.layers
    (stands, comes), (stands_again, comes_again) = new.downstream(), again.downstream()
    (stands_ahead, comes_ahead) = new.upstream()
    comes, comes_again = over(s, comes, new), over(s, comes_again, again)
    stands = jnp.stack([stands, stands_again, stands_ahead])[..., None, None]
    comes = jnp.stack([comes, comes_again, jnp.broadcast_to(comes_ahead[..., None], comes.shape)])[..., None, :]
    last = comes[:, -1].reshape(3, p.flows, 1, p.planes, -1)[..., 0]
    wait_f = falls(behind.waiting.fabric, ahead.waiting.fabric, whole.waiting.fabric[:, :, :count], stands[:, :-1])
    wait_e = falls(behind.waiting.egress, ahead.waiting.egress, whole.waiting.egress[:, :count], stands[:, -1])
    move_f = falls(behind.moving.fabric, ahead.moving.fabric, whole.moving.fabric[:, :, :1], comes[:, :-1])
    move_e = falls(behind.moving.egress, ahead.moving.egress, whole.moving.egress[:, :1], last)
    fell = (wait_f[2] + move_f[2]).sum(1) + wait_e[2] + move_e[2]
    parts = [
        replace(part, waiting=Fluid(wait_f[i], wait_e[i]), moving=Fluid(move_f[i], move_e[i]))
        for i, part in enumerate((behind, ahead))
    ]
    return parts[0], parts[1], fell


def over(s: Setup, ahead: Array, holes: Holes) -> Array:
    """[H + 1, F, K] the share with a hole ahead of it, of what comes to a hop: further on (ahead, [H + 1, F]), or on
    the link that it came over in this step."""
    hops = jnp.arange(ahead.shape[0])[:, None, None]
    here = jnp.where(hops == s.problem.first, holes.nic[:, None], holes.came_over()[..., None])
    return 1.0 - (1.0 - ahead[..., None]) * (1.0 - later_than_one(here))


def falls(behind: Array, ahead: Array, whole: Array, share: Array) -> tuple[Array, Array, Array]:
    """[..., C, K] both parts of the data, and [2, ...] how much falls behind. share: [3, ...] of the rest and of what
    is ahead, what falls behind; and of the rest, what is ahead of a hole then."""
    count = whole.shape[-2]
    was = ahead[..., :count, :]
    rest = jnp.maximum(whole - behind[..., :count, :] - was, 0.0)
    fell, again = rest * share[0], was * share[1]
    behind = behind.at[..., :count, :].add(fell + again)
    ahead = ahead.at[..., :count, :].add((rest - fell) * share[2] - again)
    return behind, ahead, jnp.stack([fell, again]).sum((-2, -1))
