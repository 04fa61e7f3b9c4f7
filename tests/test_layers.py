"""Layers by age: who came first leaves first."""

from __future__ import annotations

from collections import deque

import jax.numpy as jnp
import numpy as np

from fabsim.engine.layers import by_place, no_layers, turn
from fabsim.models.queue import Signal

STEPS, ROOM, COUNT = 400, 1.0, 4


def arrivals(seed: int) -> np.ndarray:
    """[T, 2] units that two flows bring to a port, each in bursts: what is ahead of whom changes all the time."""
    chance = np.random.default_rng(seed)
    bursts = chance.random((STEPS // 20, 2)) < 0.5
    return np.repeat(bursts, 20, 0) * chance.uniform(0.6, 1.2, (STEPS, 2))


def first_in_first_out(came: np.ndarray) -> np.ndarray:
    """[T, 2] what leaves in each step, exactly in the order of the steps."""
    waits: deque[np.ndarray] = deque()
    left = np.zeros_like(came)
    for step, units in enumerate(came):
        waits.append(units)
        room = ROOM
        while waits and room > 0:
            share = min(1.0, room / max(waits[0].sum(), 1e-30))
            left[step] += share * waits[0]
            room -= share * waits[0].sum()
            if share == 1.0:
                waits.popleft()
            else:
                waits[0] = waits[0] * (1.0 - share)
    return left


def in_layers(came: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """[T, 2] what leaves, and [T] what stands, by layers of a single port; of one layer, well mixed."""
    zero = jnp.zeros(1)
    layers, queue, waits = no_layers(zero, count), zero, np.zeros((2, count, 1))
    left, stood = np.zeros_like(came), np.zeros(len(came))
    for step, units in enumerate(came):
        stands = queue + units.sum()
        sent = jnp.minimum(stands, ROOM)
        queue = stands - sent
        leave = jnp.where(queue > 0, sent / stands, 1.0)
        layers = turn(layers, queue, Signal(zero, leave, zero, zero, sent, zero, zero, zero), None)
        share, into = (leave, 1.0) if layers is None else by_place(layers.gone[:, None], layers.place[:, None], count)
        waits = waits + units[:, None, None] * np.asarray(into)
        goes = waits * np.asarray(share)
        waits, left[step], stood[step] = waits - goes, goes.sum((1, 2)), float(queue[0])
        if layers is not None:
            assert np.allclose(layers.held.sum(), queue, atol=1e-3)
            assert np.allclose(np.roll(waits.sum((0, 2)), -1 - int(layers.place[0])), layers.held[0], atol=1e-3)
    return left, stood


def test_who_comes_first_leaves_first() -> None:
    """Of each flow as much has left at any time as first in, first out, but for a quarter of a layer; a well-mixed
    port is three times as far from it, or more."""
    for seed in range(3):
        came = arrivals(seed)
        exact = first_in_first_out(came).cumsum(0)
        (layered, stood), (mixed, _) = in_layers(came, COUNT), in_layers(came, 1)
        off, off_mixed = (np.abs(x.cumsum(0) - exact).max() for x in (layered, mixed))
        assert np.allclose(layered.sum(1), mixed.sum(1), atol=1e-4)
        assert off < stood.max() / (COUNT - 1) / 4
        assert off_mixed > 3 * off
