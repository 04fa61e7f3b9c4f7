"""Overrides: dotted keys laid over a scenario, from --set, from Python, from cases and from sweeps."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fabsim.errors import InputError
from fabsim.scenario.keys.schema import default_section
from fabsim.scenario.text.source import KeyPath, Source, dotted, joined, plain
from fabsim.units import shown


def override(source: Source, values: Mapping[str, Any], places: Mapping[str, str] | None = None) -> Source:
    """Lay dotted keys over a scenario. Changes of `kind` come first: the rest belongs to the new kind.

    A path that leads through a value, or to a list entry that is not there, is told with all other errors later.

    Args:
        source: the scenario.
        values: dotted path to value; list entries by number ("traffic.0.size").
        places: where each key was written; for those of Python, which are not here, errors begin with the key.
    """
    data = dict(source.data)  # the path of each key is copied, all else is shared: a sweep does this thousands of times
    found = dict(source.places)
    other_kind = set(source.other_kind)
    errors = list(source.errors)
    for key in sorted(values, key=lambda key: key.rsplit(".", 1)[-1] != "kind"):
        place, value = (places or {}).get(key, ""), plain(values[key])
        try:
            path, before = _put(data, key, value)
        except InputError as error:
            errors.append(joined(place or key, str(error)))
            continue
        _forget_below(found, path)
        for end in range(1, len(path)):
            found.setdefault(path[:end], place)
        found.update({path + inner: place for inner in _inner_paths(value)})
        if path[-1] == "kind" and before != value:
            other_kind.add(path[:-1])
    return replace(source, data=data, places=found, errors=tuple(errors), other_kind=frozenset(other_kind))


def by_key(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Overrides that Python gives. Raises InputError for what is no mapping of dotted keys."""
    if isinstance(values, Mapping) and all(isinstance(key, str) for key in values):
        return values
    text = "values by dotted key, like {'transport.window': '1 BDP'}, would do"
    raise InputError(f"overrides: {shown(values)} given; {text}")


def _put(data: dict[str, Any], key: str, value: Any) -> tuple[KeyPath, Any]:
    """Set one dotted key, in copies of what it leads through; the path that it took and the value that was there."""
    steps = key.split(".")
    if not all(steps):
        raise InputError(f"not a key: {shown(key)}; write it like transport.window")
    path: list[str | int] = []
    holder: Any = data
    for step in steps[:-1]:
        inner = _enter(holder, step, path)
        # A section that the file leaves to its defaults is not there yet.
        inner = default_section(dotted(tuple(path))) if inner is None else copy.copy(inner)
        holder[path[-1]] = inner
        holder = inner
    before = _enter(holder, steps[-1], path)
    holder[path[-1]] = value
    return tuple(path), before


def _enter(data: Any, step: str, path: list[str | int]) -> Any:
    """One step down; appends the step to `path`."""
    where = dotted(tuple(path))
    if isinstance(data, list):
        if not step.isdigit() or int(step) >= len(data):
            raise InputError(f"{where!r} is a list of {len(data)}; give the number of an entry, from 0, not {step!r}")
        path.append(int(step))
        return data[int(step)]
    if not isinstance(data, dict):
        raise InputError(f"{where!r} holds {shown(data)}, not a section with keys; set {where}=... as a whole")
    path.append(step)
    return data.get(step)


def _forget_below(places: dict[KeyPath, str], path: KeyPath) -> None:
    for known in [known for known in places if known[: len(path)] == path]:
        del places[known]


def _inner_paths(value: Any) -> Iterable[KeyPath]:
    """The empty path and those of all keys and entries below."""
    yield ()
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for key, inner in items:
        yield from ((key, *path) for path in _inner_paths(inner))
