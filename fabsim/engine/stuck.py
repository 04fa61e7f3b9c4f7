"""Runs that go nowhere: who waits for whom, and where a number was lost."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.faults import FOR_EVER, living, own_port
from fabsim.engine.problem import Problem
from fabsim.engine.setup import LATER
from fabsim.engine.simulate import Frame
from fabsim.engine.state import State
from fabsim.errors import Stopped
from fabsim.typing import Array, Bool

NAMED = 3
"""Flows that a message names; the rest are counted."""


def moves(seen: Frame, state: State, cut: Bool) -> bool:
    """Whether any byte moved in these frames that may arrive; cut: [F] flows that are cut off for good."""
    begun = under_way(state)
    return float(np.asarray(seen.sent).sum()) > 0 and not (begun.any() and cut[begun].all())


def under_way(state: State) -> Bool:
    """[F] flows that have started and are not complete."""
    return (np.asarray(state.flow.begin) < LATER) & (np.asarray(state.flow.completion) >= LATER)


def cut_off_for_good(problem: Problem, weight: Array, state: State, now: float) -> Bool:
    """[F] flows under way that must still send and have no path left on which anything will ever get through, and those
    that wait for bytes of such a flow. weight: [F, K] of the routing; now: s.

    Senders that find out by themselves go on trying: they miss what is lost, send it again, and probe. A flow that has
    sent all may have it behind the dead link; what is under way when a link dies is settled a round trip later.
    """
    unfinished = under_way(state)
    if problem.faults is None:
        return np.zeros_like(unfinished)
    f = jax.tree.map(np.asarray, problem.faults)
    settled = now - problem.ring * float(problem.dt)
    ever = (f.begin <= settled) & (f.end > FOR_EVER / 2) & (f.period > FOR_EVER / 2) & (f.speed <= 0)
    if not ever.any():
        return np.zeros_like(unfinished)
    through = np.asarray(whole_paths(problem, ever)) * np.asarray(weight)
    flow = jax.tree.map(np.asarray, state.flow)
    owes = flow.credit + flow.held + flow.lost > 0
    cut = unfinished & owes & ~(through > 0).any(-1)
    leader, more = np.asarray(problem.leader), cut
    while more.any():
        more = np.append(cut, False)[leader] & unfinished & ~cut
        cut = cut | more
    return cut


@jax.jit
def whole_paths(problem: Problem, ever: Array) -> Array:
    """[F, K] 1.0 for the paths without a link that these events [E] have dead, the sender's port included, else 0.0.
    One program, since the host asks anew after each chunk."""
    assert problem.faults is not None
    f = problem.faults.inside(problem.dt, problem.classes)
    alive = f.left(ever.astype(f.speed.dtype))
    return living(problem, alive) * own_port(problem, alive)


def changes_after(problem: Problem, now: float, idle: float) -> bool:
    """Whether links are still to change, or senders to learn of it: at a time, or by a flap of which not a whole period
    has gone by in the `idle` seconds in which nothing has moved. What a change sets free needs a round trip to show."""
    if problem.faults is None:
        return False
    f = jax.tree.map(np.asarray, problem.faults)
    times = np.stack([f.begin, f.end]) + f.react
    once = (times > now - problem.ring * float(problem.dt)) & (times < FOR_EVER / 2)
    flaps = (f.end + f.react > now) & (f.period < FOR_EVER / 2) & (f.period + f.react > idle)
    return bool(once.any() or flaps.any())


def cut_off(problem: Problem, now: float) -> Bool:
    """[F] whether a path of a flow is dead."""
    if problem.faults is None:
        return np.zeros(problem.flows, bool)
    lives = problem.faults.inside(problem.dt, problem.classes).lives(jnp.asarray(now) / problem.dt)
    return np.asarray((living(problem, lives) < 0.5).any(-1))


def explain_stuck(problem: Problem, state: State, cut: Bool, now: float, idle: float) -> None:
    """Raise Stopped, of a run in which nothing has moved for `idle` seconds, longer than any round trip, unless a start
    or a timeout is due, or a link is to change: nothing to flows that are cut off for good (cut, [F])."""
    starts, complete = np.asarray(state.flow.start_in), np.asarray(state.flow.completion) < LATER
    waits, begun = (np.asarray(state.flow.begin) >= LATER) & ~complete, under_way(state)
    timers = np.full(starts.shape, LATER) if state.recovery is None else np.asarray(state.recovery.timer).min(-1)
    if complete.all() or (waits & (starts < LATER / 2)).any():
        return
    hopeless = begun.any() and cut[begun].all()
    if not hopeless and (changes_after(problem, now, idle) or (begun & (timers < LATER / 2)).any()):
        return
    if waits.any() and not begun.any():
        raise Stopped(f"no progress at {now * 1e6:.3f} us: " + who_waits(problem, state, waits))
    leader = np.asarray(problem.leader)
    follows = begun & (np.asarray(state.flow.held) > 0) & (leader < problem.flows)
    if follows.any() and not hopeless:
        pairs = [f"flow {i + 1} waits for bytes of flow {leader[i] + 1}" for i in np.flatnonzero(follows)[:NAMED]]
        raise Stopped(f"no progress at {now * 1e6:.3f} us: {'; '.join(pairs)}; {int(follows.sum())} flows in all")
    paused = 0 if state.pause is None else int(np.asarray(state.pause.wants).sum())
    circle = f"; {paused} links are paused, for each other in a circle" if paused else ""
    raise Stopped(f"no progress at {now * 1e6:.3f} us: nothing moves for {named(problem, begun, now)}{circle}")


def named(problem: Problem, some: Bool, now: float) -> str:
    """The first few of some flows, how many there are, and how many of them have links on their paths that are dead."""
    names = ", ".join(str(i + 1) for i in np.flatnonzero(some)[:NAMED])
    apart = int((cut_off(problem, now) & some).sum())
    dead = f"; {apart} of them wait for links that are down and stay down" if apart else ""
    return f"flows {names} ({int(some.sum())} in all){dead}"


def who_waits(problem: Problem, state: State, waits: Bool) -> str:
    """The first few waiting flows with what they wait for."""
    trigger, fires = np.asarray(problem.trigger), np.asarray(problem.fires)
    need, fired = np.asarray(problem.need), np.asarray(state.fired)
    parts = []
    for flow in np.flatnonzero(waits)[:NAMED]:
        on = [str(i + 1) for i in np.flatnonzero((fires == trigger[flow]).any(-1))[:NAMED]] or ["no flow at all"]
        parts.append(
            f"flow {flow + 1} waits for completion {need[flow]} of {', '.join(on)} ({fired[trigger[flow]]} seen)"
        )
    return "; ".join(parts) + f"; {int(waits.sum())} flows wait in all"


def where_not_finite(state: State, links: int) -> str:
    """The first port or flow with a bad number, of so many links."""
    queue, credit = np.asarray(state.ports.queue), np.asarray(state.flow.credit)
    if (~np.isfinite(queue)).any():
        return f"first in the queue of link {int(np.flatnonzero(~np.isfinite(queue))[0]) % links}"
    if (~np.isfinite(credit)).any():
        return f"first at flow {int(np.flatnonzero(~np.isfinite(credit))[0]) + 1}"
    return "in a derived value"
