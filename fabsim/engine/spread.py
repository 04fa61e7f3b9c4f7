"""One problem on several devices: each has a part of the flows and all of the links.

Flows meet at links, at triggers and where one follows another; there the devices tell each other (see across). All else
is the program of one device, in `jax.shard_map`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from fabsim.engine.batch import stack_first, widen
from fabsim.engine.deal import AXIS, deal, part
from fabsim.engine.flags import SENTENCES
from fabsim.engine.problem import STATIC, Problem
from fabsim.engine.state import State
from fabsim.errors import InputError
from fabsim.models.model import Model
from fabsim.typing import Array

EACH: Any = P(AXIS)
SAME: Any = P()
COLUMNS: Any = P(None, AXIS)
"""How an array lies on the devices: with a leading axis of them; whole on each, and equal; with its columns parted."""

COMMON = ("dt", "unit", "ack", "mtu", "reverse", "tail", "faults")
"""Fields of a problem that all devices have in common."""

STATE = State(
    step=SAME, flow=EACH, tags=EACH, ports=SAME, waiting=EACH, moving=EACH, ring=EACH, links=SAME, past=SAME,
    fired=SAME, sent=SAME, law=EACH, flags=EACH, recovery=EACH, layers=SAME, pause=SAME, last=EACH,
    balance=EACH, paths=EACH, lines=EACH, behind=EACH, ahead=EACH,
)  # fmt: skip
"""How a state lies: the ports and the triggers are on each device, and equal."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Spread:
    """A problem that is spread over devices; the drivers take it in place of the problem. D devices, M places of each.

    Attributes:
        mesh: the devices, with one axis named AXIS.
        problem: the parts, with a leading axis [D]; what they have in common as it is.
        order: [D, M] the flow at each place.
        place: [F] the place of each flow, device x M + column.
    """

    mesh: Mesh = dataclasses.field(metadata=STATIC)
    problem: Problem
    order: Array
    place: Array


def first(count: int, there: Sequence[Any]) -> Sequence[Any]:
    """So many of the devices that there are. Raises InputError."""
    if not isinstance(count, int | np.integer) or not 1 <= count <= len(there):
        found = f"JAX finds {len(there)} {there[0].platform} here"
        raise InputError(f"devices: {count} given, and {found}; {'1 to ' * (len(there) > 1)}{len(there)} would do")
    return there[:count]


def over(devices: Sequence[Any]) -> Mesh:
    """The mesh of these devices."""
    return jax.make_mesh((len(devices),), (AXIS,), axis_types=(AxisType.Auto,), devices=devices)


def in_host_memory() -> AbstractContextManager[Any]:
    """Arrays made herein stay beside the CPU: the whole problem may be too large for one device."""
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # JAX has been told to leave the CPU alone
        return nullcontext()


def spread(problem: Problem, mesh: Mesh) -> Spread:
    """Deal the flows of a problem out to the devices of a mesh (see `over`).

    A run gives the figures of the problem on one device, but for rounding: sums over flows go in another order. Flows
    come back in their own order. A law must not look at other flows than its own (what is in its state is parted).

    Raises:
        InputError: there are more devices than ports that send.
    """
    with in_host_memory():
        order, place = deal(problem, mesh.size)
        real = np.bincount(place // order.shape[1], minlength=mesh.size)
        parts = [part(problem, flows, count, place, order.size) for flows, count in zip(order, real, strict=True)]
        whole = dataclasses.replace(stack_first(widen(parts)), **{name: getattr(problem, name) for name in COMMON})
    lies = jax.tree.map(lambda spec: NamedSharding(mesh, spec), layout(whole))
    same = NamedSharding(mesh, SAME)
    return Spread(
        mesh,
        jax.device_put(jax.tree.map(np.asarray, whole), lies),
        jax.device_put(order.astype(np.int32), same),
        jax.device_put(place.astype(np.int32), same),
    )


def layout(problem: Problem) -> Problem:
    """How the parts of a problem lie on the devices."""
    return dataclasses.replace(jax.tree.map(lambda _: EACH, problem), **dict.fromkeys(COMMON, SAME))


def dealt(s: Spread, model: Model[Any]) -> tuple[Model[Any], Model[Any]]:
    """The model with its arrays by flow dealt out as the flows are, and how it lies on the devices.

    Raises InputError for a law that looks at the flows of other senders, which may be on other devices.
    """
    if getattr(model.transport, "alone", False) and s.mesh.size > 1:
        law = type(model.transport).__name__
        raise InputError(f"{law} looks at the flows of other senders, which may be on other devices; 1 device would do")
    flows = s.place.shape[0]

    def by_flow(x: Array) -> bool:
        return jnp.ndim(x) > 0 and jnp.shape(x)[0] == flows

    ends = model.transport, model.recovery, model.balancer
    law, recovery, balancer = jax.tree.map(lambda x: x[s.order] if by_flow(x) else x, ends)
    law_lies, recovery_lies, balancer_lies = jax.tree.map(lambda x: EACH if by_flow(x) else SAME, ends)
    split = jax.tree.map(lambda x: x[s.order], model.split)
    model = dataclasses.replace(model, transport=law, recovery=recovery, balancer=balancer, split=split)
    return model, Model(SAME, SAME, law_lies, EACH, recovery_lies, balancer_lies, SAME)


def on_each(
    problem: Problem | Spread, model: Model[Any], work: Callable[..., Any], takes: Any, gives: Any, *more: Any
) -> Any:
    """work(problem, model, *more), on each device with its own part where the problem is spread.

    takes, gives: how `more`, and what comes back, lie on the devices.
    """
    if isinstance(problem, Problem):
        return work(problem, model, *more)
    model, lies = dealt(problem, model)
    takes = (layout(problem.problem), lies, *takes)

    def own(*given: Any) -> Any:
        return at_each(gives, work(*at_each(takes, given, lambda x: x[0])), lambda x: x[None])

    return jax.shard_map(own, mesh=problem.mesh, in_specs=takes, out_specs=gives)(problem.problem, model, *more)


def at_each(lies: Any, tree: Any, change: Callable[[Array], Array]) -> Any:
    """Change the arrays that have an axis of devices."""
    return jax.tree.map(
        lambda spec, inner: jax.tree.map(change, inner) if spec == EACH else inner,
        lies,
        tree,
        is_leaf=lambda x: isinstance(x, P),
    )


def in_order(problem: Problem | Spread, tree: Any) -> Any:
    """[D, M, ...] -> [F, ...] arrays by flow in the order of the flows, whole on each device."""
    if isinstance(problem, Problem):
        return tree
    same = NamedSharding(problem.mesh, SAME)
    return jax.tree.map(
        lambda x: jax.lax.with_sharding_constraint(x.reshape(-1, *x.shape[2:])[problem.place], same), tree
    )


def columns_in_order(problem: Problem | Spread, x: Array) -> Array:
    """[T, D x M] -> [T, F]."""
    return x if isinstance(problem, Problem) else in_order(problem, x.T[None]).T


def either(problem: Problem | Spread, bits: Array) -> Array:
    """[D] -> [] the bits that are set on any device."""
    if isinstance(problem, Problem):
        return bits
    return (bits[:, None] & np.array(list(SENTENCES), np.int32)).max(0).sum(dtype=np.int32)


def look(problem: Problem | Spread, state: State) -> State:
    """The state with flags and flows as one device would have them, for the host to look at."""
    return state if isinstance(problem, Problem) else _look(problem, state)


@jax.jit
def _look(problem: Spread, state: State) -> State:
    flow, recovery = in_order(problem, (state.flow, state.recovery))
    return dataclasses.replace(state, flow=flow, recovery=recovery, flags=either(problem, state.flags))
