"""Units: text such as "400 Gbps" or "1.5 BDP" to numbers, and numbers back to text.

Inside fabsim every number is SI with bytes for data: bytes, bytes per second, seconds. People write units. A bare
number is refused wherever a unit is needed, because a wrong unit is the commonest silent error in this field.
Binary prefixes count in 1024 ("16 KiB" is 16384 bytes), decimal ones in 1000; `b` is a bit and `B` is a byte.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from quantiphy import Quantity

Bytes = TypeVar("Bytes", float, NDArray[np.floating], float | NDArray[np.floating])

FIBRE_DELAY = 4.9e-9
"""Seconds per metre of fibre: 4.9 us per km (group index 1.468)."""

_NUMBER_AND_UNIT = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s*(?P<unit>[^\s\d].*)")
_NOT_FINITE = re.compile(r"\s*[+-]?\.?(nan|inf|infinity)\b.*", re.IGNORECASE)
_BITS = dict.fromkeys(("b", "bit", "bits"), 0.125)
_BYTES = dict.fromkeys(("B", "byte", "bytes"), 1.0)
_RATES = {"bps": 0.125, "b/s": 0.125, "bit/s": 0.125, "B/s": 1.0, "Bps": 1.0}
_TIMES = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}


class _Quantity(Quantity):
    """QuantiPhy with its own preferences, so that nobody else's settings change how a scenario is read."""


_Quantity.set_prefs(known_units="m min", ignore_sf=False)


class UnitError(ValueError):
    """A quantity that cannot be read; the text says what was given and what would do."""


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity: its name, the factor of each unit to the inner one, how to write it, and the largest one,
    which is more than any network has and less than numbers of 32 bits bear."""

    name: str
    factors: Mapping[str, float]
    example: str
    most: str

    def read(self, text: object) -> tuple[float, str]:
        """The value in the inner unit and the unit that was written.

        Raises:
            UnitError: no text, no unit, another dimension, not finite or negative.
        """
        if not isinstance(text, str):
            raise UnitError(f"not {self.name}: {shown(text)} has no unit; write it like {self.example}")
        if _NOT_FINITE.fullmatch(text):
            raise UnitError(f"not a finite number: {shown(text)}; write it like {self.example}")
        number, unit = self._split(text)
        if unit not in self.factors:
            raise UnitError(f"not {self.name}: {shown(text)} {_what_is(unit, text)}; write it like {self.example}")
        if not math.isfinite(number):
            raise UnitError(f"not a finite number: {shown(text)}; write it like {self.example}")
        if number < 0:
            raise UnitError(f"must not be negative: {shown(text)}; write it like {self.example}")
        if number * self.factors[unit] > self.bound:
            raise UnitError(f"more than {self.most}: {shown(text)}; write it like {self.example}")
        return number * self.factors[unit], unit

    @cached_property
    def bound(self) -> float:
        """The largest one, in the inner unit."""
        number, unit = self._split(self.most)
        return number * self.factors[unit]

    def parse(self, text: object) -> float:
        """The value in the inner unit (bytes, bytes per second or seconds)."""
        return self.read(text)[0]

    def _split(self, text: str) -> tuple[float, str]:
        """Number and unit; a decimal comma or other litter is refused rather than guessed at."""
        if not _NUMBER_AND_UNIT.fullmatch(text.strip()) or "," in text:
            what = "has no unit" if _is_number(text) else "cannot be read"
            raise UnitError(f"not {self.name}: {shown(text)} {what}; write it like {self.example}")
        try:
            return _number_and_unit(text.strip())
        except ValueError:
            raise UnitError(f"not {self.name}: {shown(text)} cannot be read; write it like {self.example}") from None


@lru_cache(maxsize=4096)
def _number_and_unit(text: str) -> tuple[float, str]:
    """What QuantiPhy makes of it; remembered, since a sweep reads the same text thousands of times."""
    number = _NUMBER_AND_UNIT.fullmatch(text)
    if number and number[2]:  # QuantiPhy knows an exponent or a prefix, not both: 1e3 km
        one = _Quantity(f"1 {number['unit']}", binary=True)
        return float(text.removesuffix(number["unit"])) * float(one), str(one.units)
    quantity = _Quantity(text, binary=True)
    return float(quantity), str(quantity.units)


RATE = Dimension("a rate", _RATES, "'400 Gbps' or '50 GB/s'", "1 PB/s")
TIME = Dimension("a time", _TIMES, "'10 us' or '2 ms'", "1000000 h")
# Light goes five times around the Earth in a second of fibre: more is a slip (s for us), and a run without end.
LATENCY = Dimension("a latency", {**_TIMES, "m": FIBRE_DELAY}, "'1 us' or '20 km' (of fibre)", "1 s")
SIZE = Dimension("a size", {**_BYTES, **_BITS}, "'2 MB' or '16 KiB'", "1 PB")
AMOUNT = Dimension("an amount of data", {**_BYTES, **_BITS, "BDP": 1.0}, "'1.5 BDP' or '400 kB'", "1 PB")


@dataclass(frozen=True)
class Amount:
    """Bytes, or a multiple of the bandwidth-delay product that is known only once the fabric is built."""

    value: float
    relative: bool

    def bytes(self, bdp: Bytes) -> Bytes | float:
        """The amount in bytes, for a bandwidth-delay product in bytes, or an array of them."""
        return self.value * bdp if self.relative else self.value

    def __str__(self) -> str:
        return f"{self.value:g} BDP" if self.relative else f"{self.value:.17g} B"


def rate(text: object) -> float:
    """Bytes per second of text such as "400 Gbps" or "50 GB/s"."""
    return RATE.parse(text)


def time(text: object) -> float:
    """Seconds of text such as "10 us"."""
    return TIME.parse(text)


def latency(text: object) -> float:
    """Seconds of text such as "1 us", or of a length of fibre such as "20 km"."""
    return LATENCY.parse(text)


def size(text: object) -> float:
    """Bytes of text such as "2 MB", "16 KiB" or "4150 B"."""
    return SIZE.parse(text)


def amount(text: object) -> Amount:
    """Bytes or bandwidth-delay products of text such as "400 kB" or "1.5 BDP"."""
    value, unit = AMOUNT.read(text)
    return Amount(value, unit == "BDP")


def quantity(value: object) -> tuple[float, str]:
    """A number and its inner unit: "B", "B/s", "s", "m", "BDP", or "" for a plain number.

    Raises:
        UnitError: neither a number nor text with a known unit.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    for dimension, unit in ((AMOUNT, "B"), (TIME, "s"), (LATENCY, "s"), (RATE, "B/s")):  # the third for metres
        try:
            number, written = dimension.read(value)
        except UnitError:
            continue
        if written == "m":
            return number / FIBRE_DELAY, "m"
        return number, written if written == "BDP" else unit
    raise UnitError(f"not a quantity: {shown(value)}; write it like '400 kB', '100 Gbps', '10 us', '2 BDP' or 3")


def show_time(seconds: float) -> str:
    """Text such as "8.337 us"; "unfinished" for a time that never came."""
    if not math.isfinite(seconds):
        return "unfinished"
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")), "s")


def show_size(count: float) -> str:
    """Text such as "419.2 kB" (decimal prefixes)."""
    return _scaled(count, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")), "B")


def show_rate(bytes_per_second: float) -> str:
    """Text such as "400 Gbps" (line rates are spoken of in bits)."""
    steps = ((1e12, "Tbps"), (1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps"), (1.0, "bps"))
    return _scaled(bytes_per_second * 8, steps, "bps")


def _scaled(value: float, steps: tuple[tuple[float, str], ...], base: str) -> str:
    """Four significant digits with the largest prefix that leaves at least 1."""
    for factor, unit in steps:
        if abs(value) >= factor * (1 - 1e-6):
            return f"{value / factor:.4g} {unit}"
    factor, unit = steps[-1] if value else (1.0, base)
    return f"{value / factor:.4g} {unit}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def shown(value: object) -> str:
    """A value as the user would recognise it, cut where it is long."""
    text = "true" if value is True else "false" if value is False else "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _what_is(unit: str, text: str) -> str:
    """What a wrong unit is instead: "is a time", or that it is unknown."""
    names = {"a rate": _RATES, "a time": _TIMES, "a size": {**_BYTES, **_BITS}, "a length": {"m": 1}}
    names["a multiple of the bandwidth-delay product"] = {"BDP": 1}
    for name, units in names.items():
        if unit in units:
            return f"is {name}"
    written = _NUMBER_AND_UNIT.fullmatch(text.strip())
    return f"has the unknown unit {written['unit']!r}" if unit and written else "has no unit"
