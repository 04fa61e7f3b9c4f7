"""The text of a scenario as plain data, with the place of every key.

YAML 1.2: duplicate keys are refused, `on` is a word, `010` is ten. A place is what a person needs to find a key:
"file.yaml:3:5", "--set transport.window" where the command line put it there, or nothing where Python did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from fabsim.errors import InputError

KeyPath = tuple[str | int, ...]
Fault = tuple[KeyPath, str]
"""The path of a key, and what is wrong with it."""
SCENARIO = "a scenario"


class PlacedError(InputError):
    """A refusal that has its place and key already."""


@dataclass(frozen=True)
class Source:
    """A scenario before validation.

    Attributes:
        name: the file as the user wrote it, or "<dict>".
        folder: where relative paths inside the scenario start.
        data: the values, as dicts, lists and scalars.
        places: the place of each key and list entry; "" for what Python laid over.
        errors: what is wrong already (duplicate keys), to be told together with the rest.
        other_kind: sections whose `kind` an override changed: keys of the file that the new kind lacks are dropped.
    """

    name: str
    folder: Path
    data: dict[str, Any]
    places: Mapping[KeyPath, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    other_kind: frozenset[KeyPath] = frozenset()

    def place(self, path: KeyPath) -> str:
        """Where `path` is, or the section that it belongs to."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return self.name if self.name.startswith("<") else f"{self.name}:1:1"

    def sentence(self, path: KeyPath, text: str) -> str:
        """One line: place, key, and what is wrong with it."""
        return joined(self.place(path), dotted(path), text)


def joined(*parts: str) -> str:
    """The parts of a sentence: a place, a key, what is wrong; of those that are empty nothing is said."""
    return ": ".join(filter(None, parts))


def plain(value: Any) -> Any:
    """A copy of what Python gives, as a file would have it: the numbers and arrays of numpy and JAX as numbers and
    lists."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.tolist() if hasattr(value, "tolist") else value


def dotted(path: KeyPath) -> str:
    """A path as it is written in --set: "traffic.0.size"."""
    return ".".join(str(step) for step in path)


def read_file(file: str | Path, what: str = SCENARIO) -> Source:
    """Read a scenario, or another file of keys and values; `what` says what it would be.

    Raises:
        InputError: no such file, not readable, not YAML, empty, or not a mapping.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{file}: there is no such file{_beside(path)}") from None
    except IsADirectoryError:
        raise InputError(f"{file}: is a folder; name a file in it, such as {path / 'first.yaml'}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: is not UTF-8 text; {what} is a YAML file") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    return read_text(text, str(file), path.parent, what)


def from_dict(data: Mapping[str, Any]) -> Source:
    """A scenario that is a dict already; its relative paths start in the working directory."""
    return Source("<dict>", Path(), plain(data))


def read_text(text: str, name: str, folder: Path, what: str = SCENARIO) -> Source:
    """Read the text of a file; `name` stands in front of every error."""
    node = _compose(text, name)
    if node is None:
        raise InputError(f"{name}:1:1: the file is empty; {what} is a mapping of keys to values")
    if not isinstance(node, MappingNode):
        raise InputError(f"{_mark(name, node)}: {what} is a mapping of keys to values such as 'key: value'")
    reading = _Reading(name)
    data = reading.value(node, (), ())
    return Source(name, folder, data, reading.places, tuple(reading.errors))


def parse_value(text: str, place: str) -> Any:
    """The value of --set KEY=VALUE, read as YAML: a number, a word, a quantity, a list or a mapping."""
    node = _compose(text, place, positions=False)
    if node is None:
        raise InputError(f"{place}: the value is empty; write it like --set seed=1")
    reading = _Reading(place)
    value = reading.value(node, (), ())
    if reading.errors:
        raise InputError(reading.errors)
    return value


class _Reading:
    """One walk over the nodes of a document: plain data, places, and duplicate or odd keys."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: dict[KeyPath, str] = {}
        self.errors: list[str] = []
        self._constructor = YAML(typ="safe", pure=True).constructor

    def value(self, node: Node, path: KeyPath, above: tuple[int, ...]) -> Any:
        if id(node) in above:
            self.errors.append(f"{_mark(self.name, node)}: {dotted(path)}: an alias inside its own anchor has no end")
            return None
        if isinstance(node, MappingNode):
            return self._mapping(node, path, (*above, id(node)))
        if isinstance(node, SequenceNode):
            return self._sequence(node, path, (*above, id(node)))
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: KeyPath, above: tuple[int, ...]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = _mark(self.name, key_node)
            if not isinstance(key_node, ScalarNode):
                self.errors.append(f"{place}: {dotted(path)}: a key must be a word, not a list or a mapping")
                continue
            key = str(key_node.value)
            inner = (*path, key)
            if key in data:
                first = self.places[inner].removeprefix(f"{self.name}:")
                self.errors.append(f"{place}: {dotted(inner)}: duplicate key; first given at {first}; keep one")
                continue
            self.places[inner] = place
            data[key] = self.value(value_node, inner, above)
        return data

    def _sequence(self, node: SequenceNode, path: KeyPath, above: tuple[int, ...]) -> list[Any]:
        data = []
        for number, entry in enumerate(node.value):
            inner = (*path, number)
            self.places[inner] = _mark(self.name, entry)
            data.append(self.value(entry, inner, above))
        return data

    def _scalar(self, node: Node, path: KeyPath) -> Any:
        try:
            return self._constructor.construct_object(node)
        except (YAMLError, ValueError):
            text = f"the tag {str(node.tag)!r} is not supported; write a plain value"
            self.errors.append(f"{_mark(self.name, node)}: {dotted(path)}: {text}")
            return None


def _compose(text: str, name: str, *, positions: bool = True) -> Node | None:
    """The node tree of one document; a syntax error becomes one sentence with its place."""
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True  # found, and told with all other errors, by _Reading
    try:
        return yaml.compose(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark and positions else name
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        context = getattr(error, "context", None)
        raise InputError(f"{place}: not valid YAML: {problem}" + (f" ({context})" if context else "")) from None


def _mark(name: str, node: Node) -> str:
    mark = node.start_mark
    return f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name


def _beside(path: Path) -> str:
    """The scenario files beside a file that is missing."""
    try:
        others = sorted(other.name for other in path.parent.glob("*.yaml"))
    except OSError:
        others = []
    return f"; {path.parent} has {', '.join(others[:5])}" if others else ""
