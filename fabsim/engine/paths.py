"""What comes back by each path, for balancers: the receivers' down links once more, lane by lane.

The lanes of a plane meet at the last port, and the fluid has one queue for them. It is well mixed and linear in what it
holds, so the same queue lane by lane gives parts that add up to it.
"""

from __future__ import annotations

import jax.numpy as jnp

from fabsim.engine.crossing import come_back
from fabsim.engine.faults import Now
from fabsim.engine.found import lose
from fabsim.engine.layers import Layers
from fabsim.engine.network import Missing, acts, over_wire, pass_hop
from fabsim.engine.setup import Setup
from fabsim.engine.state import Paths, State
from fabsim.models.protocol import PathFeedback
from fabsim.models.queue import Signal
from fabsim.typing import Array


def advance(
    s: Setup,
    state: State,
    signal: Signal,
    layers: Layers | None,
    opening: Array | None,
    events: Now | None,
    loss: Array | None,
    onto: Array,
    missing: tuple[Missing, Missing | None],
    anew: Array | None,
) -> Paths | None:
    """Move the lanes through the last port in this step.

    onto: [F, C, K] what comes there in the next; missing: what ports cut, and what links lost; anew: [F] whether that
    begins a new lot of what is not missed yet.
    """
    paths = state.paths
    if paths is None:
        return None
    seen = by_lane(s, acts(s, signal, layers, opening, events))
    waiting, out, cut = pass_hop(paths.waiting, paths.moving, seen, s.queue, events is not None)
    if s.finds and s.queue.trims:  # what is trimmed at the last hop says nothing of its path
        out = out.at[:, 1].set(paths.moving[:, 1])
    off = jnp.zeros_like(cut)
    if loss is not None:
        out, all_off = over_wire(out, by_lane(s, loss[:, None]))
        off = all_off[:, 0] + all_off[:, 1]
    reached = out[:, :3].transpose(1, 2, 0).reshape(-1, s.problem.flows)
    ring = paths.ring.at[state.step % s.problem.heard].set(reached)
    return Paths(waiting, onto, ring, lose(s, paths.gone, off, cut, *missing, anew))


def by_lane(s: Setup, of_links: Array) -> Array:
    """[L + 1, N] -> [F, N, K] at the last port of each lane."""
    lanes = s.share.shape[1] // s.problem.planes
    return jnp.repeat(of_links[s.problem.at.last], lanes, 1).swapaxes(1, 2)


def look_back(s: Setup, paths: Paths, line: Array | None, step: Array) -> tuple[PathFeedback, Array | None]:
    """What comes back to the senders now; all paths of a flow are equally long, as they are for the transport. And the
    line of the way back over long wires."""
    back, line = come_back(s, paths.ring, line, step)
    data, trimmed, marked = back.reshape(3, -1, s.problem.flows).swapaxes(1, 2)
    return PathFeedback(acked=data, marked=marked, trimmed=trimmed), line
