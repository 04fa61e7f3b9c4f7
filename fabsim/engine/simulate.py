"""The pure driver: a jitted, differentiable function from problem and model to a trace."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine import flags
from fabsim.engine.across import total
from fabsim.engine.problem import Problem
from fabsim.engine.setup import LATER, Setup, prepare
from fabsim.engine.spread import COLUMNS, EACH, SAME, STATE, Spread, columns_in_order, either, in_order, on_each
from fabsim.engine.state import State, initial
from fabsim.engine.step import step
from fabsim.errors import InputError
from fabsim.models.model import Model
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ByClass:
    """What happened on the links in a frame, by class of traffic. [C, L], as in Frame."""

    sent: Array
    queue: Array
    peak: Array
    marked: Array
    dropped: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Frame:
    """What happened on the links and to the flows in `every` steps; with a leading axis of frames in a trace. SI units.

    Attributes:
        sent: [L] bytes of data that left.
        queue: [L] bytes waiting, on average.
        peak: [L] bytes waiting, at most (at the end of a step).
        marked: [L] bytes of data that got a congestion mark here.
        dropped: [L] bytes of data that were cut at the port, or lost on the link.
        again: [F] bytes that a sender learnt it must send again.
        headers: [L] bytes of headers of trimmed packets that left, and of acknowledgements, as far as the data leaves
            room for them; None where there are neither.
        paused: [L] s for which the link was paused; None where nobody pauses. Of the class that was so for longest.
        by_class: the same by class of traffic; None where there is but one.
    """

    sent: Array
    queue: Array
    peak: Array
    marked: Array
    dropped: Array
    again: Array
    headers: Array | None = None
    paused: Array | None = None
    by_class: ByClass | None = None

    @property
    def busy(self) -> Array:
        """[L] bytes of all that left."""
        return self.sent if self.headers is None else self.sent + self.headers


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Trace:
    """The result of a run. F flows, T frames. SI units.

    Attributes:
        completion: [F] s, when the last byte was at the receiver, from time zero; inf where it was not.
        sender_completion: [F] s, when the sender knew.
        start: [F] s, when the flow started; inf where it did not.
        frames: see Frame, leading axis T.
        state: the last state (to go on from, or to look into); of a problem that is spread, as it lies on the devices.
        flags: int32 bits, see engine.flags.
    """

    completion: Array
    sender_completion: Array
    start: Array
    frames: Frame
    state: State
    flags: Array


FRAME = Frame(SAME, SAME, SAME, SAME, SAME, again=COLUMNS, headers=SAME, paused=SAME, by_class=SAME)
TRACE = Trace(EACH, EACH, EACH, SAME, STATE, EACH)
"""How they lie on the devices of a problem that is spread, before flows are put in order: what happens on the links is
known to all."""


def empty_frame(s: Setup) -> Frame:
    """A frame of zeros, in units, of queues where there are several classes."""
    link, flow = jnp.zeros_like(s.capacity[:-1]), jnp.zeros_like(s.size)
    ahead = s.queue.trims or s.problem.reverse is not None
    return Frame(link, link, link, link, link, flow, link if ahead else None, link if s.queue.pauses else None)


def of_links(s: Setup, frame: Frame, peak: Array) -> Frame:
    """A frame of links from one of queues, with their common `peak` [L]."""
    classes = s.problem.classes
    by = {item.name: getattr(frame, item.name).reshape(classes, -1) for item in dataclasses.fields(ByClass)}
    whole = {name: x.sum(0) for name, x in by.items()} | {"peak": peak}
    headers = None if frame.headers is None else frame.headers.reshape(classes, -1).sum(0)
    paused = None if frame.paused is None else frame.paused.reshape(classes, -1).max(0)
    return dataclasses.replace(frame, **whole, headers=headers, paused=paused, by_class=ByClass(**by))


def advance(s: Setup, state: State, every: int) -> tuple[State, Frame]:
    """`every` steps, and what was seen in them, in units.

    The senders' ports have no queue, and so no signal: what they sent is added at the end.
    """

    def body(carry: tuple[Any, ...], _: None) -> tuple[tuple[Any, ...], None]:
        state, sums, peak, together, again, injected, headers = carry
        state, seen = step(s, state)
        sent, queue = seen.signal.sent[:-1], seen.queue[:-1]
        # One wide sum: the cost of a step is in the number of its operations.
        new = [sent, queue / every, seen.signal.marked[:-1], seen.signal.drop[:-1]]
        if seen.loss is not None:
            new[3] = new[3] + seen.loss[:-1] * seen.left[:-1]
        if seen.opening is not None:
            new.append(1.0 - seen.opening[:-1])
        sums = sums + jnp.stack(new)
        if together is not None:
            together = jnp.maximum(together, queue.reshape(s.problem.classes, -1).sum(0))
        if headers is not None:  # on its own: batches leave it out, unless they keep utilisation over time
            headers = headers + seen.signal.headers[:-1]
        again, injected = again + seen.again, injected + seen.injected
        return (state, sums, jnp.maximum(peak, queue), together, again, injected, headers), None

    zero = empty_frame(s)
    none = jnp.stack([zero.sent] * (5 if s.queue.pauses else 4))
    together = jnp.zeros_like(zero.peak[: s.problem.links]) if s.problem.classes > 1 else None
    begin = (state, none, zero.peak, together, zero.again, jnp.zeros_like(s.rate), zero.headers)
    (state, sums, peak, together, again, injected, headers), _ = jax.lax.scan(body, begin, None, length=every)
    by_port = jnp.zeros_like(sums[0]).at[s.problem.port_link].add(injected)
    sent, paused = sums[0] + total(s.problem, by_port), sums[4] if s.queue.pauses else None
    frame = Frame(sent, sums[1], peak, marked=sums[2], dropped=sums[3], again=again, headers=headers, paused=paused)
    frame = frame if together is None else of_links(s, frame, together)
    frame = frame if headers is None else within_line(s, frame, every)
    finite = jnp.isfinite(sums).all() & jnp.isfinite(state.flow.credit).all()
    return dataclasses.replace(state, flags=state.flags | (~finite) * flags.NOT_FINITE), frame


def within_line(s: Setup, frame: Frame, every: int) -> Frame:
    """A frame in which no link sends more than it can: a sender's acknowledgements take no room from its data."""
    spare = jnp.maximum(every * s.capacity[: s.problem.links] - frame.sent, 0.0)
    return dataclasses.replace(frame, headers=None if frame.headers is None else jnp.minimum(frame.headers, spare))


def summarise(s: Setup, state: State, frames: Frame) -> Trace:
    """Steps to seconds and units to bytes; inf for what did not happen."""
    dt = s.problem.dt
    paused = None if frames.paused is None else frames.paused * dt
    frames = dataclasses.replace(jax.tree.map(lambda x: x * s.problem.unit, frames), paused=paused)

    def seconds(steps: Array) -> Array:
        return jnp.where(steps >= LATER, jnp.inf, steps * dt)

    done = state.flow.completion
    knows = jnp.where(done >= LATER, LATER, done + s.back)
    return Trace(seconds(done), seconds(knows), seconds(state.flow.begin), frames, state, state.flags | flags.check(s))


def frames(s: Setup, state: State, count: int, every: int, checkpoint: bool) -> tuple[State, Frame]:
    """`count` frames one after another, in units; both drivers run this very loop."""

    def frame(state: State, _: None) -> tuple[State, Frame]:
        return advance(s, state, every)

    body = jax.checkpoint(frame, prevent_cse=False) if checkpoint else frame
    return jax.lax.scan(body, state, None, length=count)


@jax.jit
def begin(problem: Problem | Spread, model: Model[Any]) -> State:
    """The state at time zero."""
    return on_each(problem, model, lambda p, m: initial(prepare(p, m)), (), STATE)


def chunk(
    problem: Problem | Spread, model: Model[Any], state: State, *, count: int, every: int, checkpoint: bool = True,
    side_by_side: bool = False,
) -> tuple[State, Frame]:  # fmt: skip
    """`count` frames more. It is jitted twice: here, and by the host driver with the state's memory donated. Batches
    make it a program of their own, for which see Setup.side_by_side."""

    def more(problem: Problem, model: Model[Any], state: State) -> tuple[State, Frame]:
        return frames(prepare(problem, model, side_by_side), state, count, every, checkpoint)

    state, seen = on_each(problem, model, more, (STATE,), (STATE, FRAME), state)
    return state, dataclasses.replace(seen, again=columns_in_order(problem, seen.again))


keep_going = jax.jit(chunk, static_argnames=("count", "every", "checkpoint"))


@jax.jit
def finish(problem: Problem | Spread, model: Model[Any], state: State, seen: Frame) -> Trace:
    """The trace of a state and its frames."""

    def trace(problem: Problem, model: Model[Any], state: State, seen: Frame) -> Trace:
        return summarise(prepare(problem, model), state, seen)

    found = on_each(problem, model, trace, (STATE, SAME), TRACE, state, seen)
    done, known, start = in_order(problem, (found.completion, found.sender_completion, found.start))
    return Trace(done, known, start, found.frames, found.state, either(problem, found.flags))


def simulate(
    problem: Problem | Spread, model: Model[Any], *, steps: int, every: int = 10, checkpoint: bool = True
) -> Trace:
    """Run `steps` steps, rounded up to whole frames of `every`: a pure function, differentiable and vmappable.

    Three jitted programs one after another, so that the host driver, which runs the same three, gives equal values to
    the bit. Inside somebody's jit, grad or vmap they are one program.

    Args:
        problem: from fabsim.engine.problem.build, or one that is spread over devices (fabsim.engine.spread).
        model: parameters in SI units, floating ones of the problem's dtype; gradients by any of these. Each row of
            `split.weight` sums to 1, and nothing here sees to it: a step along its raw gradient leads away from that.
            Descend on what a softmax makes shares of, as fabsim.study.parameters.Shares does.
        steps: steps of problem.dt, 1 or more. Flows that are not through by then have an infinite `completion`.
        every: steps of one frame, 1 or more.
        checkpoint: recompute the inside of a frame in the backward pass: memory of one state per frame instead of
            one per step.

    Returns:
        A Trace. Look at its `flags` before its numbers: 0 where all is well; else the sum of 1 (a value is not a number
        any more), 2 (grains of a coupled flow overtook each other), 4 (delays are longer than the problem was built
        for) and 8 (latencies are shorter than a step a link). fabsim.engine.flags.sentences says so in words.

    Raises:
        InputError: steps or every is no whole number of 1 or more; a floating leaf is wider than the problem's dtype (a
            float32 problem with what was made after JAX was switched to 64 bits); silent losses without a recovery; a
            problem and a model of different classes of traffic.
    """
    for name, count in (("steps", steps), ("every", every)):
        if not isinstance(count, int | np.integer) or count < 1:
            raise InputError(f"{name}: {count} given; a whole number of 1 or more would do")
    state, seen = keep_going(
        problem, model, begin(problem, model), count=-(-steps // every), every=every, checkpoint=checkpoint
    )
    return finish(problem, model, state, seen)
