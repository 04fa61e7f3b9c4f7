"""Room for compiled programs.

On a CPU the code of a program lies in hundreds of memory maps, and Linux gives a process 65,530 of them
(vm.max_map_count): the compiler dies with "Cannot allocate memory" after some ninety programs, with gigabytes free.
"""

from __future__ import annotations

import gc
from itertools import count
from pathlib import Path

import jax

CALLS = 16
"""Runs between two looks: one takes 2 us a map. So many new programs fit into the half that is left."""

calls = count()


def make_room() -> None:
    """Before a run: let JAX forget its programs when half of the process's memory maps are taken. Those that are needed
    again come from its cache on the disk, if it has one."""
    if next(calls) % CALLS == 0 and maps() > most() / 2:
        forget()


def forget() -> None:
    """Give up all compiled programs."""
    jax.clear_caches()
    gc.collect()


def maps() -> int:
    """Memory maps of this process; 0 where the system does not say."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


def most() -> int:
    """How many it may have; Linux's own default where the system does not say."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return 65530
