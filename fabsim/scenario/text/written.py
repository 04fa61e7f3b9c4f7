"""Plain data as YAML text, a value a line: quick, since a sweep may list thousands of values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PLAIN = re.compile(r"(?:[A-Za-z_]|[0-9][0-9.e+-]* (?=[A-Za-z]))[A-Za-z0-9_ ./<>*-]*(?<! )")
"""Words and quantities that need no quotes; all other text is written as JSON has it, which YAML 1.2 reads."""

_OTHER_THAN_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def yaml_text(data: dict[str, Any]) -> str:
    """Mappings, lists, text, numbers, booleans and None as YAML 1.2. It reads back as it was."""
    return "".join(f"{line}\n" for line in _lines(data, ""))


def _lines(data: Any, indent: str) -> Iterator[str]:
    """The lines of a mapping or a list that is not empty."""
    inner = indent + "  "
    if isinstance(data, dict):
        for key, value in data.items():
            if value and isinstance(value, dict | list | tuple):
                yield f"{indent}{_scalar(key)}:"
                yield from _lines(value, inner if isinstance(value, dict) else indent)
            else:
                yield f"{indent}{_scalar(key)}: {_scalar(value)}"
        return
    for value in data:
        if value and isinstance(value, dict | list | tuple):
            first, *rest = _lines(value, inner)
            yield f"{indent}- {first[len(inner) :]}"
            yield from rest
        else:
            yield f"{indent}- {_scalar(value)}"


def _scalar(value: Any) -> str:
    """One value, or an empty mapping or list."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _OTHER_THAN_TEXT:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
