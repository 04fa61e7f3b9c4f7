"""Flows dealt out to devices: those of one sending port stay together, neighbours too, in parts of about equal size."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import Problem, group_by_port
from fabsim.errors import InputError
from fabsim.typing import Array, Int
from fabsim_kernels.load import Incidence

AXIS = "flows"
"""Name of the mesh's axis over which flows are spread."""


def deal(problem: Problem, devices: int) -> tuple[Int, Int]:
    """[D, M] the flow at each place of each device, and [F] the place of each flow (device x M + column).

    A place without a flow repeats one of its device. Raises InputError for more devices than there are senders.
    """
    group = senders(np.asarray(problem.port))
    number, size = np.unique(group, return_counts=True)
    if len(number) < devices:
        raise InputError(
            f"devices: {devices} given, but the flows of one sending port cannot be parted, and {len(number)} ports "
            f"send; {len(number)} or fewer would do"
        )
    middle, turn = np.cumsum(size) - 0.5 * size, np.arange(len(number))
    at = (middle / size.sum() * devices).astype(int)
    at = np.minimum(np.minimum.accumulate(at - turn), 0) + turn  # no device is passed over
    at = np.maximum(at, turn - len(turn) + devices)  # and none is left without
    device = at[np.searchsorted(number, group)]
    each = [np.flatnonzero(device == d) for d in range(devices)]
    longest = max(len(mine) for mine in each)
    place = np.empty(len(group), int)
    for d, mine in enumerate(each):
        place[mine] = d * longest + np.arange(len(mine))
    return np.stack([np.pad(mine, (0, longest - len(mine)), mode="edge") for mine in each]), place


def senders(port: Int) -> Int:
    """[F, P] ports -> [F] the smallest port that a flow is tied to, by ports that it shares with others."""
    group = port.min(1)
    while True:
        of_port = np.full(port.max() + 1, len(port) * port.shape[1])
        np.minimum.at(of_port, port, np.broadcast_to(group[:, None], port.shape))
        tied = of_port[port].min(1)
        if (tied == group).all():
            return group
        group = tied


def part(problem: Problem, flows: Int, real: int, place: Int, everyone: int) -> Problem:
    """The problem of one device: these flows [M], of which the first `real` count.

    The others are inert: of no bytes, complete at once, at ports of their own. `place` [F] and `everyone` number the
    flows of all devices, for leaders.
    """
    p = problem
    pads = np.arange(len(flows)) >= real
    by_axis = {
        0: "first port_link hops size packet start trigger need fires at_sender leader head grain dice",
        1: "same route",
    }
    taken: dict[str, np.ndarray] = {
        name: np.take(np.asarray(getattr(p, name)), flows, axis)
        for axis, names in by_axis.items()
        for name in names.split()
    }
    for name, nothing in (
        ("size", 0),
        ("start", 0),
        ("trigger", p.triggers),
        ("fires", p.triggers),
        ("head", 0),
        ("grain", 0),
    ):
        taken[name][pads] = nothing
    follows = (taken["leader"] < p.flows) & ~pads
    taken["leader"] = np.where(follows, place[np.minimum(taken["leader"], p.flows - 1)], everyone).astype(np.int32)
    nic = taken["port_link"].astype(np.int64) % p.links
    nic[pads] = p.links + np.arange(nic[pads].size).reshape(-1, nic.shape[1])
    table, port, column = group_by_port(nic)
    arrays = {name: jnp.asarray(value) for name, value in taken.items()}
    ports = {
        name: jnp.asarray(value.astype(np.int32))
        for name, value in (("port_flows", table), ("port", port), ("place", column))
    }
    wires = None if p.wires is None else p.wires.of(flows, real)
    return dataclasses.replace(p, axis=AXIS, at=part_of_incidence(p.at, flows), wires=wires, **arrays, **ports)


def part_of_incidence(at: Incidence, flows: Int) -> Incidence:
    """The rows that these flows use, and no others."""
    kept, row = np.unique(np.asarray(at.row)[:, flows], return_inverse=True)

    def take(x: Array, rows: Int) -> jax.Array:
        return jnp.asarray(np.asarray(x)[rows])

    return Incidence(
        row=jnp.asarray(row.reshape(-1, len(flows)).astype(np.int32)),
        links=take(at.links, kept),
        many=take(at.many, kept),
        last=take(at.last, flows),
        last_many=take(at.last_many, flows),
    )
