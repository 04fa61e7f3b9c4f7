"""The text of `fabsim explain`: the tree of all keys, or all that is known of one."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable
from importlib import import_module

from fabsim.errors import InputError
from fabsim.scenario.guide.figures import figures
from fabsim.scenario.guide.reference import Key, Path, all_keys, all_kinds, find, first_sentence, keys_of
from fabsim.scenario.keys.fields import Section

WIDTH = 120
RESULTS = {
    "smooth": "smooth in it",
    "smooth almost everywhere": "smooth almost everywhere: kinks where a port is just full, or another flow is last",
    "jumps": "jump: a small change may change much, and there is no gradient",
    "choice": "a choice: there is nothing between two values",
}


def explain(wanted: str | None = None) -> str:
    """The tree of all keys; with a key, a section or a kind, what it is. Raises InputError, with the nearest keys."""
    if not wanted:
        return tree()
    name = ".".join(step for step in wanted.split(".") if not step.isdigit())
    parts = [_kind(*all_kinds()[name])] if name in all_kinds() else []
    told = [text for text in [figures("metrics" if wanted == "sweep.metrics" else wanted)] if text]
    try:
        found = find(wanted)
    except InputError:
        if parts or told:
            return "\n\n".join(parts + told)
        raise
    parts += [_section(keys) if keys[0].inside else _entry(keys) for keys in _alike(found)]
    others = [key.dotted for key in all_keys() if key.name == name and key not in found]
    see = [_wrapped("see also: ", ", ".join(others))] if others else []
    return "\n\n".join([*parts, *see, *told])


def tree() -> str:
    """All keys by section and kind, each with its default and meaning."""
    head = "Keys of a scenario, with their defaults (* must be given). fabsim explain KEY tells more of one."
    return "\n".join([head, "", *_tree([key for key in all_keys() if len(key.path) == 1], "", set())])


def _tree(keys: Iterable[Key], indent: str, shown: set[type[Section]]) -> list[str]:
    """Lines for keys and what is inside them; a section that several kinds share is opened once."""
    lines: list[str] = []
    for key in keys:
        default = "*" if key.required else key.default or "-"
        lines.append(_row(f"{indent}{key.name}", default, key.meaning))
        for kind, section in key.inside.items():
            deeper = f"{indent}  "
            if kind:
                lines.append(_row(f"{deeper}kind: {kind}", "", first_sentence(section).split(". ")[0]))
                deeper += "  "
            if section not in shown:
                shown.add(section)
                lines += _tree(keys_of(section, (*key.path, kind) if kind else key.path), deeper, shown)
    return lines


def _row(name: str, default: str, meaning: str) -> str:
    left = f"{name:<26}  {default:<14}  "
    return f"{left}{_cut(meaning, WIDTH - len(left))}".rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3].rsplit(' ', 1)[0]}..."


def _alike(keys: list[Key]) -> list[list[Key]]:
    """Keys in groups that differ in nothing but their place."""
    groups: dict[tuple[object, ...], list[Key]] = {}
    for key in keys:
        told = {**vars(key), "path": (), "written": "", "inside": tuple(key.inside.items())}
        groups.setdefault(tuple(told.values()), []).append(key)
    return list(groups.values())


def _entry(keys: list[Key]) -> str:
    """Everything about a key, in all the places that have it."""
    key = keys[0]
    smooth = RESULTS[key.smooth] if key.smooth else ""
    rows = [
        ("meaning", key.meaning),
        ("type", key.kind),
        ("unit", key.unit or "none"),
        ("bounds", key.bounds or "none"),
        ("default", _default(key)),
        ("source", key.source or ("none: it must be given" if key.required else "follows from what else is given")),
        ("example", f"{key.name}: {key.example}"),
        ("results", smooth),
    ]
    return "\n".join([*map(_heading, keys), *(_wrapped(f"  {name:<9} ", text) for name, text in rows)])


def _heading(key: Key) -> str:
    """As it is set, and for which kinds."""
    kinds = [step for step in key.path if step not in key.written.split(".")]
    if len(key.path) > len(key.written.split(".")) and not kinds:  # a key with the name of its kind
        kinds = [key.name]
    return f"{key.written} ({', '.join(f'kind: {kind}' for kind in kinds)})" if kinds else key.written


def _default(key: Key) -> str:
    if key.required:
        return "none: it must be given"
    return ": ".join(filter(None, (key.default, key.absent)))


def _section(keys: list[Key]) -> str:
    """A section, in all the places that have it: its kinds with their sources, and the keys of each."""
    key = keys[0]
    rows = [("meaning", key.meaning), ("type", key.kind), ("default", _default(key) or "as its keys have it")]
    rows += [("source", key.source)] if key.source else []
    rows += [("example", f"{key.name}: {key.example}")]
    lines = [*(key.dotted for key in keys), *(_wrapped(f"  {name:<9} ", text) for name, text in rows)]
    for kind, section in key.inside.items():
        if kind:
            lines += ["", f"  kind: {kind}", _wrapped("    ", first_sentence(section))]
            lines += [_wrapped("    source: ", section.origin)] if section.origin else []
        path = (*key.path, kind) if kind else key.path
        lines += _tree(keys_of(section, path), "    ", set())
    return "\n".join(lines)


def _kind(path: Path, section: type[Section]) -> str:
    """A kind: what it is, its keys, and its equations, where it is a law."""
    lines = [".".join(path), _wrapped("  ", first_sentence(section))]
    lines += [_wrapped("  source: ", section.origin)] if section.origin else []
    lines += _tree(keys_of(section, path), "  ", set())
    if section.law:
        module, name = section.law.split(":")
        text = inspect.getdoc(getattr(import_module(module), name)) or ""
        lines += ["", "  the law:", textwrap.indent(text, "    ")]
    return "\n".join(lines)


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)
