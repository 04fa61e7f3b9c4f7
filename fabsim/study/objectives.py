"""What is made small: tails of completions, queues, losses, and the static load of a split; smooth, or as reported.

A maximum moves only the one flow that is last; its smooth form moves all that are nearly last. `sharpness` says how
nearly: log-sum-exp over the largest value / sharpness weighs a value down by e for each 1 / sharpness that it is below
the largest. Infinite sharpness is the true figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.engine.problem import Problem
from fabsim.engine.simulate import simulate
from fabsim.models.model import Model
from fabsim.typing import Array, Float

SHARPNESS = 100.0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Seen:
    """What objectives look at. SI units.

    Attributes:
        completion, start: [F] s; None where nothing was simulated.
        peak: [T, L] bytes, largest queue in each frame; or [L] in all.
        dropped: [T, L] bytes; or [L].
        entry: [F] number of the traffic entry of each flow.
        busy: [L] s of traffic at line rate.
        entries: their number.
    """

    entries: int = dataclasses.field(metadata={"static": True})
    completion: Any
    start: Any
    peak: Any
    dropped: Any
    entry: Array
    busy: Array


@dataclasses.dataclass(frozen=True)
class Term:
    """One figure that may be made small.

    Attributes:
        unit: of what is reported.
        meaning: in a few words.
        value: from what was seen and the sharpness to the figure.
        simulated: whether it needs a run.
    """

    unit: str
    meaning: str
    value: Callable[[Seen, Array], Array]
    simulated: bool = True


def smooth_max(x: Array, sharpness: Array) -> Array:
    """The largest of all, as a log-sum-exp less log n: of n equal values that value, else a little less than it."""
    width = jnp.maximum(x.max(), 1e-30) / jnp.where(jnp.isfinite(sharpness), sharpness, SHARPNESS)
    smooth = width * (jax.nn.logsumexp(x / width) - jnp.log(x.size))
    return jnp.where(jnp.isfinite(sharpness), smooth, x.max())


def smooth_quantile(x: Array, q: float, sharpness: Array) -> Array:
    """A mean of the sorted values around the quantile, 1 / sharpness of all wide (a kernel L-estimator: Parzen, J. Am.
    Stat. Assoc. 74, 1979); the true figure is linear between the two neighbours, as numpy has it."""
    rank = (jnp.arange(x.size) + 0.5) / x.size
    weight = jax.nn.softmax(-jnp.abs(rank - q) * jnp.where(jnp.isfinite(sharpness), sharpness, SHARPNESS))
    return jnp.where(jnp.isfinite(sharpness), (weight * jnp.sort(x)).sum(), jnp.quantile(x, q))


def collective(seen: Seen, sharpness: Array) -> Array:
    """From the first start to the last completion of each traffic entry, on average over the entries."""
    times = []
    for number in range(seen.entries):
        mine = seen.entry == number
        last = smooth_max(jnp.where(mine, seen.completion, 0.0), sharpness)
        times.append(last - jnp.where(mine, seen.start, jnp.inf).min())
    return jnp.stack(times).mean()


TERMS: Mapping[str, Term] = {
    "last_completion": Term("us", "when the last flow is complete", lambda s, k: smooth_max(s.completion, k)),
    "p99_completion": Term(
        "us", "99th percentile of the completions", lambda s, k: smooth_quantile(s.completion, 0.99, k)
    ),
    "mean_completion": Term("us", "mean of the completions", lambda s, _: s.completion.mean()),
    "collective_time": Term("us", "first start to last completion of each traffic entry, on average", collective),
    "peak_queue": Term("kB", "longest queue of any port", lambda s, k: smooth_max(s.peak, k)),
    "lost_bytes": Term("kB", "data trimmed, dropped or lost, on all links", lambda s, _: s.dropped.sum()),
    "utilisation": Term(
        "us", "line-rate time of the busiest link", lambda s, k: smooth_max(s.busy, k), simulated=False
    ),
}
FACTOR = {"us": 1e6, "kB": 1e-3}
"""From SI to what is shown."""


@dataclasses.dataclass(frozen=True)
class Objective:
    """A weighted sum of terms, each measured by a scale: its value at the start.

    Attributes:
        weights: by term.
        steps, every: of the simulation: steps, and steps of a frame.
        checkpoint: see simulate.
    """

    weights: tuple[tuple[str, float], ...]
    steps: int = 0
    every: int = 10
    checkpoint: bool = True

    @property
    def simulated(self) -> bool:
        """Whether it needs runs."""
        return any(TERMS[name].simulated for name, _ in self.weights)

    def see(self, problem: Problem, model: Model[Any], entry: Array, entries: int) -> Seen:
        """Run, as far as needed, and look."""
        completion = start = peak = dropped = None
        if self.simulated:
            trace = simulate(problem, model, steps=self.steps, every=self.every, checkpoint=self.checkpoint)
            completion, start = trace.completion, trace.start
            peak, dropped = trace.frames.peak, trace.frames.dropped
        busy = busy_seconds(problem, model)
        return Seen(entries, completion, start, peak, dropped, entry, busy)

    def figures(self, seen: Seen, sharpness: Array) -> Array:
        """[terms] in SI units."""
        return jnp.stack([TERMS[name].value(seen, sharpness) for name, _ in self.weights])

    def total(self, figures: Array, scales: Array) -> Array:
        """The weighted sum. [..., terms] -> [...]"""
        return (figures / scales * np.array([weight for _, weight in self.weights], figures.dtype)).sum(-1)

    def shown(self, figures: Float) -> str:
        """Figures [terms] in words."""
        parts = [
            f"{name} {figure * FACTOR[TERMS[name].unit]:.4g} {TERMS[name].unit}"
            for (name, _), figure in zip(self.weights, figures, strict=True)
        ]
        return ", ".join(parts)


@partial(jax.jit, static_argnames="names")
def true_figures(seen: Seen, names: tuple[str, ...]) -> Array:
    """[terms] in SI units, of no smoothness. One program: operation by operation each would be compiled for itself."""
    return jnp.stack([TERMS[name].value(seen, jnp.asarray(jnp.inf)) for name in names])


@jax.jit
def busy_seconds(problem: Problem, model: Model[Any]) -> Array:
    """[L] s that each link needs at line rate for all that crosses it: its utilisation, by bytes."""
    lanes = model.split.weight * problem.size[:, None]
    planes = lanes.reshape(problem.flows, problem.planes, -1).sum(-1)
    load = jnp.zeros(problem.queues + 1, lanes.dtype).at[problem.route].add(lanes).at[problem.port_link].add(planes)
    load = load[:-1].reshape(problem.classes, -1).sum(0)
    alive = model.links.capacity > 0
    return jnp.where(alive, load / jnp.where(alive, model.links.capacity, 1.0), 0.0)
