"""What may be tuned: numbers without bounds on one side, shares and levels that keep bounds and budgets on the other.

A parameter is a pytree: `begin` gives raw numbers, as the optimiser sees them, and `put` lays what they stand for into
a problem and its model. Whatever the raw numbers are, shares sum to 1, levels stay between their bounds, and a total
is met: by construction, so that a descent needs no penalties.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.models.model import Split
from fabsim.typing import Array, Float, Int

STATIC = {"static": True}
INSIDE = 1e-3
"""A level starts at least this part of its range inside of its bounds: at a bound itself its slope would be zero."""

Case = tuple[Any, Any]
"""A problem and its model."""


class Parameter(Protocol):
    """Anything that may be tuned."""

    @property
    def name(self) -> str:
        """Its dotted path."""
        ...

    def begin(self) -> Array:
        """Raw numbers of the start."""
        ...

    def put(self, case: Case, raw: Array) -> Case:
        """The problem and the model with what the raw numbers stand for."""
        ...

    def values(self, raw: Array) -> Array:
        """What the raw numbers stand for, one row or number for each group."""
        ...


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Shares:
    """The split of every flow over its lanes, by softmax: rows sum to 1. It starts as an equal split.

    Attributes:
        name: its dotted path.
        groups: number G of splits that are tuned.
        group: [F] which of them a flow has.
        used: [F, K] lanes that may carry something; equal for all flows of a group.
    """

    name: str = dataclasses.field(metadata=STATIC)
    groups: int = dataclasses.field(metadata=STATIC)
    group: Array
    used: Array

    def begin(self) -> Array:
        """[G, K] zeros."""
        return jnp.zeros((self.groups, self.used.shape[-1]), jnp.result_type(float))

    def put(self, case: Case, raw: Array) -> Case:
        """With another split."""
        problem, model = case
        logits = jnp.where(self.used, raw[self.group], -jnp.inf)
        weight = jax.nn.softmax(logits, axis=-1).astype(model.split.weight.dtype)
        return problem, replace(model, split=Split(weight))

    def values(self, raw: Array) -> Array:
        """[G, K] shares of each group, over the lanes that its flows may use."""
        used = jnp.zeros((self.groups, self.used.shape[-1]), bool).at[self.group].set(self.used)
        return jax.nn.softmax(jnp.where(used, raw, -1e30), axis=-1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Levels:
    """Numbers of a model or a problem in groups of one level each. SI units.

    With both bounds a level is low + (high - low) sigmoid(raw + shift), with the lower one alone low plus a softplus.
    Under a total the shift is the one number for all groups that meets it (a monotone equation): budgets are kept at
    every step, bounds too. Differentiable everywhere; the shift by the implicit function theorem.

    Attributes:
        name: its dotted path.
        path: where the numbers stand: ("model", "queue", "buffer") or ("problem", "start").
        follow: paths of what changes in proportion (thresholds with their buffer).
        budget: whether there is a total.
        ceiling: whether there are upper bounds.
        groups: number G of levels.
        group: of each number in that place its group, G for one that stays; a scalar for a scalar.
        factor: of each number: it is its level times this (a slow link's buffer is a part of a healthy one's).
        low, high, start: [G].
        price: [G] what a level counts in the total.
        total: scalar.
    """

    name: str = dataclasses.field(metadata=STATIC)
    path: tuple[str, ...] = dataclasses.field(metadata=STATIC)
    follow: tuple[tuple[str, ...], ...] = dataclasses.field(metadata=STATIC)
    budget: bool = dataclasses.field(metadata=STATIC)
    ceiling: bool = dataclasses.field(metadata=STATIC)
    groups: int = dataclasses.field(metadata=STATIC)
    group: Array
    factor: Array
    low: Array
    high: Array
    start: Array
    price: Array
    total: Array

    def begin(self) -> Array:
        """[G] numbers that stand for the start."""
        if not self.ceiling:
            return jnp.full_like(self.start, np.log(np.e - 1))  # softplus of it is 1
        part = (self.start - self.low) / (self.high - self.low)
        part = jnp.clip(part, INSIDE, 1 - INSIDE)
        return jnp.log(part / (1 - part))

    def values(self, raw: Array) -> Array:
        """[G] levels."""
        if not self.ceiling:
            return self.low + (self.start - self.low) * jax.nn.softplus(raw)
        shift = self.shift(raw) if self.budget else 0.0
        return self.low + (self.high - self.low) * jax.nn.sigmoid(raw + shift)

    def shift(self, raw: Array) -> Array:
        """The number that, added to all, meets the total: by bisection; a Newton step carries the derivative."""
        span = self.price * (self.high - self.low)
        wanted = self.total - (self.price * self.low).sum()

        def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            least, most = ends
            middle = 0.5 * (least + most)
            over = (span * jax.nn.sigmoid(fixed + middle)).sum() > wanted
            return jnp.where(over, least, middle), jnp.where(over, middle, most)

        fixed = jax.lax.stop_gradient(raw)
        ends = -60.0 - jnp.abs(fixed).max(), 60.0 + jnp.abs(fixed).max()
        least, most = jax.lax.fori_loop(0, 60, halve, ends)
        found = jax.lax.stop_gradient(0.5 * (least + most))
        part = jax.nn.sigmoid(raw + found)
        slope = jax.lax.stop_gradient((span * part * (1 - part)).sum())
        return found - ((span * part).sum() - wanted) / jnp.maximum(slope, 1e-30 * span.sum())

    def put(self, case: Case, raw: Array) -> Case:
        """With other levels."""
        tree = {"problem": case[0], "model": case[1]}
        old = at(tree, self.path)
        levels = jnp.append(self.values(raw), 0.0).astype(old.dtype)
        new = jnp.where(self.group < self.groups, self.factor.astype(old.dtype) * levels[self.group], old)
        tree = with_leaf(tree, self.path, new)
        grown = jnp.where(old > 0, new / jnp.where(old > 0, old, 1.0), 1.0)
        for path in self.follow:
            tree = with_leaf(tree, path, at(tree, path) * grown)
        return tree["problem"], tree["model"]


def levels(
    name: str,
    path: tuple[str, ...],
    group: Int,
    start: Float,
    *,
    low: float | Float = 0.0,
    high: float | Float | None = None,
    factor: Float | float = 1.0,
    price: Float | float = 1.0,
    total: float | None = None,
    follow: tuple[tuple[str, ...], ...] = (),
) -> Levels:
    """Levels from numpy. Under a total without upper bounds each group might have all of it.

    group: of each number, -1 for one that stays; start: [G]; price: [G] of one unit of a level, all its numbers
    counted; the rest as in `Levels`.
    """
    count = len(start)
    low, price = np.broadcast_to(low, start.shape), np.broadcast_to(np.asarray(price, float), start.shape)
    if high is None and total is not None:
        high = low + (total - (price * low).sum()) / price
    real = lambda x: jnp.asarray(np.broadcast_to(x, start.shape), jnp.result_type(float))  # noqa: E731
    return Levels(
        name=name,
        path=path,
        follow=follow,
        budget=total is not None,
        ceiling=high is not None,
        groups=count,
        group=jnp.asarray(np.where(np.asarray(group) < 0, count, group), jnp.int32),
        factor=jnp.asarray(np.broadcast_to(factor, np.shape(group)), jnp.result_type(float)),
        low=real(low),
        high=real(0.0 if high is None else high),
        start=real(start),
        price=real(price),
        total=jnp.asarray(0.0 if total is None else total, jnp.result_type(float)),
    )


def at(tree: Any, path: tuple[str, ...]) -> Any:
    """The leaf at a path of dict keys and dataclass fields."""
    for step in path:
        tree = tree[step] if isinstance(tree, dict) else getattr(tree, step)
    return tree


def with_leaf(tree: Any, path: tuple[str, ...], leaf: Any) -> Any:
    """The tree with another leaf at a path."""
    if not path:
        return leaf
    inner = with_leaf(at(tree, path[:1]), path[1:], leaf)
    return tree | {path[0]: inner} if isinstance(tree, dict) else replace(tree, **{path[0]: inner})


@jax.jit
def values_of(parameter: Parameter, raw: Array) -> Array:
    """What the parameter is with these raw numbers, as one program."""
    return parameter.values(raw)


@jax.jit
def put_all(parameters: tuple[Parameter, ...], case: Case, raw: tuple[Array, ...]) -> Case:
    """All parameters laid into one problem and its model, in their order."""
    for parameter, numbers in zip(parameters, raw, strict=True):
        case = parameter.put(case, numbers)
    return case
