"""From fabric, flows and routes to arrays: the problem that the engine advances."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.wires import Wires, lay
from fabsim.errors import InputError
from fabsim.models.chance import dice
from fabsim.routing.routes import Routes
from fabsim.topology.graph import Fabric
from fabsim.topology.names import lane_numbers
from fabsim.typing import Array, Float, Int
from fabsim.workload.flows import Flows
from fabsim.workload.packet import PACKET, Packet
from fabsim_kernels.load import Incidence, incidence

if TYPE_CHECKING:
    from fabsim.engine.faults import Faults

RING = 8
"""Steps of feedback are remembered in multiples of this, so that a slightly longer wire is no other program."""

STEP = 1e-6
"""Seconds of a step, where the fabric allows it and nothing else is asked for."""

COUNTED = 2**31
"""Steps are counted in 32 bits."""

STATIC = {"static": True}
"""Marks a field that chooses the compiled program."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Problem:
    """Everything that a run needs and a model does not tune. Shapes: F flows, K lanes, L links, P ports of a
    flow (planes; K / P lanes each), M flows of the busiest port, N triggers. SI units; bytes are bytes on the wire.

    With C classes of traffic there is a queue for each class at each link, and wherever a link is named below, and an
    array has an entry for each, read "queue", and C L for L (see fabsim.models.classes).

    The paths stand in `at` (fabric hops, right-aligned) and `port_link` (hop 0, the sender's NIC). Arrays are passed
    to the compiled program as arguments, so that another problem of the same shape does not compile again.
    """

    links: int = dataclasses.field(metadata=STATIC)  # L
    ring: int = dataclasses.field(metadata=STATIC)  # steps of feedback that are remembered
    slots: int = dataclasses.field(metadata=STATIC)  # messages of one flow that may be under way at once
    triggers: int = dataclasses.field(metadata=STATIC)  # N
    planes: int = dataclasses.field(metadata=STATIC)  # P
    coupled: bool = dataclasses.field(metadata=STATIC)  # some flows follow a leader
    at: Incidence
    first: Array  # [F, K] fabric hop at which a lane is entered (right-aligned), H for one that stays below its leaf
    same: Array  # [H, F, K] one of the lanes of the flow that take the same link at this hop
    route: Array  # [H + 1, F, K] link of each hop, the down link last; L where there is none
    tail: Array  # [L + 1] number of the node at the tail of each link, among those that have one
    port_link: Array  # [F, P] NIC links of the sender
    port: Array  # [F, P] row of each port in `port_flows`
    place: Array  # [F, P] column of the flow there
    port_flows: Array  # [ports, M] entries (flow x P + plane) of each port, F x P where there is none
    hops: Array  # [F, K] links on the path, the NIC's and the down link included
    size: Array  # [F] bytes
    packet: Array  # [F] bytes of the flow's largest packet
    start: Array  # [F] s
    trigger: Array  # [F] trigger that is waited for, N for none
    need: Array  # [F] activations needed
    fires: Array  # [F, E] triggers fired at completion, N for none
    at_sender: Array  # [F] whether it fires when the sender knows
    leader: Array  # [F] flow that is followed, F for none
    head: Array  # [F] bytes that a follower may send at once
    grain: Array  # [F] bytes released at a time, 0: as a stream
    dt: Array  # s
    unit: Array  # bytes that the fastest NIC sends in dt: the engine's unit of bytes
    ack: Array  # bytes of an acknowledgement or a trimmed packet
    mtu: Array  # bytes
    reverse: Array | None  # [L + 1] link of the other way, L for none; None where acknowledgements weigh nothing
    dice: Array  # [F] uint32, a number of its own for each flow, from the seed
    faults: Faults | None = None  # what happens on the way (to links); None costs nothing
    wires: Wires | None = None  # long wires, see there; None where none is long
    # Mesh axis over which the flows are spread (see spread): F counts those of one device, but leaders count all.
    axis: str | None = dataclasses.field(default=None, metadata=STATIC)
    classes: int = dataclasses.field(default=1, metadata=STATIC)  # C

    @property
    def flows(self) -> int:
        """Number of flows."""
        return self.size.shape[-1]

    @property
    def queues(self) -> int:
        """Number of queues, C L: that of no queue."""
        return self.links * self.classes

    @property
    def heard(self) -> int:
        """Steps of feedback that are remembered at the receivers; what is on the way back over a long wire is there."""
        return self.ring if self.wires is None else self.wires.ring


def by_port(problem: Problem, share: Array) -> tuple[Array, Array]:
    """[F, P] share of the lanes of each plane, and [F, K] the split of what leaves by a port over these."""
    lanes = share.shape[-1] // problem.planes
    plane = share.reshape(problem.flows, problem.planes, lanes).sum(-1)
    some = jnp.repeat(plane, lanes, -1)
    return plane, share / jnp.where(some > 0, some, 1.0)


def path_latency(fabric: Fabric, routes: Routes, packet: Packet, flows: Flows) -> tuple[Float, Float, Int]:
    """[F, K] one-way latency of the last byte behind its injection, way back of its acknowledgement, links of the path.

    Forward: wires and switches, and one packet of store and forward at each link but the slowest; back: the same wires,
    and one acknowledgement a link. (Closed form of the zero-load completion in uet-htsim.)
    """
    used = routes.path >= 0
    latency = np.where(used, fabric.latency[routes.path], 0.0).sum(-1)
    slowness = 1.0 / np.where(used, fabric.capacity[routes.path], np.inf)
    forward = slowness.sum(-1) - slowness.max(-1)
    largest = np.minimum(packet.mtu, packet.wire(messages(flows)))[:, None]
    return latency + largest * forward, latency + packet.trim * slowness.sum(-1), used.sum(-1)


def messages(flows: Flows) -> Float:
    """[F] payload bytes that go as one message, in packets of its own: a grain of a coupled flow, or all of a flow."""
    return np.where((flows.leader >= 0) & (flows.grain > 0), flows.grain, flows.size)


def first_links(routes: Routes) -> Int:
    """[F, K] the NIC link of each path."""
    first = (routes.path < 0).sum(-1)
    return np.take_along_axis(routes.path, first[:, :, None], -1)[:, :, 0]


def by_plane(routes: Routes) -> tuple[Int, Int]:
    """[F, P] NIC links and down links: as few groups of neighbouring lanes as there are with one port at either end."""
    ends = np.stack([first_links(routes), routes.path[:, :, -1]])
    lanes = ends.shape[-1]
    for planes in range(1, lanes + 1):
        if lanes % planes == 0:
            groups = ends.reshape(2, -1, planes, lanes // planes)
            if (groups == groups[..., :1]).all():
                return groups[0, :, :, 0], groups[1, :, :, 0]
    raise AssertionError("one lane each is a group")


def longest_dt(latency: Float, hops: Int, flows: Flows, packet: Packet, rate: float) -> float:
    """The longest step (s) at which the pipeline of one step a link is no slower than any path, so that a completion is
    always known a step ahead, and which is no coarser than a grain of a coupled flow."""
    grains = flows.grain[(flows.leader >= 0) & (flows.grain > 0)]
    finest = packet.wire(grains).min() / rate if len(grains) else math.inf
    return float(min((latency / hops).min(), finest))


def build(
    fabric: Fabric,
    flows: Flows,
    routes: Routes,
    *,
    packet: Packet = PACKET,
    dt: float | None = None,
    dtype: str = "float32",
    share_rows: bool = True,
    ring: int | None = None,
    seed: int = 0,
    traffic_class: Int | None = None,
    classes: int = 1,
) -> Problem:
    """Compile arrays. Raises InputError for a step that is longer than the shortest path allows, or too short to count.

    `ring` is the least number of steps of feedback to remember (a sweep over latencies wants the largest of its
    members); `share_rows=False` asks for the plain element table (equal results, slower);
    `seed` is that of the chance of single packets, for laws and links that have it; `traffic_class` [F] is the class of
    each flow, of so many `classes`.
    """
    latency, back, hops = path_latency(fabric, routes, packet, flows)
    nic, last = by_plane(routes)
    rate = float(fabric.capacity[nic].max())
    longest = longest_dt(latency, hops, flows, packet, rate)
    dt = min(STEP, longest) if dt is None else dt
    if dt > longest * (1 + 1e-9):
        raise InputError(
            f"dt: {dt * 1e6:g} us is longer than this fabric allows; {longest * 1e6:g} us or less would do"
        )
    path, first = fabric_hops(routes, fabric.links)
    port_flows, port, place = group_by_port(nic)
    own = np.zeros(flows.count, int) if traffic_class is None else np.asarray(traffic_class)
    queues, before = fabric.links * classes, (own * fabric.links)[:, None]
    path, last, nic = np.where(path < fabric.links, path + before, queues), last + before, nic + before
    message = np.maximum(messages(flows), 1.0)
    whole_ones = np.floor(flows.size / message)
    wire = whole_ones * packet.wire(message) + packet.wire(flows.size - whole_ones * message)
    scale = np.divide(wire, flows.size, out=np.ones_like(wire), where=flows.size > 0)
    beyond, home = latency / dt - (hops - 1), back / dt
    delay = (latency - (hops - 1) * dt + back).max() / dt
    if delay >= COUNTED:
        raise InputError(f"dt: a round trip is {delay:.3g} steps of {dt * 1e6:g} us, which 32 bits do not count; give "
                         "faster or shorter links")  # fmt: skip
    lanes, every = np.repeat(nic, path.shape[-1] // nic.shape[1], -1), np.append(np.tile(fabric.latency, classes), 0.0)
    real = lambda x: jnp.asarray(np.asarray(x), dtype)  # noqa: E731
    whole = lambda x: jnp.asarray(np.asarray(x), "int32")  # noqa: E731
    at = incidence(path, last, queues, share_rows, dtype)
    tail, other = np.unique(fabric.src, return_inverse=True)[1], opposite(fabric)
    other = [np.where(other < fabric.links, other + fabric.links * number, queues) for number in range(classes)]
    return Problem(
        links=fabric.links,
        ring=max(_ring(delay), ring or 0),
        slots=message_slots(fabric, flows, packet, latency, rate),
        triggers=int(max(flows.trigger.max(initial=-1), flows.fires.max(initial=-1))) + 1,
        planes=nic.shape[1],
        coupled=bool((flows.leader >= 0).any()),
        at=at,
        first=whole(first),
        same=whole(same_link(path)),
        route=whole(np.concatenate([path, routes.path[None, :, :, -1] + before])),
        tail=whole(np.append(np.tile(tail, classes), queues)),
        port_link=whole(nic),
        port=whole(port),
        place=whole(place),
        port_flows=whole(port_flows),
        hops=whole(hops),
        size=real(wire),
        packet=real(np.minimum(packet.mtu, packet.wire(messages(flows)))),
        start=real(flows.start),
        trigger=whole(none_last(flows.trigger, flows)),
        need=whole(flows.need),
        fires=whole(none_last(flows.fires.reshape(flows.count, -1), flows)),
        at_sender=jnp.asarray(flows.fires_at_sender.astype(bool)),
        leader=whole(np.where(flows.leader < 0, flows.count, flows.leader)),
        head=real(flows.head * scale),
        grain=real(flows.grain * scale),
        dt=real(dt),
        unit=real(rate * dt),
        ack=real(packet.trim),
        mtu=real(packet.mtu),
        reverse=whole(np.append(np.concatenate(other), queues)) if packet.acks else None,
        dice=jnp.asarray(dice(seed, flows.count)),
        classes=classes,
        wires=lay(np.concatenate([lanes[None], path]), every, dt, routes.weight, beyond, home, RING),
    )


def fabric_hops(routes: Routes, links: int) -> tuple[Int, Int]:
    """Hops between the NIC link and the down link, right-aligned: path [H, F, K] with `links` for none, first
    [F, K]."""
    inner = routes.path[:, :, :-1]
    begin = (inner < 0).sum(-1)
    inner = np.where(np.arange(inner.shape[2]) <= begin[:, :, None], -1, inner)[:, :, 1:]
    path = np.where(inner < 0, links, inner).transpose(2, 0, 1)
    return path, begin


def same_link(path: Int) -> Int:
    """[H, F, K] for each lane, one that stands for all lanes of its flow with the same link at that hop."""
    order = np.argsort(path, axis=-1, kind="stable")
    links = np.take_along_axis(path, order, -1)
    lane = np.arange(path.shape[-1])
    begins = np.concatenate([np.ones_like(links[..., :1], bool), links[..., 1:] != links[..., :-1]], -1)
    begin = np.maximum.accumulate(np.where(begins, lane, 0), -1)
    same = np.empty_like(path)
    np.put_along_axis(same, order, np.take_along_axis(order, begin, -1), -1)
    return same


def group_by_port(nic: Int) -> tuple[Int, Int, Int]:
    """Entries (flow x P + plane) by sending port: table [ports, M], padded with F x P, and row and column of each."""
    count = nic.size
    _, port, sizes = np.unique(nic.reshape(-1), return_inverse=True, return_counts=True)
    order = np.argsort(port, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.empty(count, int)
    place[order] = np.arange(count) - starts[port[order]]
    table = np.full((len(sizes), sizes.max()), count)
    table[port, place] = np.arange(count)
    return table, port.reshape(nic.shape), place.reshape(nic.shape)


def longer(problem: Problem, delay: float) -> Problem:
    """The problem with feedback remembered for so many steps at least."""
    return problem if delay <= problem.ring - 2 else dataclasses.replace(problem, ring=_ring(delay))


def _ring(delay: float) -> int:
    """Steps that are remembered for a feedback so many steps late."""
    return -(-(math.ceil(delay) + 2) // RING) * RING


def message_slots(fabric: Fabric, flows: Flows, packet: Packet, latency: Float, rate: float) -> int:
    """How many grains of a coupled flow can be under way at once: those that fit into path and buffers, and two."""
    grained = (flows.leader >= 0) & (flows.grain > 0)
    if not grained.any():
        return 1
    buffers = np.nan_to_num(fabric.buffer, nan=rate * 2 * latency.max()).max() * 2
    fit = (latency[grained].max() * rate + buffers) / packet.wire(flows.grain[grained]).min()
    return 2 + math.ceil(fit)


def opposite(fabric: Fabric) -> Int:
    """[L] the link that leads back, of the same lane; L where there is none."""
    lane, parallels = lane_numbers(fabric)
    nodes, lanes = len(fabric.names), int(parallels.max(initial=1))
    there = (fabric.src * nodes + fabric.dst) * lanes + lane
    back = (fabric.dst * nodes + fabric.src) * lanes + lane
    order = np.argsort(there)
    found = order[np.minimum(np.searchsorted(there, back, sorter=order), fabric.links - 1)]
    return np.where(there[found] == back, found, fabric.links)


def none_last(trigger: Int, flows: Flows) -> Int:
    """-1 (none) becomes the number of triggers, an entry that is thrown away."""
    count = max(flows.trigger.max(initial=-1), flows.fires.max(initial=-1)) + 1
    return np.where(trigger < 0, count, trigger)
