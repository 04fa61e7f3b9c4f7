"""How far the sweep in a folder has come."""

from __future__ import annotations

from pathlib import Path

from fabsim import journal


def progress(path: str | Path) -> str | None:
    """A sentence about a sweep that is not done; None for one that is, or for a file."""
    found = journal.existing(path) if Path(path).is_dir() else None
    if found is None or found.whole.is_file():
        return None
    sizes = [len(points) for _, points in found.plan["shards"]]
    done = sum(sizes[number] for number in found.done())
    return (
        f"not done yet: {done:,} of {sum(sizes):,} points ({100 * done // max(sum(sizes), 1)} %), "
        f"{len(found.done()):,} of {len(sizes):,} shards; fabsim sweep FILE --out {path} goes on"
    )
