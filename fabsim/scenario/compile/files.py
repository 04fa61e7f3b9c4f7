"""Files that a scenario names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabsim.scenario.text.source import KeyPath, PlacedError

if TYPE_CHECKING:
    from fabsim.scenario.text.document import Document

FILES = ("file", "weights", "prices")
"""Keys whose value may be the name of a file that results depend on."""


def existing(scenario: Document, where: KeyPath, name: str) -> Path:
    """A file that the scenario names under the key `where`. Raises InputError where it is not there."""
    path = scenario.file(name)
    if not path.is_file():
        text = f"there is no file {str(path)!r}; paths start at the folder of the scenario"
        if path.is_dir():
            text = f"{str(path)!r} is a folder; name a file in it"
        raise PlacedError(scenario.source.sentence(where, text))
    return path


def checksums(scenario: Document) -> dict[str, str]:
    """SHA-256 of each file that results depend on, by the name that the scenario has for it, its cases and the values
    of its sweep included. Two scenarios are the same if these and their text are."""
    files = {name: scenario.file(name) for name in sorted(set(_names(scenario.source.data)))}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path.is_file()}


def _names(data: Any, key: str = "") -> Iterator[str]:
    """All text below the keys that name files: in sections, under dotted keys, in lists, and by label."""
    if isinstance(data, Mapping):
        for inner, value in data.items():
            yield from _names(value, key if key in FILES else str(inner).rpartition(".")[2])
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _names(value, key)
    elif isinstance(data, str) and key in FILES:
        yield data
