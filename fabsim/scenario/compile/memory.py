"""What a scenario needs in memory, known before anything large is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import InputError
from fabsim.machine import available
from fabsim.routing.paths import find_ends
from fabsim.topology import Fabric
from fabsim.typing import Int
from fabsim.units import show_size
from fabsim.workload import Flows

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem

VALUES = 45
"""Numbers that are live at once for each hop of each path of each flow: its link, what waits and moves there in two
steps, and what routing and a step make in between. Measured: what the peak resident memory of a whole run grows by,
from a fat tree of 1,024 hosts over 64 paths to one of 3,456 hosts over 144 (41)."""


ON_WIRES = 2 * 5
"""Numbers for each cell of a delay line: four channels on the way (and, one for all paths, up to five back), in two
steps."""


def needed(fabric: Fabric, flows: Flows, lanes: int | None, width: int) -> float:
    """Bytes, for numbers of `width` bytes. lanes: paths of a flow; None: all that there are."""
    ends = find_ends(fabric, flows)
    lanes = ends.lanes if lanes is None else lanes
    hops = int(ends.tables.distance[ends.place].max(initial=0)) + 1
    values = float(flows.count) * hops * VALUES + crossings(fabric, flows) * ON_WIRES
    return lanes * values * width


def crossings(fabric: Fabric, flows: Flows) -> float:
    """Cells of delay lines for each path, as if each flow that leaves its site crossed one long wire (where there are
    no sites: every flow, if any link is long)."""
    from fabsim.engine.wires import CELLS, LONG

    if not (fabric.latency >= LONG).any():
        return 0.0
    far = np.ones(flows.count, bool) if fabric.site is None else fabric.site[flows.src] != fabric.site[flows.dst]
    return float(far.sum()) * CELLS


def needed_by(problem: Problem) -> float:
    """Bytes that a compiled scenario needs while it runs in a batch."""
    width = problem.size.dtype.itemsize
    hops, flows, lanes = problem.same.shape
    wires = 0.0 if problem.wires is None else float(problem.wires.cells) * problem.wires.stride.size
    return (float(flows) * lanes * (hops + 1) * VALUES + wires * ON_WIRES) * width


def refuse_too_large(fabric: Fabric, flows: Flows, lanes: int | None, width: int) -> None:
    """Raises InputError for a scenario that does not fit. lanes: paths of a flow; None: all that there are."""
    need, have = needed(fabric, flows, lanes, width), available()
    if need > have:
        raise InputError(
            f"{flows.count:,} flows over all their paths need about {show_size(need)} of memory, and {show_size(have)} "
            "is free; routing: {kind: ecmp}, fewer flows or a smaller fabric would do"
        )


def refuse_too_large_for(devices: Sequence[Any], path: Int, width: int) -> None:
    """Raises InputError where a device's part of all paths [F, K, hops] does not fit into it.

    devices: of JAX; those that compute in this machine's memory (CPUs) have none of their own to fill.
    """
    need = float(path.size) * VALUES * width
    have = min(float((device.memory_stats() or {}).get("bytes_limit", math.inf)) for device in devices)
    if need / len(devices) > have:
        raise InputError(
            f"devices: each of {len(devices)} needs about {show_size(need / len(devices))} of memory, and has "
            f"{show_size(have)}; {math.ceil(need / have)} devices would do"
        )
