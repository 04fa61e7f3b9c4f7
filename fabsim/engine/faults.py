"""Faults on the way: links that die, slow down, flap or lose bytes while a run goes on, and senders that learn of it.

An event is a span of time, some links, and what is left of them. It takes its part of a step in which it begins or
ends, so that completions are smooth in its times almost everywhere (they jump where a flow's last byte changes its
path, and where a timeout more or less fits in).

What comes to a dead port waits there: beyond its buffer, too, where ports trim, since no header would get through
(others drop what they have no room for). Senders know the state of the fabric as it was `react` ago: from then on they
use the paths that are alive, in the proportions of their split. What still waits at a port whose death is known is
given up: it is cut as if there were no room, so the sender hears of it over a trimming port (as with MRC, whose
receivers report losses), and misses it by its timeout over any other. A port that is up again before that has lost
nothing. A sender knows its own port at once: others take what that one cannot send. Acknowledgements on their way back
are neither lost nor late.

Under a balancer that `misses` what it lost by path, nothing waits at a dead port: it loses all in silence, from the
moment of its death, and the balancer finds out by the timeouts of its flows, mostly before `react`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import Problem, by_port
from fabsim.models.classes import each
from fabsim.typing import Array
from fabsim_kernels.load import read

if TYPE_CHECKING:
    from fabsim.engine.setup import Setup

FOR_EVER = 1e9
"""Seconds of what does not end: finite, so that no gradient meets an infinity."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Faults:
    """The schedule. E events; times in seconds as built, in steps inside the engine.

    Only E chooses the program: a sweep over times, places and speeds does not compile again.

    Attributes:
        links: [E, L + 1] 1.0 for the links that an event befalls, else 0.0.
        begin, end: [E] s.
        speed: [E] share of the rate that is left; 0: dead.
        loss: [E] share of what leaves that the links lose in silence; None where no event has any.
        period, down: [E] s; within its span, an event holds for `down` at the beginning of each `period`.
        react: [E] s, after which senders know of an event, or of its end.
    """

    links: Array
    begin: Array
    end: Array
    speed: Array
    loss: Array | None
    period: Array
    down: Array
    react: Array

    def inside(self, dt: Array, classes: int = 1) -> Self:
        """The same with times in steps, and with the links once for each class of traffic."""
        times = {name: getattr(self, name) / dt for name in ("begin", "end", "period", "down", "react")}
        if classes > 1:
            times["links"] = jnp.concatenate([each(self.links[:, :-1], classes), self.links[:, -1:]], 1)
        return replace(self, **times)

    def active(self, step: Array) -> Array:
        """[E] the share of the step that begins at `step` (a real number, or one for each event) for which each event
        holds."""
        x, y = (jnp.clip(t, self.begin, self.end) - self.begin for t in (step, step + 1.0))
        before = jnp.floor(x / self.period) * self.period

        def held(span: Array) -> Array:
            whole = jnp.floor(span / self.period)
            return whole * self.down + jnp.minimum(span - whole * self.period, self.down)

        return held(y - before) - held(x - before)

    def left(self, taken: Array) -> Array:
        """[L + 1] what is left of each link where events take [E] shares of it."""
        return (1.0 - self.links * taken[:, None]).prod(0)

    def lives(self, step: Array) -> Array:
        """[L + 1] the share of the step for which no event has a link dead; `step` as in `active`."""
        return self.left(jnp.where(self.speed <= 0, self.active(step), 0.0))


def faults(
    links: list[np.ndarray], count: int, *, begin: object, end: object = FOR_EVER, speed: object = 1.0,
    loss: object = 0.0, period: object = FOR_EVER, down: object = FOR_EVER, react: object, dtype: str = "float32",
) -> Faults:  # fmt: skip
    """The schedule of events on given links, one array of link numbers an event, of `count` links. Other columns are
    scalars or [E], see Faults."""
    hit = np.zeros((len(links), count + 1), dtype)
    for row, mine in zip(hit, links, strict=True):
        row[mine] = 1.0
    columns = {"begin": begin, "end": end, "speed": speed, "loss": loss, "period": period, "down": down, "react": react}
    real = {name: np.broadcast_to(np.asarray(x, dtype), len(links)) for name, x in columns.items()}
    given: dict[str, Any] = {name: jnp.asarray(x) for name, x in real.items()}
    if not real["loss"].any():
        given["loss"] = None
    return Faults(links=jnp.asarray(hit), **given)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Now:
    """The fabric in one step. [L + 1].

    Attributes:
        up: the share of its rate that each link has.
        dead: the share of the step in which it has none.
        given_up: the share of what waits at a port that its senders take for lost: 1 where it is dead and they know.
    """

    up: Array
    dead: Array
    given_up: Array


def look(s: Setup, step: Array) -> tuple[Setup, Now | None]:
    """The setup of this step, with the split as senders have it and the losses of links; and the fabric as it is."""
    if s.faults is None:
        return s, None
    f, time = s.faults, step.astype(s.faults.begin.dtype)
    if s.finds:
        return replace(s, loss=1.0 - passes(s, step)), slow_links(f, time)
    active, lives = f.active(time), f.lives(time - f.react)
    if s.misses:
        own = s.rate * f.lives(time)[s.problem.port_link]
        s = replace(s, rate=own, loss=1.0 - passes(s, step))
        return redirect(s, living(s.problem, lives)), slow_links(f, time)
    dead = 1.0 - f.lives(time)
    now = Now(f.left((1.0 - f.speed) * active), dead, (1.0 - lives) * dead)
    if f.loss is not None:
        kept = f.left(f.loss * active)
        s = replace(s, loss=1.0 - (kept if s.loss is None else kept * (1.0 - s.loss)))
    return redirect(s, living(s.problem, lives)), now


def known(s: Setup, step: Array) -> Array:
    """[F, K] the split of the routing over the paths that are alive as far as senders know, who see their own ports at
    once; where none is, over all."""
    if s.faults is None or s.finds:
        return s.share
    f, p, time = s.faults, s.problem, step.astype(s.faults.begin.dtype)
    share = s.share * living(p, f.lives(time - f.react)) * own_port(p, f.lives(time))
    whole = share.sum(-1, keepdims=True)
    return jnp.where(whole > 0, share / jnp.where(whole > 0, whole, 1.0), s.share)


def passes(s: Setup, step: Array) -> Array:
    """[L + 1] the share of what leaves each link that is not lost, where a dead one loses all."""
    kept = jnp.ones_like(s.capacity) if s.loss is None else 1.0 - s.loss
    if s.faults is None:
        return kept
    f, active = s.faults, s.faults.active(step.astype(s.faults.begin.dtype))
    return kept * f.left(jnp.where(f.speed <= 0, active, 0.0 if f.loss is None else f.loss * active))


def slow_links(f: Faults, time: Array) -> Now:
    """The fabric where dead links are such that lose all: links that are slow, and none that is dead."""
    up = f.left(jnp.where(f.speed > 0, (1.0 - f.speed) * f.active(time), 0.0))
    return Now(up, jnp.zeros_like(up), jnp.zeros_like(up))


def slowed(s: Setup, now: Now | None) -> Setup:
    """The links as slow as they are."""
    return s if now is None else replace(s, capacity=s.capacity * now.up)


def living(p: Problem, lives: Array) -> Array:
    """[L + 1] -> [F, K] whether all links of a path live, behind the sender's port."""
    fabric, egress = read(p.at, lives[:, None])
    return fabric[:, :, 0].prod(0) * jnp.repeat(egress[:, 0], p.route.shape[2] // p.planes, -1)


def own_port(p: Problem, lives: Array) -> Array:
    """[L + 1] -> [F, K] whether the sender's port of a path lives."""
    return jnp.repeat(lives[p.port_link], p.route.shape[2] // p.planes, -1)


def redirect(s: Setup, alive: Array) -> Setup:
    """The split over the paths that are alive [F, K]; a flow without any has no rate, and waits."""
    share = s.share * alive
    whole = share.sum(-1, keepdims=True)
    share = share / jnp.where(whole > 0, whole, 1.0)
    plane, within = by_port(s.problem, share)
    living = jnp.where(s.used, alive, 0.0).reshape(s.problem.flows, s.problem.planes, -1).max(-1)
    return replace(
        s,
        share=share,
        plane=plane,
        within=within,
        used=share > 0,
        rate=s.rate * living,
    )
