"""From what pydantic finds to sentences: place, key, what is wrong, what was given, what would do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fabsim.scenario.text.nearest import known_kinds, nearest
from fabsim.scenario.text.source import KeyPath, Source
from fabsim.units import shown

Classes = Mapping[int, type[BaseModel]]
"""The section class that read each mapping, by the mapping's identity."""
ABOUT_KEYS = ("missing", "extra_forbidden")
"""Errors about a key, where all others are about a value."""


_TYPES = {
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
"""What was wanted, by the error that pydantic finds."""


def sentences(error: ValidationError, source: Source, classes: Classes) -> list[str]:
    """All errors as lines."""
    found: dict[KeyPath, list[tuple[ErrorDetails, Any]]] = {}
    for details in error.errors(include_url=False):
        path, holder = locate(source.data, details["loc"], details["type"] in ABOUT_KEYS)
        found.setdefault(path, []).append((details, holder))
    return [
        source.sentence(path, text)
        for path, here in found.items()
        for text in dict.fromkeys(_of_one_key(here, path, source, classes))
    ]


def _of_one_key(here: list[tuple[ErrorDetails, Any]], path: KeyPath, source: Source, classes: Classes) -> Iterable[str]:
    """What is wrong with a key: one sentence, if its value is none of several types that would do."""
    types = list(dict.fromkeys(filter(None, (_wanted(details) for details, _ in here))))
    if len(types) > 1 and len(here) >= len(types):
        example = _example(path, source, classes)
        return [f"neither {' nor '.join(types)}, given {shown(here[0][0]['input'])}; write it like {example}"]
    return [_sentence(details, path, holder, source, classes) for details, holder in here]


def in_order(lines: Iterable[str]) -> list[str]:
    """Lines by their place: the file from top to bottom, then overrides."""

    def position(line: str) -> tuple[int, int, int]:
        place = re.match(r"[^\n]*?:(\d+):(\d+): ", line)
        return (0, int(place[1]), int(place[2])) if place else (1, 0, 0)

    return sorted(lines, key=position)


def locate(data: Any, loc: Iterable[str | int], missing: bool) -> tuple[KeyPath, Any]:
    """The path in the data that a pydantic location names, and the mapping or list that holds its last key.

    A location also names the kind of a section that has several, and alternatives of a type: those are no keys.
    missing: whether the last step may be a key that is not there.
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
            if isinstance(data, dict) and missing:
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
            return f"unknown key, given {shown(given)}; {nearest(key, classes.get(id(holder)))}"
        case "value_error":
            return str(context["error"])
        case "union_tag_not_found":
            return f"missing its kind, given {shown(given)}; {known_kinds(path)}"
        case "union_tag_invalid":
            return f"there is no kind {shown(context['tag'])}; {known_kinds(path, **context)}"
        case "literal_error":
            return f"not one of the choices, given {shown(given)}; use {context['expected']}"
        case "too_long":
            return f"takes at most {context['max_length']} values, given {shown(given)}; write it like {like}"
        case "too_short" if context["min_length"] > 1:
            return f"needs at least {context['min_length']} values, given {shown(given)}; write it like {like}"
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
    what = _TYPES.get(kind, "right")
    return f"not {what}, given {shown(given)}; write it like {like or 'key: value'}"


def _wanted(details: ErrorDetails) -> str:
    """The type that an error is about, in words; "" for other errors."""
    if details["type"] == "literal_error":
        return details.get("ctx", {})["expected"]
    return _TYPES.get(details["type"], "")


def _example(path: KeyPath, source: Source, classes: Classes) -> str:
    """The example of the field that a path leads to; of an entry of a list, or by a name of one's own, that of all."""
    for end in range(len(path), 0, -1):
        holder: Any = source.data
        for step in path[: end - 1]:
            holder = holder[step]
        section = classes.get(id(holder))
        field = section.model_fields.get(str(path[end - 1])) if section else None
        if field and field.examples:
            return str(field.examples[0])
    return ""
