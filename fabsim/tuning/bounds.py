"""Bounds and budgets of what is tuned, from what the scenario says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fabsim.scenario.guide.reference import Key
from fabsim.scenario.keys.tune import Tuned
from fabsim.tuning.member import Refuse
from fabsim.units import AMOUNT, TIME, UnitError


def bound(read: Callable[[Any], float], entry: Tuned, key: str, refuse: Refuse) -> float | None:
    """A bound in SI units; None where it is not given."""
    given = getattr(entry, key)
    try:
        return None if given is None else read(given)
    except UnitError as error:
        raise refuse(key, str(error)) from None


def budget(entry: Tuned, read: Callable[[], float | None], now: float, refuse: Refuse) -> float | None:
    return now if entry.total == "now" else read()


def reader(key: Key, bdp: float) -> Callable[[Any], float]:
    """How a value of a key is read."""
    if key.kind.startswith("an amount"):
        return lambda text: _bytes(text, bdp)
    return TIME.parse if key.kind.startswith("a time") else _number


def _bytes(text: Any, bdp: float) -> float:
    value, unit = AMOUNT.read(text)
    return value * bdp if unit == "BDP" else value


def _number(value: Any) -> float:
    if isinstance(value, str):
        raise UnitError(f"not a number, given {value!r}; write it like 0.5")
    return float(value)
