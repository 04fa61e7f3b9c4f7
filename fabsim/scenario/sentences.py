"""From what pydantic finds to sentences: place, key, what is wrong, what was given, what would do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fabsim.scenario.schema import kinds
from fabsim.scenario.source import KeyPath, Source
from fabsim.units import shown

Classes = Mapping[int, type[BaseModel]]
"""The section class that read each mapping, by the mapping's identity."""


_SYNONYMS = {
    **dict.fromkeys(("bandwidth", "bitrate", "linkspeed"), "rate"),
    **dict.fromkeys(("delay", "propagation"), "latency"),
    **dict.fromkeys(("horizon", "end"), "until"),
    **dict.fromkeys(("workload", "flows"), "traffic"),
    **dict.fromkeys(("topology", "network"), "fabric"),
    **dict.fromkeys(("congestion_control", "cc"), "transport"),
    **dict.fromkeys(("target", "destination", "sink"), "dst"),
    "bytes": "size",
    "timestep": "dt",
    "load_balancing": "routing",
    "cwnd": "window",
    "limit": "buffer",
    "type": "kind",
    "dest": "dst",
    "source": "src",
    "nodes": "hosts",
    "paths": "entropies",
}
"""What others call our keys."""


def sentences(error: ValidationError, source: Source, classes: Classes) -> list[str]:
    """All errors as lines."""
    lines = []
    for details in error.errors(include_url=False):
        path, holder = locate(source.data, details["loc"])
        lines.append(source.sentence(path, _sentence(details, path, holder, source, classes)))
    return list(dict.fromkeys(lines))


def in_order(lines: Iterable[str]) -> list[str]:
    """Lines by their place: the file from top to bottom, then overrides."""

    def position(line: str) -> tuple[int, int, int]:
        place = re.match(r"[^\n]*?:(\d+):(\d+): ", line)
        return (0, int(place[1]), int(place[2])) if place else (1, 0, 0)

    return sorted(lines, key=position)


def locate(data: Any, loc: Iterable[str | int]) -> tuple[KeyPath, Any]:
    """The path in the data that a pydantic location names, and the mapping or list that holds its last key.

    A location also names the kind of a section that has several, and alternatives of a type: those are no keys.
    """
    path: list[str | int] = []
    holder: Any = None
    entered = False
    for step in loc:
        if isinstance(data, dict) and not entered and data.get("kind") == step:
            entered = True
            continue
        inner = _inner(data, step)
        if inner is _NOTHING:
            if isinstance(data, dict):
                return (*path, step), data
            continue
        path.append(step)
        holder, data, entered = data, inner, False
    return tuple(path), holder


_NOTHING = object()


def _inner(data: Any, step: str | int) -> Any:
    if isinstance(data, dict):
        return data.get(step, _NOTHING)
    if isinstance(data, list | tuple) and isinstance(step, int) and step < len(data):
        return data[step]
    return _NOTHING


def _sentence(details: ErrorDetails, path: KeyPath, holder: Any, source: Source, classes: Classes) -> str:
    kind, given, context = details["type"], details["input"], details.get("ctx", {})
    key = str(path[-1]) if path else ""
    like = _example(path, source, classes)
    match kind:
        case "missing":
            return f"missing; add it like '{key}: {like or '...'}'"
        case "extra_forbidden":
            return f"unknown key, given {shown(given)}; {_nearest(key, classes.get(id(holder)))}"
        case "value_error":
            return str(context["error"])
        case "union_tag_not_found":
            return f"missing its kind, given {shown(given)}; {_kinds(path)}"
        case "union_tag_invalid":
            return f"there is no kind {shown(context['tag'])}; {_kinds(path, **context)}"
        case "literal_error":
            return f"not one of the choices, given {shown(given)}; use {context['expected']}"
        case "too_short" | "string_too_short":
            return f"must not be empty, given {shown(given)}; write it like {like or 'a list of values'}"
        case "finite_number":
            return f"not a finite number, given {shown(given)}; write it like {like or '0.5'}"
    return _by_type(kind, given, context, like)


def _by_type(kind: str, given: Any, context: Mapping[str, Any], like: str) -> str:
    """Sentences for a value of the wrong type or out of range."""
    bounds = {"greater_than_equal": ("at least", "ge"), "greater_than": ("more than", "gt")}
    bounds |= {"less_than_equal": ("at most", "le"), "less_than": ("less than", "lt")}
    if kind in bounds:
        word, name = bounds[kind]
        return f"must be {word} {context[name]:g}, given {shown(given)}; write it like {like}"
    wanted = {
        "int_type": "a whole number",
        "int_from_float": "a whole number",
        "float_type": "a number",
        "bool_type": "true or false",
        "string_type": "text",
        "tuple_type": "a list",
        "list_type": "a list",
        "dict_type": "a section with keys",
        "model_type": "a section with keys",
        "model_attributes_type": "a section with keys",
    }
    what = wanted.get(kind, "right")
    return f"not {what}, given {shown(given)}; write it like {like or 'key: value'}"


def _example(path: KeyPath, source: Source, classes: Classes) -> str:
    """The example of the field that a path leads to; for a list entry, that of the list."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    holder: Any = source.data
    for step in path[:-1]:
        holder = holder[step]
    section = classes.get(id(holder))
    field = section.model_fields.get(str(path[-1])) if section and path else None
    return str(field.examples[0]) if field and field.examples else ""


def _nearest(key: str, section: type[BaseModel] | None) -> str:
    """The right key that is nearest to a wrong one, or all of them."""
    names = list(section.model_fields) if section else []
    aliases = {alias: name for alias, name in _SYNONYMS.items() if name in names}
    near = get_close_matches(key, [*names, *aliases], 1, 0.6)
    return f"did you mean {aliases.get(near[0], near[0])!r}?" if near else f"the keys here are {', '.join(names)}"


def _kinds(path: KeyPath, tag: object = None, expected_tags: str = "", **_: object) -> str:
    """The kinds that may stand there, the nearest first where one is near."""
    names = tuple(re.findall(r"'(.+?)'", expected_tags)) or kinds(str(path[0]))
    near = get_close_matches(str(tag), names, 1, 0.6) if tag is not None else []
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}use kind: {', '.join(names[:-1])} or {names[-1]}"
