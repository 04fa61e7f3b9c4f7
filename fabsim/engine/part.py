"""A part of the fluid, which ports and links treat as they do the rest."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import jax

from fabsim.engine.faults import Now
from fabsim.engine.layers import Layers
from fabsim.engine.network import Missing, arriving, depart, leaves, travel
from fabsim.engine.setup import Setup
from fabsim.engine.state import Fluid, Part, State
from fabsim.models.queue import Signal
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Passage:
    """What ports and links do in one step. [L + 1].

    Attributes:
        signal, layers, pace, events, loss: as `depart` and `travel` have them.
        late: the part of the step in which a port was full, where it cut something.
    """

    signal: Signal
    layers: Layers | None
    pace: Array | None
    events: Now | None
    loss: Array | None
    late: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Moved:
    """What becomes of all of the fluid in one step.

    Attributes:
        data: what arrived at each hop.
        waiting, moving: what stands there after it, and what arrives in the next step.
        cut, gone: what ports cut, and what links lost.
        reached: [C, F] what reached the receivers.
    """

    data: Fluid
    waiting: Fluid
    moving: Fluid
    cut: Missing
    gone: Missing | None
    reached: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Way:
    """A part of the fluid on its way in one step.

    Attributes:
        data, trimmed: what arrived at each hop; waiting, out: what stands there after it, and what leaves.
        cut: what ports cut.
    """

    data: Fluid
    trimmed: Fluid
    waiting: Fluid
    out: Fluid
    cut: Missing


def out_of_ports(s: Setup, state: State, how: Passage, part: Part | None) -> Way:
    """A part through the ports."""
    assert part is not None
    data, trimmed = arriving(replace(state, moving=part.moving))
    return Way(data, trimmed, *depart(s, part.waiting, data, how.signal, how.layers, how.pace, how.events))


def over_links(
    s: Setup, state: State, how: Passage, part: Part | None, way: Way, sent: Array
) -> tuple[Part, Array, Missing | None]:
    """A part, of which [F, P] units are sent, over the links: it, [2, F] what reached the receivers, and what is
    lost."""
    assert part is not None
    lines = state.lines and replace(state.lines, ahead=part.line)
    leaving = leaves(s, way.out, way.trimmed, way.cut)
    moving, reached, gone, _, line = travel(s, replace(state, lines=lines), leaving, sent, how.loss)
    return Part(way.waiting, moving, line), reached, gone
