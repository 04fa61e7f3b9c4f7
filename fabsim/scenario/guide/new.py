"""The text of `fabsim new`: a scenario that runs as it is, with every key, its meaning and its default."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches

from fabsim.errors import InputError
from fabsim.scenario.guide.reference import Key, all_keys, first_sentence, keys_of
from fabsim.scenario.keys.fields import Section

FABRIC = "leaf_spine"
"""The kind of fabric that a new scenario begins with; the schema has no default."""

ABOUT_MANY = ("cases", "packets", "sweep", "tune")
"""Sections that speak of several runs; they stand at the end, as examples."""


def commented(name: str, fabric: str | None = None) -> str:
    """The text of a new scenario. Active lines must be given; the others show the defaults, or an example.

    Raises:
        InputError: there is no such kind of fabric, or it is one that is read from a file.
    """
    kind, section = _fabric(fabric or FABRIC)
    chosen = {"fabric": kind, "traffic": section.begins_with}
    head = [
        "# A scenario of fabsim. It runs as it is. Lines that begin with # show defaults, or examples.",
        "# More of one key: fabsim explain KEY.  All that is wrong: fabsim check FILE.  To run it: fabsim run FILE.",
        f"name: {_quoted(name)}",
    ]
    keys = [key for key in all_keys() if len(key.path) == 1 and key.name != "name"]
    last = [key for key in keys if key.name in ABOUT_MANY]
    keys = [key for key in keys if key.name not in ABOUT_MANY]
    sections = [key for key in keys if key.inside and key.default != "[]"]
    plain = [key for key in keys if key not in sections]
    lines = head + [line for key in plain for line in _line(key, "")]
    for key in sections:
        lines += ["", *_top(key, chosen)]
    lines += ["", "# Several runs:"]
    for key in last:
        lines += _line(key, "")
    return "\n".join(lines) + "\n"


def _fabric(kind: str) -> tuple[str, type[Section]]:
    """A kind of fabric that can be made up. Raises InputError."""
    fabric = next(key for key in all_keys() if key.path == ("fabric",))
    if kind not in fabric.inside:
        near = get_close_matches(kind, fabric.inside, 1, 0.6)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"--fabric {kind}: there is no such kind; {hint}use {', '.join(fabric.inside)}")
    if any(key.name == "file" and key.required for key in keys_of(fabric.inside[kind])):
        text = f"write it yourself, like fabric: {{kind: {kind}, file: ...}}"
        raise InputError(f"--fabric {kind}: such a fabric is read from a file of yours; {text}")
    return kind, fabric.inside[kind]


def _top(key: Key, chosen: dict[str, str]) -> list[str]:
    """A top-level section with the keys of the kind that is chosen."""
    lines = [f"# {key.meaning[0].upper()}{key.meaning[1:]}."]
    default = re.sub(r"\{kind: (.*)\}", r"\1", key.default)
    kind = chosen.get(key.name, default)
    section = key.inside[kind]
    others = [other for other in key.inside if other and other != kind]
    if others:
        lines.append(f"# Other kinds: {', '.join(others)}; fabsim explain {key.name} shows them.")
    lines.append(f"{key.name}:" if kind or any(inner.required for inner in keys_of(section)) else f"# {key.name}:")
    indent = "  "
    if key.kind.startswith("a list"):
        lines.append(f"  - kind: {kind}{_comment(first_sentence(section))}")
        indent = "    "
    elif kind:
        lines.append(f"  kind: {kind}{_comment(first_sentence(section))}")
    for inner in keys_of(section):
        lines += _line(inner, indent)
    return lines


def _line(key: Key, indent: str) -> list[str]:
    """A key as one line; the keys of a section inside are one line with its example."""
    says = key.meaning
    if key.required or key.begin:
        return [f"{indent}{key.name}: {key.example}{_comment(says)}"]
    if key.default and not key.inside and key.default not in ("{}", "[]"):
        more = f"; {key.default}: {key.absent}" if key.absent else ""
        return [f"{indent}# {key.name}: {key.default}{_comment(says + more)}"]
    without = key.absent or "without it: none" if not key.inside else "an example"
    return [f"{indent}# {key.name}: {key.example}{_comment(f'{says}; not given: {without}' if key.absent else says)}"]


def _comment(text: str) -> str:
    return f"  # {' '.join(text.split())}" if text else ""


def _quoted(name: str) -> str:
    """A name as YAML text: bare where it can be nothing but a text, else in quotes."""
    plain = re.fullmatch(r"[A-Za-z]([\w .-]*\w)?", name) and name.lower() not in ("true", "false", "null")
    return name if plain else json.dumps(name, ensure_ascii=False)
