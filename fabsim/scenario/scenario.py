"""The scenario: load a file, lay overrides over it, and what can be had from it.

Everything that is wrong is told at once, one line each, as an InputError.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Set
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError, create_model

from fabsim.errors import InputError, InputWarning
from fabsim.scenario.contradictions import contradictions
from fabsim.scenario.keys.fields import Section
from fabsim.scenario.text.document import Document
from fabsim.scenario.text.override import by_key, override
from fabsim.scenario.text.sentences import in_order, locate, sentences
from fabsim.scenario.text.source import KeyPath, Source, from_dict, read_file
from fabsim.scenario.tried import case, case_faults, changed, said_by_cases, sweep_faults
from fabsim.units import shown

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Model
    from fabsim.scenario.compile.network import Network

_ABOUT_MANY = ("cases", "packets", "sweep", "tune")
"""Sections that speak of several runs; a single variant has none of them."""


class Scenario(Document):
    """A validated scenario. Get one from `fabsim.load`; it does not change."""

    def network(self) -> Network:
        """Fabric, flows, routes and derived figures, as numpy arrays. Raises InputError for what contradicts itself."""
        from fabsim.scenario.compile.network import network

        return network(self)

    def compile(self) -> tuple[Problem, Model[Any]]:
        """The arrays that the engine advances, and the parameters that may be tuned. Raises InputError.

        With `precision: float64` JAX is switched to 64-bit numbers, which holds for the whole process from then on: a
        float32 scenario stays in float32, but what else is made without a dtype is wider than before.
        """
        from fabsim.scenario.compile.arrays import compile_scenario

        return compile_scenario(self)

    def change(self, values: Mapping[str, Any], places: Mapping[str, str] | None = None) -> Scenario:
        """The scenario with dotted keys overridden, e.g. {"transport.window": "1 BDP"}. Raises InputError."""
        source = override(self._source, by_key(values), places)
        return _revalidated(self, source, {key.partition(".")[0] for key in values}) or validated(source)

    def single(self) -> Scenario:
        """This scenario without the sections that speak of several runs."""
        return validated(_single(self._source))

    @cached_property
    def variants(self) -> dict[str, Scenario]:
        """The cases by name, each a scenario without cases; without any, this scenario under its own name."""
        if not self.cases:
            return {self.name: self.single()}
        single = self.single()
        return {name: changed(single, case(self._source, name)) for name in self.cases}


def load(file: str | Path | Mapping[str, Any], overrides: Mapping[str, Any] | None = None, **more: Any) -> Scenario:
    """Read and check a scenario.

    Args:
        file: a YAML file, or the same as a dict (relative paths then start in the working directory).
        overrides: values by dotted key, {"transport.window": "1 BDP"}; numbers and arrays of numpy do, as in `file`.
        more: the same as keywords, with two underscores for a dot: transport__window="1 BDP".

    Warns of overrides that do not hold in every case, since the case has a value of its own.

    Raises:
        InputError: one sentence for each fault, `file:line:column: key: what is wrong, what was given, what would do`;
            those of overrides begin with the key.
    """
    if not isinstance(file, str | Path | Mapping):
        raise InputError(f"load: {shown(file)} given; the path of a YAML file, or a dict of its keys, would do")
    source = from_dict(file) if isinstance(file, Mapping) else read_file(file)
    named = {key.replace("__", "."): value for key, value in more.items()}
    return laid_over(source, {**by_key({} if overrides is None else overrides), **named})


def refuse_unloaded(given: Any, verb: str) -> None:
    """Raises InputError for what is no scenario yet."""
    if not isinstance(given, Scenario):
        text = f"{shown(given)} given, which is no scenario; load it first: fabsim.{verb}(fabsim.load(...))"
        raise InputError(f"{verb}: {text}")


def laid_over(source: Source, values: Mapping[str, Any], places: Mapping[str, str] | None = None) -> Scenario:
    """The scenario of a source with dotted keys overridden, as `override` does. Warns of those that do not hold in all
    cases. Raises InputError."""
    scenario = validated(override(source, values, places))
    for line in said_by_cases(scenario, {key: key for key in values} | dict(places or {})):
        warnings.warn(line, InputWarning, stacklevel=3)
    return scenario


def validated(source: Source) -> Scenario:
    """The scenario of a source. Raises InputError with all that is wrong."""
    classes: dict[int, type[BaseModel]] = {}
    lines = list(source.errors)
    try:
        scenario = Scenario.model_validate(source.data, context=classes)
    except ValidationError as error:
        left_over = _keys_of_the_former_kind(error, source)
        if left_over:
            return validated(_without(source, left_over))
        raise InputError(in_order([*lines, *sentences(error, source, classes)])) from None
    scenario._source = source
    if not lines:
        lines += [source.sentence(path, text) for path, text in contradictions(scenario)]
    if not lines:
        lines += case_faults(scenario) + sweep_faults(scenario)
    if lines:
        raise InputError(in_order(dict.fromkeys(lines)))
    return scenario


def _revalidated(scenario: Scenario, source: Source, changed: Set[str]) -> Scenario | None:
    """The scenario of a source that differs in some top-level keys only: these are validated, and all together must
    not contradict itself. None where anything is wrong, which `validated` can tell."""
    single = not any(key in changed or getattr(scenario, key) for key in _ABOUT_MANY)
    if source.errors or not changed <= Scenario.model_fields.keys() or not single:
        return None
    try:
        parts = {key: getattr(_alone(key).model_validate({key: source.data[key]}), key) for key in changed}
    except ValidationError:
        return None
    found = scenario.model_copy(update=parts)
    vars(found).pop("variants", None)  # those of the scenario that it was
    found._source = source
    return None if contradictions(found) else found


@cache
def _alone(key: str) -> type[Section]:
    """A section of nothing but one key of the file."""
    field = Scenario.model_fields[key]
    fields: dict[str, Any] = {key: (field.annotation, field)}
    return create_model(key, __base__=Section, **fields)


def _single(source: Source) -> Source:
    return replace(source, data={k: v for k, v in source.data.items() if k not in _ABOUT_MANY})


def _keys_of_the_former_kind(error: ValidationError, source: Source) -> list[KeyPath]:
    """Keys of the file in a section whose `kind` was overridden, which the new kind does not have."""
    found = [locate(source.data, e["loc"], True)[0] for e in error.errors() if e["type"] == "extra_forbidden"]
    return [path for path in found if path[:-1] in source.other_kind and _of_the_file(source.place(path))]


def _of_the_file(place: str) -> bool:
    """Whether a place is neither of the command line nor of Python."""
    return bool(place) and not place.startswith("--set")


def _without(source: Source, paths: list[KeyPath]) -> Source:
    data = copy.deepcopy(source.data)
    for path in paths:
        holder: Any = data
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]
    return replace(source, data=data)
