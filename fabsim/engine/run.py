"""The host driver: the same compiled frames, chunk by chunk, with progress, early stop and errors as sentences."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from tqdm import tqdm

from fabsim.engine import flags
from fabsim.engine.problem import Problem
from fabsim.engine.programs import make_room
from fabsim.engine.setup import LATER, prepare
from fabsim.engine.simulate import Frame, Trace, begin, chunk, finish
from fabsim.engine.spread import EACH, SAME, Spread, either, look, on_each, spread
from fabsim.engine.state import State
from fabsim.engine.stuck import cut_off_for_good, explain_stuck, moves, named, where_not_finite
from fabsim.errors import Stopped
from fabsim.models.model import Model

CHUNK = 200
"""Steps between two looks of the host: long enough that they cost nothing, short enough to stop soon after the end."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run: the trace as numpy arrays, and how it was made.

    Attributes:
        trace: see Trace; frames have a leading axis of time.
        time: [T] s, the end of each frame.
        steps: steps done.
        dt: s.
        wall: seconds on the clock, compilation included.
    """

    trace: Trace
    time: np.ndarray
    steps: int
    dt: float
    wall: float


go_on = jax.jit(chunk, static_argnames=("count", "every", "checkpoint"), donate_argnames=("state",))


def run(
    problem: Problem,
    model: Model[Any],
    *,
    until: float | None = None,
    every: int = 10,
    horizon: float = 10.0,
    progress: bool = True,
    mesh: Mesh | None = None,
) -> Run:
    """Run until all flows are complete, or for `until` seconds.

    Args:
        until: seconds to simulate; None: until the last completion.
        every: steps of a frame.
        horizon: seconds after which a run until done is given up.
        progress: a bar on stderr (never where stderr is no terminal).
        mesh: devices over which the flows are spread, see fabsim.engine.spread; None: all on one.

    Raises:
        InputError: more devices than ports that send.
        Stopped: not a number (with its time and place), no progress (who waits for whom), unfinished at the horizon.
    """
    began = time.perf_counter()
    make_room()
    dt = float(problem.dt)
    count = max(CHUNK // every, 1)
    last = int(np.ceil((horizon if until is None else until) / dt / every * (1 - 1e-6)))  # dt is a rounded number
    if until is None:
        last = -(-last // count) * count  # whole chunks: another length would be another program
    idle = 0
    lies = problem if mesh is None else spread(problem, mesh)
    model = model if mesh is None else jax.device_put(jax.tree.map(np.asarray, model), NamedSharding(mesh, SAME))
    state = begin(lies, model)
    seen: list[Frame] = []
    done = 0
    with tqdm(total=problem.flows, unit="flow", disable=None if progress else True, leave=False) as bar:
        while done < last:
            now = min(count, last - done)
            state, frame = go_on(lies, model, state, count=now, every=every)
            done += now
            seen.append(jax.device_get(frame))
            known = look(lies, state)
            complete = np.asarray(known.flow.completion) < LATER
            bar.update(int(complete.sum()) - bar.n)
            bar.set_postfix_str(f"{done * every * dt * 1e6:.0f} us simulated")
            halt(lies, model, known, done * every * dt)
            if until is None and complete.all():
                break
            if until is not None:
                continue
            cut = cut_off_for_good(problem, model.split.weight, known, done * every * dt)
            idle = 0 if moves(seen[-1], known, cut) else idle + now * every
            if idle > problem.ring:  # nothing is on a long wire any more
                explain_stuck(problem, known, cut, done * every * dt, idle * dt)
        else:
            if until is None:
                left = np.asarray(look(lies, state).flow.completion) >= LATER
                text = f"{int(left.sum())} of {problem.flows} flows are unfinished at the horizon of {horizon:g} s"
                raise Stopped(f"{text}: {named(problem, left, done * every * dt)}")
    whole = jax.tree.map(lambda *x: np.concatenate(x), *seen)
    trace = jax.tree.map(to_host, finish(lies, model, state, whole))
    trace = until_last(trace, dt, every) if until is None else trace
    length = trace.frames.queue.shape[0]
    return Run(trace, (np.arange(length) + 1) * every * dt, done * every, dt, time.perf_counter() - began)


def to_host(x: jax.Array) -> Any:
    """As a numpy array, unless parts of it (of the last state) lie with another process."""
    return jax.device_get(x) if x.is_fully_addressable or x.is_fully_replicated else x


def halt(problem: Problem | Spread, model: Model[Any], state: State, now: float) -> None:
    """Stop with a sentence if a flag is up."""
    bits = int(state.flags) | int(first_check(problem, model))
    links = (problem if isinstance(problem, Problem) else problem.problem).links
    if bits & flags.NOT_FINITE:
        raise Stopped(f"not a number before {now * 1e6:.3f} us, {where_not_finite(state, links)}")
    if bits:
        raise Stopped("; ".join(flags.sentences(bits)))


@jax.jit
def first_check(problem: Problem | Spread, model: Model[Any]) -> jax.Array:
    """Flags that hold from the start."""
    return either(problem, on_each(problem, model, lambda p, m: flags.check(prepare(p, m)), (), EACH))


def until_last(trace: Trace, dt: float, every: int) -> Trace:
    """Drop the frames after the one in which the last sender knew."""
    end = np.max(trace.sender_completion, initial=0.0)
    keep = int(np.ceil(end / dt / every)) + 1
    return dataclasses.replace(trace, frames=jax.tree.map(lambda x: x[:keep], trace.frames))
