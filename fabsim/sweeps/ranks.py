"""Which part of a sweep this process does: by arguments, or by what SLURM or JAX says of it.

A rank only decides which shards a process computes. Processes do not talk to each other, so that one that dies stops
nobody; whoever comes later does what is left.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from fabsim.errors import InputError

_SOURCES = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"),
    ("SLURM_PROCID", "SLURM_NTASKS", ""),
    ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES", ""),
)
"""Variables for the number of a process, how many there are, and the number of the first (0, if not said)."""


@dataclass(frozen=True)
class Rank:
    """One of `count` processes, from 0. Raises InputError for a number that is none of the count."""

    number: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        whole = isinstance(self.number, int) and isinstance(self.count, int)
        if not (whole and 0 <= self.number < self.count):
            text = "there is no such process" + (
                f"; 0 to {self.count - 1} would do" if whole and self.count > 0 else ""
            )
            raise InputError(f"rank {self.number} of {self.count}: {text}")

    def does(self, shard: int) -> bool:
        """Whether a shard is this process's."""
        return shard % self.count == self.number


def rank(number: int | None = None, count: int | None = None, env: Mapping[str, str] | None = None) -> Rank:
    """From arguments; without any, from the environment: a SLURM array, its tasks inside, or JAX's own variables; and
    from `jax.distributed`, where that has been initialised.

    Raises:
        InputError: one argument without the other, or a number that is none of the count.
    """
    if (number is None) != (count is None):
        raise InputError("--rank and --ranks go together; give both, or neither")
    if number is not None and count is not None:
        return _told(number, count, "--rank", "--ranks")
    found = Rank()
    told = os.environ if env is None else env
    for of, out_of, first in _SOURCES[:2]:
        if of in told and out_of in told:
            begin = _whole(told, first) if first in told else 0
            inner = _told(_whole(told, of) - begin, _whole(told, out_of), of, out_of)
            found = Rank(found.number * inner.count + inner.number, found.count * inner.count)
    of, out_of, _ = _SOURCES[2]
    if found.count == 1 and of in told and out_of in told:
        found = _told(_whole(told, of), _whole(told, out_of), of, out_of)
    return found if found.count > 1 else _of_jax()


def _of_jax() -> Rank:
    """The process of a program that has called jax.distributed.initialize."""
    jax = sys.modules.get("jax")
    if jax is None or not jax.distributed.is_initialized():
        return Rank()
    return Rank(jax.process_index(), jax.process_count())


def _told(number: int, count: int, name: str, of: str) -> Rank:
    """The process of two numbers that have names."""
    try:
        return Rank(number, count)
    except InputError as refusal:
        raise InputError(f"{name} and {of}: {refusal}") from None


def _whole(told: Mapping[str, str], name: str) -> int:
    try:
        return int(told[name])
    except ValueError:
        raise InputError(f"{name}={told[name]!r}: not a whole number; unset it, or give --rank and --ranks") from None
