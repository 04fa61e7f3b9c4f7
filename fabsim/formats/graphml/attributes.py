"""Attributes of nodes and edges: text with a unit ("rate": "400 Gbps"), or a number with the unit in the name
("rate_gbps": 400)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

from fabsim import units
from fabsim.units import FIBRE_DELAY, UnitError


@dataclass(frozen=True)
class Quantity:
    """A physical attribute. `read`: from text with a unit to SI; `scales`: from the units that a name may end in."""

    read: Callable[[object], float]
    scales: Mapping[str, float]


_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_METRES = {"m": FIBRE_DELAY, "km": 1e3 * FIBRE_DELAY}
QUANTITIES = {
    "rate": Quantity(units.rate, {"mbps": 1e6 / 8, "gbps": 1e9 / 8, "tbps": 1e12 / 8}),
    "latency": Quantity(units.latency, _TIMES),
    "length": Quantity(units.Dimension("a length", _METRES, "'20 km'", "1000000 km").parse, _METRES),
    "buffer": Quantity(units.size, {"B": 1.0, "kB": 1e3, "MB": 1e6}),
    "switch_latency": Quantity(units.time, _TIMES),
}
EDGE = ("rate", "latency", "length", "buffer")
NODE = ("switch_latency",)


class AttributeFault(ValueError):
    """An attribute that cannot be used; the text is the sentence behind the name of the node or edge."""


def with_defaults(data: Mapping[str, Any], defaults: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Attributes with the defaults of the file for what is given in no form: a rate in text is not doubled by a default
    of rate_gbps, nor a latency by one of length_km."""
    rivals = [{"latency", "length"} if name in ("latency", "length") else {name} for name in names]
    told = [any(_is_form_of(key, name) for key in data for name in rival) for rival in rivals]
    kept = {
        key: value
        for key, value in defaults.items()
        if not any(given and _is_form_of(key, name) for name, given in zip(names, told, strict=True))
    }
    return {**kept, **data}


def quantity(data: Mapping[str, Any], name: str) -> float:
    """The value of a quantity in SI (a length in seconds of fibre), NaN where it is not given.

    Raises AttributeFault for a wrong unit, a number without one, a value out of range, or two ways of saying it.
    """
    known = QUANTITIES[name]
    given = [key for key in data if _is_form_of(key, name) and data[key] != ""]
    if not given:
        return nan
    if len(given) > 1:
        raise AttributeFault(f"{' and '.join(given)} say the same; give one")
    key, value = given[0], data[given[0]]
    if key == name:
        try:
            return known.read(value)
        except UnitError as error:
            forms = " or ".join(f"{name}_{unit}" for unit in known.scales)
            raise AttributeFault(f"{name}: {error}; or a number as {forms}") from None
    return number(data, key) * known.scales[key.removeprefix(f"{name}_")]


def number(data: Mapping[str, Any], key: str) -> float:
    """A plain number, 0 or more. Raises AttributeFault."""
    value = data[key]
    try:
        found = nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = nan
    if not isfinite(found) or found < 0:
        raise AttributeFault(f"{key}: {units.shown(value)} given, must be a number, 0 or more")
    return found


def whole(data: Mapping[str, Any], key: str, default: int) -> int:
    """A whole number, 0 or more. Raises AttributeFault."""
    if data.get(key, "") == "":
        return default
    found = number(data, key)
    if found != int(found):
        raise AttributeFault(f"{key}: {units.shown(data[key])} given, must be a whole number")
    return int(found)


def refuse_unknown_units(data: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Raises AttributeFault for a key that means a quantity without being a form of it ("rate_gbit"): it is not to
    get lost."""
    for key in data:
        for name in names:
            if key.lower().startswith(name) and not _is_form_of(key, name):
                forms = ", ".join([name, *(f"{name}_{unit}" for unit in QUANTITIES[name].scales)])
                raise AttributeFault(f"{key}: no such attribute; use one of {forms}")


def used(key: str, names: tuple[str, ...]) -> bool:
    """Whether a key is a form of one of the quantities."""
    return any(_is_form_of(key, name) for name in names)


def _is_form_of(key: str, name: str) -> bool:
    return key == name or key in {f"{name}_{unit}" for unit in QUANTITIES[name].scales}
