"""The devices that a batch is spread over: which, how many members each advances at once, and what memory is free."""

from __future__ import annotations

import jax
from jax.sharding import AxisType, Mesh

from fabsim.engine.spread import first
from fabsim.machine import available

AXIS = "scenario"
"""The axis of the mesh over which members are spread."""

SIDE_BY_SIDE = 64
"""Members that a device advances at once on a CPU; more leave the cache. Several devices, each of them one core, take
half as many: what a core has of its own is smaller than what it shares (measured: 0.9 of the time of 48, where
fabsim.machine.LOOPS is set; without it loops of 16 and 32 are slow ones)."""

VECTOR = 8
"""The same where the paths differ, so that members look up at places of their own. Wider is slower."""

ON_ACCELERATOR = 512
"""The same on an accelerator, where a step should be as wide as the device."""


def over(devices: int | Mesh | None, most: int | None = None) -> Mesh:
    """One axis of devices: so many of the local ones, those of a mesh, or (None) all that this process has, of the kind
    of JAX's default device; `most` of these, if given.

    A CPU is one device, unless JAX is told otherwise before its first use (`jax_num_cpu_devices`). Raises InputError
    where there are not so many.
    """
    kind = getattr(jax.config, "jax_default_device", None)
    local = jax.local_devices(backend=getattr(kind, "platform", kind))
    if isinstance(devices, Mesh):
        local = list(devices.devices.reshape(-1))
    elif devices is not None:
        local = first(devices, local)
    chosen = local[:most]
    return jax.make_mesh((len(chosen),), (AXIS,), axis_types=(AxisType.Auto,), devices=list(chosen))


def platform(mesh: Mesh) -> str:
    """The kind of its devices."""
    return mesh.devices.flat[0].platform


def side_by_side(mesh: Mesh, same_paths: bool = True) -> int:
    """Members that each device advances at once, at most."""
    if platform(mesh) != "cpu":
        return ON_ACCELERATOR
    if not same_paths:
        return VECTOR
    return SIDE_BY_SIDE if mesh.size == 1 else SIDE_BY_SIDE // 2


def free(mesh: Mesh) -> float:
    """Bytes that each device has left: of its own memory, or (a CPU) its part of what the machine has."""
    told = [device.memory_stats() or {} for device in mesh.devices.flat]
    own = [float(one["bytes_limit"] - one.get("bytes_in_use", 0)) for one in told if "bytes_limit" in one]
    return min(own, default=available() / mesh.size)
