"""Traffic classes: several queues at each port, in strict priority or by weight, shaped and policed.

There is a queue for each class at each link. They are numbered class by class: that of class c at link l of L is
c L + l, so that an array of queues [C L] is one of links [L] for each class.
"""

from __future__ import annotations

import dataclasses
from typing import Self

import jax
import jax.numpy as jnp

from fabsim.models.bucket import Bucket
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Classes:
    """How C classes share a port.

    Levels of priority are served one after the other: a level has what those before it leave. Within a level, classes
    with a backlog have room in proportion to their weights, and what one leaves goes to the others in that proportion:
    generalised processor sharing (Parekh and Gallager, IEEE/ACM Transactions on Networking 1(3), 1993), which deficit
    round robin (Shreedhar and Varghese, ibid. 4(3), 1996) follows to a packet. It conserves work. Headers of trimmed
    packets and acknowledgements go ahead of all classes. Buffers, thresholds, pauses and parts of a shared memory are
    those of each queue: a class that is paused, or full, holds up no other.

    What comes within a step shares all of the step: a class that begins t into it takes up to t of a step too much.
    Smooth almost everywhere.

    Attributes:
        weight: [C] shares within a level.
        priority: level of each class; lower ones are served first.
        shape: what each class may send; None where nothing holds it back.
        police: what each class may bring; None where all is let in.
    """

    weight: Array
    priority: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    shape: Bucket | None = None
    police: Bucket | None = None

    @property
    def count(self) -> int:
        """C."""
        return len(self.priority)

    def inside(self, unit: Array, dt: Array, none: float) -> Self:
        """The same with buckets in units and steps."""
        scaled = {"shape": self.shape and self.shape.inside(unit, dt, none)}
        scaled["police"] = self.police and self.police.inside(unit, dt, none)
        return dataclasses.replace(self, **scaled)

    def share(self, able: Array, ahead: Array, stands: Array, tokens: Array | None, tie: float) -> tuple[Array, ...]:
        """What each queue has room for in a step, and what goes ahead of all: room, ahead, and served of that.

        Args:
            able: [C L + 1] units that could leave if nothing else did.
            ahead: [C L + 1] units of headers; all of a port come back at its first class.
            stands: [C L + 1] units of data that want to leave.
            tokens: [C L + 1] of the shapers.
            tie: a port counts as full from this relative distance below its capacity.
        """
        whole, control = self.split(able).max(0), self.split(ahead).sum(0)
        most = able * (1.0 - tie)
        if self.shape is not None and tokens is not None:
            most = jnp.minimum(most, self.shape.most(tokens))
        served = jnp.minimum(control, whole)
        room = self.rooms((whole - served) * (1.0 - tie), self.split(most), self.split(stands))
        first = jnp.arange(self.count)[:, None] == 0

        def at_first(x: Array) -> Array:
            return join(jnp.where(first, x, 0.0), jnp.zeros_like(ahead[-1:]))

        return join(room, most[-1:]), at_first(control), at_first(served)

    def rooms(self, whole: Array, most: Array, stands: Array) -> Array:
        """[C, N] units that each class would find room for at N ports, if it had enough that stands.

        whole: [N] units that a port can send; most, stands: [C, N] units that a class may, and wants to.
        """
        demand, left = jnp.minimum(stands, most), whole
        found: dict[int, Array] = {}
        for level in sorted(set(self.priority)):
            mine = [number for number, own in enumerate(self.priority) if own == level]
            weight, wanted = (jnp.stack([x[number] for number in mine]) for x in (self.weight, demand))
            rooms = fill(weight, left, wanted) if len(mine) > 1 else left[None]
            found |= dict(zip(mine, rooms, strict=True))
            left = jnp.maximum(left - sum(jnp.minimum(demand[i], found[i]) for i in mine), 0.0)
        return jnp.minimum(jnp.stack([found[number] for number in range(self.count)]), most)

    def split(self, queues: Array) -> Array:
        """[C L + 1] -> [C, L], without the entry of no link."""
        return queues[:-1].reshape(self.count, -1)


def fill(weight: Array, whole: Array, demand: Array) -> Array:
    """[m, N] room of m classes that share by weight [m] what N ports have [N], for demands [m, N]: water filling.

    Those that want less than their share have it, and the others share the rest. Each round finds more of the former;
    after m - 1 there are no more to find.
    """
    share = weight[:, None]
    content = jnp.zeros(demand.shape, bool)
    for _ in range(demand.shape[0] - 1):
        level = rest(whole, demand, content) / some(jnp.where(content, 0.0, share).sum(0))
        content = content | (demand <= share * level)
    have, want = rest(whole, demand, content), jnp.where(content, 0.0, share).sum(0)
    return jnp.where(content, share * (have + demand) / (want + share), share * have / some(want))


def rest(whole: Array, demand: Array, content: Array) -> Array:
    """[N] what is left behind those that are content."""
    return jnp.maximum(whole - jnp.where(content, demand, 0.0).sum(0), 0.0)


def some(x: Array) -> Array:
    """To divide by: 1 for 0."""
    return jnp.where(x > 0, x, 1.0)


def join(by_class: Array, last: Array) -> Array:
    """[C, L] -> [C L + 1], with the entry of no link."""
    return jnp.concatenate([by_class.reshape(-1), last])


def each(x: Array, count: int) -> Array:
    """[..., L] -> [..., C L] the same for each class."""
    return x if count == 1 else jnp.tile(x, count)
