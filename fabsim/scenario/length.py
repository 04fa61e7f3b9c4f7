"""How long a run is at least, before it is run, and what the frames of its result take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.machine import available
from fabsim.routing.load import utilisation
from fabsim.scenario.keys.balancer import Oblivious
from fabsim.typing import Float
from fabsim.units import show_size

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.scenario import Scenario

BY_LINK = 5
"""Numbers that a frame has of each link; of each flow it has one."""


def ideal_seconds(scenario: Scenario, net: Network) -> Float:
    """[L] s that each link needs for all that crosses it, at line rate: no run can end sooner than the largest. Where a
    balancer moves bytes between paths, those of hosts only, which it cannot change; the others count as none."""
    seconds = utilisation(net.routes, scenario.packet.sizes.wire(net.flows.size), net.fabric.capacity)
    fabric, moves = net.fabric, not isinstance(scenario.balancer, Oblivious)
    ends = (fabric.src < fabric.hosts) | (fabric.dst < fabric.hosts)
    return np.where(ends | (not moves), seconds, 0.0)


def least_steps(scenario: Scenario, net: Network, dt: float) -> int:
    """Steps of `dt` seconds until `until`, or, where that is the last completion, until it could be at the soonest."""
    seconds = float(ideal_seconds(scenario, net).max()) if scenario.until == "done" else float(scenario.until)
    return int(np.ceil(seconds / dt))


def least_frames(scenario: Scenario, net: Network, dt: float) -> int:
    """Frames of so many steps."""
    return -(-least_steps(scenario, net, dt) // scenario.steps_of_frame(dt))


def frame_bytes(scenario: Scenario, net: Network, dt: float) -> float:
    """Bytes of so many frames."""
    width = 8 if scenario.precision == "float64" else 4
    return float(least_frames(scenario, net, dt)) * width * (BY_LINK * net.fabric.links + net.flows.count)


def refuse_too_long(scenario: Scenario, net: Network, dt: float) -> None:
    """Raises InputError for a run whose frames would not fit into memory, however soon it ends."""
    need, have = frame_bytes(scenario, net, dt), available()
    if need > have:
        text = f"the frames of the result need at least {show_size(need)} of memory, and {show_size(have)} is free"
        raise InputError(scenario.source.sentence(("every",), f"{text}; a longer every would do"))
