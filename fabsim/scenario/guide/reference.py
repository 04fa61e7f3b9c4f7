"""Every key that a scenario may have, with all that its declaration says: read from the schema, never listed twice."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types as at
from pydantic.fields import FieldInfo

from fabsim.errors import InputError
from fabsim.scenario.keys.fields import Section, Smooth, Written
from fabsim.scenario.keys.schema import Sections

Path = tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """One key, or one section. Texts are empty where there is nothing to say.

    Attributes:
        path: the names on the way to it, and the kinds: ("fabric", "leaf_spine", "leaves").
        written: as --set takes it: "fabric.leaves", and of the first entry of a list: "traffic.0.size".
        name: as it is written in a scenario: the last name.
        meaning: in a sentence.
        kind, unit, bounds: how it is written.
        default: as YAML text; "" where it must be given, or where `absent` says what holds.
        absent: what holds where it is not given.
        required: it has no default.
        example: as YAML text.
        source: where the default comes from.
        smooth: whether results are smooth in it; None for sections.
        begin: a new scenario has it, although it need not.
        inside: the sections that its value is made of, by kind ("" where there is but one).
    """

    path: Path
    written: str
    name: str
    meaning: str
    kind: str
    unit: str
    bounds: str
    default: str
    absent: str
    required: bool
    example: str
    source: str
    smooth: Smooth | None
    begin: bool
    inside: dict[str, type[Section]]

    @property
    def dotted(self) -> str:
        """As `fabsim explain` takes it."""
        return ".".join(self.path)


@cache
def all_keys() -> tuple[Key, ...]:
    """All keys and sections, in the order in which they are declared; a section comes before its keys."""
    return tuple(_below(Sections, (), ""))


def keys_of(section: type[Section], path: Path = (), written: str = "") -> list[Key]:
    """The keys of one section, without those deeper down. `path` and `written` are those of the section."""
    hints = get_type_hints(section, include_extras=True)
    fields = section.model_fields.items()
    return [_key(section, name, field, hints[name], path, written) for name, field in fields if name != "kind"]


def find(wanted: str) -> list[Key]:
    """The keys that a person may mean: by full path, or with kinds, numbers or sections left out.

    Raises:
        InputError: there is none; the nearest are named.
    """
    steps = [step for step in wanted.split(".") if not step.isdigit()]
    found = [key for key in all_keys() if _fits(key, steps)]
    best = [key for key in found if key.path[: len(steps)] == tuple(steps)] or found
    if best:
        return best
    known = {key.dotted for key in all_keys()} | {key.name for key in all_keys()} | set(all_kinds())
    known |= {".".join((key.path[0], key.name)) for key in all_keys()}
    near = [name for name in all_kinds() if name.count(".") == 1 and name.endswith(f".{wanted}")]  # of several sections
    near = (
        near or get_close_matches(wanted, known, 3, 0.6) or get_close_matches(steps[-1] if steps else "", known, 3, 0.6)
    )
    hint = f"did you mean {' or '.join(near)}?" if near else "fabsim explain lists them all"
    raise InputError(f"{wanted}: there is no such key; {hint}")


def all_kinds() -> dict[str, tuple[Path, type[Section]]]:
    """The kinds of all sections that have several, as "section.kind" and as the bare word where it is the only one."""
    found: dict[str, tuple[Path, type[Section]]] = {}
    bare: dict[str, set[type[Section]]] = {}
    for key in all_keys():
        for kind, section in key.inside.items():
            if kind:
                found[f"{key.dotted}.{kind}"] = ((*key.path, kind), section)
                bare.setdefault(kind, set()).add(section)
    outer = reversed(found.values())  # a section that stands in several places is known by the first
    return found | {path[-1]: (path, section) for path, section in outer if len(bare[path[-1]]) == 1}


def first_sentence(section: type[Section]) -> str:
    """What a section is, from its docstring, without the full stop."""
    return " ".join((inspect.getdoc(section) or "").split("\n\n")[0].split()).rstrip(".")


def _below(section: type[Section], path: Path, written: str) -> Iterator[Key]:
    for key in keys_of(section, path, written):
        yield key
        entry = f"{key.written}.0" if key.kind.startswith("a list") else key.written
        for kind, inner in key.inside.items():
            yield from _below(inner, (*key.path, kind) if kind else key.path, entry)


def _fits(key: Key, steps: list[str]) -> bool:
    """Whether the last step is the key's name, and the others are on its way, in order."""
    way = iter(key.path[:-1])
    return bool(steps) and key.name == steps[-1] and all(step in way for step in steps[:-1])


def _key(section: type[Section], name: str, field: FieldInfo, hint: Any, path: Path, written: str) -> Key:
    told: dict[str, Any] = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    kind, unit, bounds = _written(hint)
    inside = dict(_sections(hint))
    only = next(iter(inside.values())) if len(inside) == 1 else None
    return Key(
        path=(*path, name),
        written=f"{written}.{name}" if written else name,
        name=name,
        meaning=field.description or (first_sentence(only) if only else ""),
        kind=_of_sections(hint, inside) if inside else kind,
        unit=unit,
        bounds=bounds,
        default=_default(section, name, field),
        absent=told.get("x-absent", ""),
        required=field.is_required(),
        example=str(field.examples[0]) if field.examples else "",
        source=told.get("x-source", ""),
        smooth=None if inside else told.get("x-smooth") or _smoothness(kind),
        begin=bool(told.get("x-begin")),
        inside=inside,
    )


def _default(section: type[Section], name: str, field: FieldInfo) -> str:
    """The default as it is written in a file; "" for None, for sections, and where there is none."""
    value = field.get_default(call_default_factory=True) if not field.is_required() else None
    if isinstance(value, Section):
        return f"{{kind: {kind}}}" if (kind := getattr(value, "kind", "")) else ""
    if value is None:
        return ""
    shown = section.model_construct(**{name: value}).model_dump(include={name}, warnings=False)[name]
    text = f"{shown:g}" if isinstance(shown, float) else str(shown)
    return {"()": "[]", "True": "true", "False": "false"}.get(text, text)


def _sections(hint: Any) -> Iterator[tuple[str, type[Section]]]:
    """The sections in a type, by their kind."""
    if inspect.isclass(hint) and issubclass(hint, Section):
        kind = hint.model_fields.get("kind")
        yield (get_args(kind.annotation)[0] if kind else "", hint)
    else:
        for part in get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint):
            yield from _sections(part)


def _of_sections(hint: Any, inside: dict[str, type[Section]]) -> str:
    what = "a section with keys" if "" in inside else f"a section; kinds: {', '.join(inside)}"
    return f"a list, each {what}" if "tuple[" in str(hint) else what


def _written(hint: Any) -> tuple[str, str, str]:
    """Type, unit and bounds in words."""
    notes: list[Any] = []
    while get_origin(hint) is Annotated or get_origin(hint) in (Union, UnionType):
        if get_origin(hint) is Annotated:
            notes += [inner for note in hint.__metadata__ for inner in getattr(note, "metadata", [note])]
            hint = get_args(hint)[0]
        else:
            parts = [part for part in get_args(hint) if part is not NoneType]
            if len(parts) > 1:
                break
            hint = parts[0]
    for note in notes:
        if isinstance(note, Written):
            return note.kind, note.unit, note.bounds
    return _plain(hint), "", ", ".join(filter(None, map(_bound, notes)))


def _plain(hint: Any) -> str:
    """A type without a unit in words."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) is tuple:
        return f"a list, each {_written(get_args(hint)[0])[0]}"
    if get_origin(hint) is dict:
        return f"names, each with {_written(get_args(hint)[1])[0]}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return words.get(hint, "any value")


def _bound(note: Any) -> str:
    match note:
        case at.Ge(ge=value):
            return f"at least {value:g}"
        case at.Gt(gt=value):
            return f"more than {value:g}"
        case at.Le(le=value):
            return f"at most {value:g}"
        case at.Lt(lt=value) if value < 2**62:
            return f"less than {value:g}"
        case at.MinLen(min_length=value) if value:
            return "not empty"
    return ""


def _smoothness(kind: str) -> Smooth | None:
    """What follows from the type alone."""
    if kind == "a whole number":
        return "jumps"
    discrete = ("one of", "text", "true or false", "names", "a list", "flows", "any value")
    return "choice" if kind.startswith(discrete) else None
