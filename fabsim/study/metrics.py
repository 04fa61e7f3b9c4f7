"""From the completions of a batch to its figures, on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.study.catalogue import quantile
from fabsim.typing import Array, Bool, Float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Facts:
    """What is known of a run before it begins. F flows, G collectives.

    Attributes:
        zero_load: [F] s, each flow alone in the empty fabric.
        group: [G, F] whether a flow belongs to a collective; without one, all flows in one row.
        volume: [G] bytes whose quotient by the time is the bus bandwidth; NaN where there is no collective.
        payload: bytes of all flows.
        cost, watts: of the fabric; NaN where nobody asked.
    """

    zero_load: Array
    group: Array
    volume: Array
    payload: Array
    cost: Array
    watts: Array


def facts(
    *,
    zero_load: Float,
    groups: Sequence[tuple[Bool, float]] = (),
    payload: float = np.nan,
    cost: float = np.nan,
    watts: float = np.nan,
) -> Facts:
    """Facts as numpy arrays; `groups`: the flows of each collective, and its volume."""
    some = list(groups) or [(np.ones(len(zero_load), bool), np.nan)]
    group = np.stack([flows for flows, _ in some])
    numbers = [np.asarray(x, np.float32) for x in ([v for _, v in some], payload, cost, watts)]
    return Facts(np.asarray(zero_load, np.float32), group, *numbers)  # type: ignore[arg-type]


@partial(jax.jit, static_argnames=("names", "to_the_end"))
def reduce(
    completion: Array, start: Array, bits: Array, tally: Mapping[str, Array], told: Facts, names: tuple[str, ...],
    to_the_end: bool,
) -> tuple[dict[str, Array], Array]:  # fmt: skip
    """The figures of each member by name, and whether it failed. Leading axis: members.

    Args:
        completion, start: [B, F] s from time zero; inf for what did not happen.
        bits: [B] flags of the engine.
        tally: [B] each: sent, dropped, marked, again, queue_peak.
        to_the_end: whether a flow that is not complete is a failure; else it does not count.
    """

    def one(
        completion: Array, start: Array, bits: Array, tally: Mapping[str, Array], told: Facts
    ) -> tuple[dict[str, Array], Array]:
        done = jnp.isfinite(completion)
        failed = (bits != 0) | ~done.any() | (to_the_end & ~done.all())
        took = jnp.where(done, completion - jnp.where(done, start, 0.0), jnp.nan)
        found = _plain(completion, took, start, told) | dict(tally)
        ranked = {"completion": _ranked(took), "slowdown": _ranked(took / told.zero_load)}
        figures = {name: _quantile(ranked, name) if quantile(name) else found[name] for name in names}
        return {name: jnp.where(failed, jnp.nan, x) for name, x in figures.items()}, failed

    return jax.vmap(one)(completion, start, bits, tally, told)


def _plain(completion: Array, took: Array, start: Array, told: Facts) -> dict[str, Array]:
    """The figures that are neither quantiles nor totals."""
    slow = took / told.zero_load
    last = jnp.nanmax(jnp.where(jnp.isfinite(completion), completion, jnp.nan))
    end = jnp.where(told.group, completion, -jnp.inf).max(-1)
    begin = jnp.where(told.group, start, jnp.inf).min(-1)
    time = jnp.where(jnp.isfinite(end), end - begin, jnp.nan)
    return {
        "last_completion": last,
        "completion_min": jnp.nanmin(took),
        "completion_mean": jnp.nanmean(took),
        "completion_max": jnp.nanmax(took),
        "slowdown_mean": jnp.nanmean(slow),
        "slowdown_max": jnp.nanmax(slow),
        "collective_time": time.max(),
        "busbw": (told.volume / time).min(),
        "goodput": told.payload / last,
        "cost": told.cost,
        "watts": told.watts,
    }


def _ranked(values: Array) -> tuple[Array, Array]:
    """Sorted, NaN last, and how many are none."""
    return jnp.sort(values), jnp.isfinite(values).sum()


def _quantile(ranked: Mapping[str, tuple[Array, Array]], name: str) -> Array:
    """By linear interpolation between ranks, as numpy does."""
    of, fraction = quantile(name) or ("", 0.0)
    values, count = ranked[of]
    at = fraction * (count - 1)
    low = jnp.floor(at).astype(int)
    below, above = values[low], values[jnp.minimum(low + 1, count - 1)]
    return below + (above - below) * (at - low)


def stacked(told: Sequence[Facts]) -> Facts:
    """Facts of several members, with as many collectives each (those that are missing have no flow)."""
    if all(one is told[0] for one in told):  # they have one network
        return jax.tree.map(lambda x: np.broadcast_to(x, (len(told), *np.shape(x))), told[0])
    most = max(len(one.volume) for one in told)

    def widened(one: Facts) -> list[Any]:
        more = most - len(one.volume)
        group = np.pad(np.asarray(one.group), ((0, more), (0, 0)))
        group[len(one.volume) :] = group[0]  # repeats the first one: neither a maximum nor a minimum changes
        volume = np.append(one.volume, np.repeat(np.asarray(one.volume)[:1], more))
        return [one.zero_load, group, volume, one.payload, one.cost, one.watts]

    return Facts(*(np.stack(column) for column in zip(*map(widened, told), strict=True)))  # type: ignore[arg-type]
