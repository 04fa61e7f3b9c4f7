"""From SI to the engine's own units: bytes in what the fastest NIC sends in a step, time in steps."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from fabsim.engine.problem import Problem
from fabsim.models.model import Model
from fabsim.models.protocol import Transport
from fabsim.models.queue import TIE, TrimQueue
from fabsim.typing import Array

LATER = 1e9
"""Steps that stand for "not yet known": finite, so that no gradient meets an infinity."""

LAST_PACKET = 0.6931471805599453
"""ln 2 packets. Packets cannot be cut; a fluid can, and its losses shrink by a factor each round trip for ever. With x
packets on average still to be sent again, none is with probability exp(-x): below ln 2 packets it is more likely
than not that there is none, so the flow is complete at its median."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Setup:
    """Constants of a run. Shapes: F flows, K lanes, L links (entry L: no link), H fabric hops; units and steps.

    Attributes:
        problem: the arrays as built.
        transport: the law, as given (it scales itself by the sender's unit).
        queue: the ports with their sizes in units, [L + 1].
        capacity: [L + 1] units per step.
        rate: [F] units per step of the sender's port, a hair below its link (see TIE).
        share: [F, K] split.
        used: [F, K] whether a lane carries anything.
        beyond: [F, K] steps of latency beyond the pipeline's one per link.
        beyond_mean: [F] the same, averaged over the split.
        back: [F] steps from the receiver's last byte to the sender's knowing.
        size, head, grain, packet: [F] units.
        header: [F] header bytes per byte trimmed.
        header_mean: scalar, the same for a full packet.
        start: [F] steps.
    """

    problem: Problem
    transport: Transport[Any]
    queue: TrimQueue
    capacity: Array
    rate: Array
    share: Array
    used: Array
    beyond: Array
    beyond_mean: Array
    back: Array
    size: Array
    head: Array
    grain: Array
    packet: Array
    header: Array
    header_mean: Array
    start: Array

    @property
    def round_trip(self) -> Array:
        """[F] steps from sending a byte to its acknowledgement, with empty queues."""
        return self.problem.hops - 1 + self.beyond_mean + self.back


def prepare(problem: Problem, model: Model[Any]) -> Setup:
    """Scale, pad and derive; differentiable in every field of the model."""
    p, dt = problem, problem.dt
    capacity = jnp.append(model.links.capacity, LATER * p.unit / dt)
    slowness = jnp.append(1.0 / model.links.capacity, 0.0)
    wire = jnp.append(model.links.latency, 0.0)
    nic_wire, nic_slow = wire[p.port_link][:, None], slowness[p.port_link][:, None]
    latency, slow = wire[p.route].sum(0) + nic_wire, slowness[p.route].sum(0)
    share = model.split.weight
    beyond = (latency + p.packet[:, None] * slow) / dt - (p.hops[:, None] - 1)
    back = (latency + p.ack * (slow + nic_slow)) / dt
    return Setup(
        problem=p,
        transport=model.transport,
        queue=jax.tree.map(lambda x: jnp.append(x / p.unit, LATER), model.queue),
        capacity=capacity * dt / p.unit,
        rate=model.links.capacity[p.port_link] * dt / p.unit * (1.0 - 0.5 * TIE),
        share=share,
        used=share > 0,
        beyond=beyond,
        beyond_mean=(share * beyond).sum(-1),
        back=(share * back).sum(-1),
        size=p.size / p.unit,
        head=p.head / p.unit,
        grain=p.grain / p.unit,
        packet=p.packet / p.unit,
        header=p.ack / jnp.maximum(p.packet, p.ack),  # an empty flow has no packet
        header_mean=p.ack / p.mtu,
        start=p.start / dt,
    )
