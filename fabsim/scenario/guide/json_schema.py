"""JSON Schema of a scenario, for editors that complete and check YAML while it is written.

It knows names, kinds, types and simple bounds; what contradicts something else only fabsim finds.
"""

from __future__ import annotations

import json
from typing import Any

from ruamel.yaml import YAML

from fabsim.scenario.guide.reference import Key, all_keys, keys_of
from fabsim.scenario.keys.fields import Section
from fabsim.scenario.keys.schema import Sections

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema as plain data. `x-source`, `x-absent` and `x-smooth` say what `fabsim explain` does."""
    schema = Sections.model_json_schema()
    definitions = schema["$defs"]
    for section in {section for key in all_keys() for section in key.inside.values()}:
        _as_written(definitions[section.__name__], section)
    _as_written(schema, Sections)
    return {"$schema": DIALECT, **schema, "title": "fabsim scenario"}


def as_text() -> str:
    """The schema as JSON text."""
    return json.dumps(json_schema(), indent=2)


def _as_written(schema: dict[str, Any], section: type[Section]) -> None:
    """Defaults and examples as they stand in a file; pydantic has them as Python holds them. Changes `schema`."""
    for key in keys_of(section):
        found = schema["properties"][key.name]
        found.pop("default", None)
        found.pop("title", None)
        found.pop("examples", None)
        found.pop("x-begin", None)
        if key.default:
            found["default"] = _value(key.default)
        if _is_value(key):
            found["examples"] = [_value(key.example)]


def _is_value(key: Key) -> bool:
    """Whether the example can be read (some end in dots)."""
    return bool(key.example) and "..." not in key.example


def _value(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)
