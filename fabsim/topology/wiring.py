"""Cables by the block: both directions of each, and the fabric that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan

import numpy as np

from fabsim.errors import InputError
from fabsim.topology.graph import Fabric
from fabsim.typing import Float, Int

Block = tuple[Int, Int, Float, Float]
"""src, dst, capacity (bytes per second) and latency (s, the switching of the tail included) of some directed links."""

BORDER = 5
"""Tier of a switch at the border of a site, above all others."""

INSIDE = 4
"""Tier of a switch inside a server (NVLink); it is above nothing, and no part of the network of leaves and spines."""


def cable(low: Int, high: Int, rate: float, latency: float, switching: tuple[float, float]) -> list[Block]:
    """Cables from each node of `low` to that of `high`, as two blocks: all the ways up, then all the ways down.

    Args:
        rate: bytes per second, each way.
        latency: seconds of wire.
        switching: seconds that the node at the lower and at the upper end adds to what leaves it (a host: 0).
    """

    def block(src: Int, dst: Int, tail: float) -> Block:
        return src, dst, np.full(len(src), float(rate)), np.full(len(src), latency + tail)

    return [block(low, high, switching[0]), block(high, low, switching[1])]


def put_together(
    names: Sequence[str], hosts: int, tier: Int, pod: Int, blocks: Sequence[Block], buffer: float = nan
) -> Fabric:
    """The healthy fabric of some blocks of links. `buffer`: bytes of every switch port, NaN: derived later."""
    src, dst, capacity, latency = (np.concatenate(column) for column in zip(*blocks, strict=True))
    buffers = np.where(src < hosts, nan, float(buffer))
    return Fabric(tuple(names), hosts, tier, pod, src, dst, capacity, latency, buffers, np.ones(len(src)))


def grid(*sizes: int) -> tuple[Int, ...]:
    """Flat index arrays that count through a box, the last axis fastest."""
    return tuple(axis.reshape(-1) for axis in np.indices(sizes))


def check_numbers(
    counts: Mapping[str, int], rates: Mapping[str, float], times: Mapping[str, float], buffer: float = nan
) -> None:
    """Every count at least 1 (of `hosts` 2), every rate above 0, every latency and the buffer 0 or more. Raises
    InputError with all sentences at once."""
    wrong = [f"{name}: {value} given, at least 1 is needed" for name, value in counts.items() if value < 1]
    if not wrong and counts.get("hosts", 2) < 2:
        wrong.append("a fabric needs at least two hosts")
    wrong += [
        f"{name}: {value:g} bytes per second given, must be above 0"
        for name, value in rates.items()
        if not (isfinite(value) and value > 0)
    ]
    wrong += [
        f"{name}: {value:g} s given, must be 0 or more"
        for name, value in times.items()
        if not (isfinite(value) and value >= 0)
    ]
    if buffer < 0:
        wrong.append(f"buffer: {buffer:g} bytes given, must be 0 or more")
    if wrong:
        raise InputError(wrong)
