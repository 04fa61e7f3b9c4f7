"""Where the shards of a sweep are kept: a journal on the disk (fabsim.journal), or memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from fabsim.store import Sheet


class Keeper(Protocol):
    """What a place for shards can do."""

    def done(self) -> dict[int, Any]: ...

    def put(self, number: int, sheet: Sheet) -> None: ...

    def sheets(self) -> Iterator[tuple[int, Sheet]]: ...

    def begun_anew(self, plan: dict[str, Any]) -> Keeper: ...


class Memory:
    """Shards of a sweep that nobody wants on the disk."""

    def __init__(self) -> None:
        self._sheets: dict[int, Sheet] = {}

    def done(self) -> dict[int, Sheet]:
        """The finished shards by number."""
        return self._sheets

    def put(self, number: int, sheet: Sheet) -> None:
        """Add a shard."""
        self._sheets[number] = sheet

    def sheets(self) -> Iterator[tuple[int, Sheet]]:
        """The finished shards, in order."""
        yield from sorted(self._sheets.items())

    def begun_anew(self, plan: dict[str, Any]) -> Memory:
        """For another plan; there is nothing yet."""
        return self
