"""A batch: scenarios of one shape advance as one program."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from fabsim.engine.problem import Problem
from fabsim.engine.run import CHUNK
from fabsim.engine.setup import LATER, prepare
from fabsim.engine.simulate import begin, chunk, empty_frame, finish
from fabsim.engine.state import State
from fabsim.models.model import Model
from fabsim.study.batch import Batch
from fabsim.typing import Array, Float, Int


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a batch leaves. Leading axis: members.

    Attributes:
        completion, start: [B, F] s from time zero; inf for what did not happen.
        flags: [B] bits of the engine.
        totals: [B] each: sent, dropped, marked, again, queue_peak; B.
    """

    completion: Float
    start: Float
    flags: Int
    totals: dict[str, Float]

    def trace(self, name: str) -> Float:
        """An array of each member."""
        return getattr(self, name)


def run_batch(
    batch: Batch, *, until: float | None, every: int, horizon: float, devices: int | None, members: int,
    bar: tqdm[Any] | None,
) -> Outcome:  # fmt: skip
    """All members until the last one is done; of those that only fill the batch, beyond `members`, nothing is left."""
    problem, model = batch.problem, batch.model
    dt = float(np.max(np.asarray(problem.dt)))
    count = max(CHUNK // every, 1)
    last = int(np.ceil((horizon if until is None else until) / dt / every / count))
    state = begin_all(problem, model)
    tally = Tally(*(np.zeros(len(np.asarray(state.step))) for _ in range(5)))
    ended = np.zeros(members, bool)
    for _ in range(last):
        state, more = advance_all(problem, model, state, count, every)
        tally = tally.add(more)
        now = until is None and (np.asarray(state.flow.completion) < LATER).all(-1)
        now = (now | (np.asarray(state.flags) != 0))[:members]
        if bar is not None:
            bar.update(int((now & ~ended).sum()))
        ended |= now
        if ended.all():
            break
    if bar is not None:
        bar.update(int((~ended).sum()))
    completion, start, bits = (np.asarray(x)[:members] for x in finish_all(problem, model, state))
    totals = {name: value[:members] for name, value in vars(tally).items()}
    totals["queue_peak"] = totals.pop("peak")
    return Outcome(completion, start, bits, totals)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Tally:
    """Bytes sent, cut and marked on all links, bytes to send again, and the largest queue. [batch]; reduced on the
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


begin_all = jax.jit(jax.vmap(begin))


@partial(jax.jit, static_argnums=(3, 4), donate_argnums=(2,))
def advance_all(problem: Problem, model: Model[Any], state: State, count: int, every: int) -> tuple[State, Tally]:
    """`count` frames of every member."""

    def one(problem: Problem, model: Model[Any], state: State) -> tuple[State, Tally]:
        state, seen = chunk(problem, model, state, count=count, every=every)
        sums = (x.sum() * problem.unit for x in (seen.sent, seen.dropped, seen.marked, seen.again))
        return state, Tally(*sums, peak=seen.peak.max() * problem.unit)

    return jax.vmap(one)(problem, model, state)


@jax.jit
def finish_all(problem: Problem, model: Model[Any], state: State) -> tuple[Array, Array, Array]:
    """Completions and starts [batch, F] in seconds, and flags [batch]."""

    def one(problem: Problem, model: Model[Any], state: State) -> tuple[Array, Array, Array]:
        trace = finish(problem, model, state, empty_frame(prepare(problem, model)))
        return trace.completion, trace.start, trace.flags

    return jax.vmap(one)(problem, model, state)
