"""What this machine has."""

from __future__ import annotations

import os
from pathlib import Path


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available() -> float:
    """Bytes of memory that this machine, or the group of processes that we are in, has left."""
    free = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            free = 1024.0 * float(line.split()[1])
    for limit in _lines("/sys/fs/cgroup/memory.max"):
        if limit.strip().isdigit():
            free = min(free, float(limit))
    return free


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
