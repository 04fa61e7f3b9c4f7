"""A batch to its end: members side by side on the last axis of every array, blocks of them over devices and time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tqdm import tqdm

from fabsim.engine.batch import Batch
from fabsim.engine.problem import Problem
from fabsim.engine.programs import make_room
from fabsim.engine.run import CHUNK
from fabsim.engine.setup import LATER, prepare
from fabsim.engine.simulate import begin, chunk, empty_frame, finish
from fabsim.engine.state import State
from fabsim.engine.trailing import trailing
from fabsim.models.model import Model
from fabsim.study.devices import AXIS, VECTOR, over, platform, side_by_side
from fabsim.study.hopeless import hopeless
from fabsim.study.series import Watched, laid, series, until_the_end
from fabsim.typing import Array, Float, Int

FIRST_LOOK = 8
"""Chunks of steps after which members that have not ended are looked at, and again at each doubling: whether they ever
can."""

COMPILER: dict[str, dict[str, bool | int]] = {
    "cpu": {"xla_cpu_prefer_vector_width": 512, "xla_cpu_copy_insertion_use_region_analysis": True}
}
"""What the compiler is told, by the kind of devices: to take the widest vectors that there are, and to look closer
before it copies what a loop carries. The numbers are the same, in two thirds of the time."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Tally:
    """Bytes sent, cut and marked on all links, bytes to send again, and the largest queue. [members]; reduced on the
    device."""

    sent: Any
    dropped: Any
    marked: Any
    again: Any
    peak: Any

    def add(self, more: Tally) -> Tally:
        """Sums on the host in float64."""
        new = {name: np.asarray(value, np.float64) for name, value in vars(more).items()}
        sums = {name: getattr(self, name) + value for name, value in new.items() if name != "peak"}
        return Tally(**sums, peak=np.maximum(self.peak, new["peak"]))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the members ended, in numpy.

    Attributes:
        completion, start: [members, F] s; inf for what did not happen.
        flags: [members] bits, see fabsim.engine.flags; a member with any is not to be trusted.
        tally: sums over the links and the time.
        series: [members, T, W] each, by name; NaN after the frame of a member's last completion.
    """

    completion: Float
    start: Float
    flags: Int
    tally: Tally
    series: dict[str, Float]

    @property
    def totals(self) -> dict[str, Float]:
        """Figures of the tally, by the names of fabsim.study.catalogue."""
        sums = {name: getattr(self.tally, name) for name in ("sent", "dropped", "marked", "again")}
        return sums | {"queue_peak": self.tally.peak}

    def first(self, members: int) -> Outcome:
        """The first so many members."""
        return jax.tree.map(lambda x: x[:members], self)


@dataclasses.dataclass(frozen=True)
class Spread:
    """How members lie on devices: what chooses the compiled program, beside shapes and classes.

    Attributes:
        differs: see Batch.
        width: members of a device at a time.
        mesh: one axis of devices.
    """

    differs: tuple[Any, Any]
    width: int
    mesh: Mesh

    @property
    def block(self) -> int:
        """Members at a time on all devices."""
        return self.width * self.mesh.size

    def spec(self, x: Any, differs: bool) -> PartitionSpec:
        """The last axis over the devices where it is that of the members."""
        return PartitionSpec(*(None,) * (np.ndim(x) - 1), AXIS) if differs else PartitionSpec()

    def put(self, x: Any, differs: bool) -> Array:
        """A leaf, on its devices."""
        return jax.device_put(x, NamedSharding(self.mesh, self.spec(x, differs)))

    def place(self, whole: Any, shared: Any, members: Int) -> Any:
        """Some members of a batch on the devices; a block that is not full repeats the last of them."""
        chosen = np.pad(members, (0, self.block - len(members)), mode="edge")
        return jax.tree.map(
            lambda x, differs, there: self.put(x[..., chosen], True) if differs else there, whole, self.differs, shared
        )

    def program(self, function: Callable[..., Any], *args: Any, like: Any) -> Any:
        """Call the function for all members; it takes problem, model and maybe their state.

        like: what it gives for one member, or anything of equal structure and ranks.
        """
        differs = (*self.differs, *map(own, args[2:]))
        local = trailing(function, self.width, differs, own(like))
        spec = jax.tree.map(self.spec, args, differs)
        out = jax.tree.map(
            lambda x, own: PartitionSpec(*(None,) * np.ndim(x), AXIS) if own else PartitionSpec(), like, own(like)
        )
        # The check would refuse a loop that starts from constants, as all of these do.
        return jax.shard_map(local, mesh=self.mesh, in_specs=spec, out_specs=out, check_vma=False)(*args)


def own(tree: Any) -> Any:
    """What members have of their own: all but the counter of steps in a state."""
    return jax.tree.map(
        lambda x: dataclasses.replace(jax.tree.map(lambda _: True, x), step=False) if isinstance(x, State) else True,
        tree,
        is_leaf=lambda x: isinstance(x, State),
    )


def spread_out(batch: Batch, mesh: Mesh, like: int | None = None) -> Spread:
    """As few blocks as there can be for so many members, and those equally wide."""
    most = side_by_side(mesh, batch.same_paths)
    each = -(-(like or batch.members) // mesh.size)
    width = -(-each // -(-each // most))
    return Spread(batch.differs, each if each < VECTOR else -(-width // VECTOR) * VECTOR, mesh)


def run_batch(
    batch: Batch,
    *,
    until: float | None = None,
    every: int = 10,
    horizon: float = 1.0,
    devices: int | Mesh | None = None,
    like: int | None = None,
    watched: Watched | None = None,
    bar: tqdm[Any] | None = None,
) -> Outcome:
    """Run all members, a block of them at a time: until each is complete or has a flag, or for `until` seconds.

    Memory on the devices is that of one block, however many members there are. A member's figures do not depend on
    which others there are.

    Args:
        until, every, horizon: as in fabsim.engine.run.run; a member that is unfinished at the horizon has completions
            that are infinite.
        devices: see fabsim.study.devices.over.
        like: the program is that of a batch of so many members; of this one, if not given.
        watched: series of links to keep; none, if not given.
        bar: counts members that are done.
    """
    make_room()
    spread = spread_out(batch, over(devices, like or batch.members), like)
    whole = (batch.problem, batch.model)
    alike = jax.tree.map(lambda x, differs: None if differs else x, whole, spread.differs)
    shared = jax.device_put(alike, NamedSharding(spread.mesh, PartitionSpec()))
    parts = []
    for members in blocks(batch.members, spread.block):
        problem, model = spread.place(whole, shared, members)
        some = None if watched is None else watched.of(members)
        part = run_block(problem, model, spread, until=until, every=every, horizon=horizon, watched=some)
        parts.append(part.first(len(members)))
        if bar is not None:
            bar.update(len(members))
    kept: dict[str, Float] = {}
    for rows, part in zip(blocks(batch.members, spread.block), parts, strict=True):
        kept |= {name: laid(kept.get(name), rows, x, batch.members) for name, x in part.series.items()}
    parts = [dataclasses.replace(part, series={}) for part in parts]
    return dataclasses.replace(jax.tree.map(lambda *x: np.concatenate(x), *parts), series=kept)


def blocks(members: int, block: int) -> Iterator[Int]:
    """The members of each block; the last may be shorter."""
    for first in range(0, members, block):
        yield np.arange(first, min(first + block, members))


def run_block(
    problem: Problem,
    model: Model[Any],
    spread: Spread,
    *,
    until: float | None,
    every: int,
    horizon: float,
    watched: Watched | None = None,
) -> Outcome:
    """Side by side until the last one is done."""
    dt = float(np.max(np.asarray(problem.dt)))
    count = max(CHUNK // every, 1)
    last = int(np.ceil((horizon if until is None else until) / dt / every * (1 - 1e-6)))  # dt is a rounded number
    last = last if until is not None else -(-last // count) * count
    state = begin_all(problem, model, spread)
    tally = Tally(*(np.zeros(spread.block) for _ in range(5)))
    names, links = (), None
    if watched is not None:
        watched = watched.of(np.minimum(np.arange(spread.block), len(watched.links) - 1))
        names, links = watched.names, spread.put(np.maximum(watched.links, 0).T.astype(np.int32), True)
    seen: list[dict[str, Float]] = []
    done, go_on = 0, advance_all(platform(spread.mesh))
    given_up, look = np.zeros(spread.block, np.int32), FIRST_LOOK * count
    while done < last:
        now = min(count, last - done)
        state, more, complete, kept = go_on(problem, model, state, links, spread, now, every, names)
        seen.append(jax.device_get(kept))
        tally, done = tally.add(more), done + now
        ended = (np.asarray(complete) & (until is None)) | (np.asarray(state.flags) != 0)
        if until is None and done >= look and not ended.all():
            given_up = hopeless(problem, model, state, (*spread.differs, own(state)), ~ended, done * every * dt)
            look = 2 * done
        if (ended | (given_up != 0)).all():
            break
    completion, start, bits = (np.asarray(x) for x in finish_all(problem, model, state, spread))
    bits = bits | given_up
    kept: dict[str, Float] = {}
    if watched is not None:
        frames = completion.max(0, initial=0.0) / dt / every if until is None else None
        whole = {name: np.concatenate([part[name] for part in seen]).transpose(2, 0, 1) for name in names}
        kept = {name: until_the_end(x, watched.links < 0, frames) for name, x in whole.items()}
    return Outcome(completion.T, start.T, bits, tally, kept)


@partial(jax.jit, static_argnums=2)
def begin_all(problem: Problem, model: Model[Any], spread: Spread) -> State:
    """The state of every member at time zero."""
    one = jax.tree.map(lambda x, own: x[..., 0] if own else x, (problem, model), spread.differs)
    return spread.program(begin, problem, model, like=jax.eval_shape(begin, *one))


@cache
def advance_all(kind: str) -> Any:
    """`advance`, compiled for a kind of devices."""
    options = COMPILER.get(kind)
    return jax.jit(advance, static_argnums=(4, 5, 6, 7), donate_argnums=2, compiler_options=options)


def advance(
    problem: Problem, model: Model[Any], state: State, links: Array | None, spread: Spread, count: int, every: int,
    names: tuple[str, ...],
) -> tuple[State, Tally, Array, dict[str, Array]]:  # fmt: skip
    """`count` frames of every member: its state, what it did, whether it is complete, and by name series [frames, W,
    members] of some links [W, members]."""

    def one(
        problem: Problem, model: Model[Any], state: State, links: Array | None
    ) -> tuple[State, Tally, Array, dict[str, Array]]:
        together = platform(spread.mesh) == "cpu"
        state, seen = chunk(problem, model, state, count=count, every=every, checkpoint=False, side_by_side=together)
        sums = (x.sum() * problem.unit for x in (seen.sent, seen.dropped, seen.marked, seen.again))
        complete = (state.flow.completion < LATER).all()
        kept = series(problem, model, seen, links, names, every)
        return state, Tally(*sums, peak=seen.peak.max() * problem.unit), complete, kept

    single = jax.tree.map(lambda x, own: x[..., 0] if own else x, state, own(state))
    like = (single, Tally(0, 0, 0, 0, 0), 0, dict.fromkeys(names, np.zeros((1, 1))))
    return spread.program(one, problem, model, state, links, like=like)


@partial(jax.jit, static_argnums=3)
def finish_all(problem: Problem, model: Model[Any], state: State, spread: Spread) -> tuple[Array, Array, Array]:
    """Completions and starts [F, members] in seconds, and flags [members]."""

    def one(problem: Problem, model: Model[Any], state: State) -> tuple[Array, Array, Array]:
        trace = finish(problem, model, state, empty_frame(prepare(problem, model)))
        return trace.completion, trace.start, trace.flags

    flows = np.zeros(1)
    return spread.program(one, problem, model, state, like=(flows, flows, 0))
