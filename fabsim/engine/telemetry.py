"""In-band telemetry: queues and loads of all links in the last steps, read along each path as they were on passing.

With classes of traffic a packet reads the queue and the bytes of its own class, and the rate of the whole link: the
others would frighten away a class that is served before them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fabsim.engine.crossing import after
from fabsim.engine.setup import Setup
from fabsim.models.protocol import Telemetry
from fabsim.typing import Array


def blank(s: Setup) -> Array:
    """[D, L + 1, 2] queue and data sent, entry k mod D in step k. A link per entry, not a subflow: it stays small."""
    return jnp.zeros((s.problem.ring + s.problem.route.shape[0], s.capacity.shape[0], 2), s.capacity.dtype)


def remember(ring: Array, step: Array, queue: Array, sent: Array) -> Array:
    """The ring with what the links [L + 1] held and sent in this step."""
    return ring.at[step % ring.shape[0]].set(jnp.stack([queue, sent], -1))


def look_back(s: Setup, ring: Array, step: Array) -> Telemetry:
    """What the packets read that are acknowledged now, between two steps interpolated.

    The pipeline takes one step a hop from there to the receiver; queues that the packet met later are left out.
    """
    route = s.problem.route
    later = jnp.arange(route.shape[0])[::-1, None]
    delay = later + s.beyond_mean + s.back
    if s.wires is not None:
        delay = delay + after(s.wires, s.share)
    whole = jax.lax.stop_gradient(jnp.floor(delay)).astype(jnp.int32)
    part = (delay - whole)[:, :, None, None]
    late, before = (ring[((step - whole - ago) % ring.shape[0])[:, :, None], route] for ago in (0, 1))
    seen = late * (1.0 - part) + before * part
    grown = late[..., 0] - before[..., 0]
    return Telemetry(seen[..., 0], grown, seen[..., 1], s.capacity[route], s.share)
