"""The types of scenario values: quantities with units, positive counts, and what may be `auto`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo, model_validator

from fabsim import units
from fabsim.units import Amount, Dimension, UnitError

Smooth = Literal["smooth", "smooth almost everywhere", "jumps", "choice"]
"""How results follow a key. `jumps`: it counts or draws, a small change may change much; `choice`: it is no number."""
ALMOST: Smooth = "smooth almost everywhere"
"""Of most quantities: but for kinks where a port is just full, or where another flow becomes the last."""


class Section(BaseModel):
    """Base of every section: unknown keys are refused, types are not coerced, nothing changes after reading.

    The docstring of a section says what it is. `origin` is the source of the law behind it, `law` the class that holds
    its equations ("module:class"). `begins_with` is the kind of traffic of a new scenario with such a fabric.
    """

    origin: ClassVar[str] = ""
    law: ClassVar[str] = ""
    begins_with: ClassVar[str] = "permutation"
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _note_class(cls, data: Any, info: ValidationInfo) -> Any:
        """Remember which class read which mapping, so that an error can name the right keys."""
        if isinstance(info.context, dict) and isinstance(data, dict):
            info.context[id(data)] = cls
        return data


def like(
    example: str,
    default: Any = ...,
    *,
    means: str = "",
    source: str = "",
    absent: str = "",
    smooth: Smooth | None = None,
    begin: bool = False,
) -> Any:
    """A field, and all there is to know of it; required, if it has no default.

    Args:
        example: YAML text; refusals show it.
        means: what it is, in one sentence without a full stop.
        source: where the default comes from; "ours" where it is our own choice.
        absent: what holds without it, where the default (None, auto) does not say so.
        smooth: whether results are smooth in it. Whole numbers jump and words are a choice: say it for the others.
        begin: a new scenario has it, although it has a default.
    """
    told = {"x-source": source, "x-absent": absent, "x-smooth": smooth, "x-begin": begin}
    extra = {key: value for key, value in told.items() if value}
    return Field(default, examples=[example], description=means or None, json_schema_extra=extra or None)


@dataclass(frozen=True, eq=False)  # hashed by identity, as an annotation must be
class Written:
    """How a value is written, for people and for editors: beside the validator of a type that is more than a number.

    Attributes:
        kind: what it is: "a rate".
        unit: the unit that it is written in.
        bounds: in words; "" where there are none.
        schema: JSON Schema of what stands in the file.
    """

    kind: str
    unit: str
    bounds: str
    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, _: Any, __: Any) -> dict[str, Any]:
        """What pydantic asks annotations for."""
        return dict(self.schema)


def _quantity(kind: str, unit: str, bounds: str, *words: str) -> Written:
    """A number with a unit, or one of some words."""
    text = {"type": "string", "pattern": r"^\s*[+-]?[0-9.][0-9_.]*([eE][+-]?[0-9]+)?\s*[A-Za-z].*$"}
    return Written(kind, unit, bounds, {"anyOf": [text, {"enum": list(words)}]} if words else text)


def _reader(dimension: Dimension, *, zero: bool) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        number = dimension.parse(value)
        if number == 0 and not zero:
            raise UnitError(f"must be more than 0: {value!r}; write it like {dimension.example}")
        return number

    return read


def _writer(unit: str, factor: float, show: Callable[[float], str], read: Callable[[Any], float]) -> PlainSerializer:
    """The short text if it reads back as the same number, else all digits."""

    def write(value: float) -> str:
        text = show(value)
        return text if read(text) == value else f"{value * factor!r} {unit}"

    return PlainSerializer(write, return_type=str)


def _amount(value: Any) -> Amount:
    return value if isinstance(value, Amount) else units.amount(value)


T = TypeVar("T")
Many = Annotated[tuple[T, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
"""A list in the file, a tuple here, so that a scenario cannot change."""

_AMOUNT = (BeforeValidator(_amount), PlainSerializer(str, return_type=str))
_RATE_UNIT = "bits or bytes per second, like Gbps or GB/s"
_TIME_UNIT = "seconds, like us or ms"
_SIZE_UNIT = "bytes, like B, kB or MiB"
_DATA_UNIT = "bytes, or BDP (bandwidth-delay products of the longest route; in a site, of its own)"
_NOT_NEGATIVE, _POSITIVE = "not negative", "more than 0"

Rate = Annotated[
    float,
    BeforeValidator(_reader(units.RATE, zero=False)),
    _writer("B/s", 1.0, units.show_rate, units.rate),
    _quantity("a rate", _RATE_UNIT, _POSITIVE),
]
Time = Annotated[
    float,
    BeforeValidator(_reader(units.TIME, zero=True)),
    _writer("s", 1.0, units.show_time, units.time),
    _quantity("a time", _TIME_UNIT, _NOT_NEGATIVE),
]
Span = Annotated[
    float,
    BeforeValidator(_reader(units.TIME, zero=False)),
    _writer("s", 1.0, units.show_time, units.time),
    _quantity("a time", _TIME_UNIT, _POSITIVE),
]
Latency = Annotated[
    float,
    BeforeValidator(_reader(units.LATENCY, zero=True)),
    _writer("s", 1.0, units.show_time, units.time),
    _quantity("a latency", f"{_TIME_UNIT}; or metres of fibre, like km (4.9 us each)", _NOT_NEGATIVE),
]
Size = Annotated[
    float,
    BeforeValidator(_reader(units.SIZE, zero=True)),
    _writer("B", 1.0, units.show_size, units.size),
    _quantity("a size", _SIZE_UNIT, _NOT_NEGATIVE),
]
Length = Annotated[
    float,
    BeforeValidator(_reader(units.SIZE, zero=False)),
    _writer("B", 1.0, units.show_size, units.size),
    _quantity("a size", _SIZE_UNIT, _POSITIVE),
]
Data = Annotated[Amount, *_AMOUNT, _quantity("an amount of data", _DATA_UNIT, _NOT_NEGATIVE)]
Count = Annotated[int, Field(ge=1)]
Host = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Ratio = Annotated[float, Field(ge=1.0)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Text = Annotated[str, Field(min_length=1)]


def or_word(read: Callable[[Any], Any], *words: str) -> BeforeValidator:
    """A validator for a quantity that may be one of `words` instead."""

    def choose(value: Any) -> Any:
        if value in words:
            return value
        try:
            return read(value)
        except UnitError as error:
            raise UnitError(f"{error}, or {' or '.join(map(repr, words))}") from None

    return BeforeValidator(choose)


def _count_or_hosts(value: Any) -> int | tuple[int, ...]:
    """How many hosts, or which."""
    if _whole(value) and value >= 1:
        return value
    if isinstance(value, list | tuple) and value and all(_whole(host) and host >= 0 for host in value):
        return tuple(value)
    text = f"neither a number of hosts nor a list of hosts, given {units.shown(value)}"
    raise UnitError(f"{text}; write it like 32 or [4, 5]")


def _flow_names(value: Any) -> tuple[int | str, ...]:
    """One flow, several or none, each by number or name."""
    flows = value if isinstance(value, list | tuple) else (value,)
    if all((_whole(flow) and flow >= 0) or (isinstance(flow, str) and flow) for flow in flows):
        return tuple(flows)
    text = f"not a flow, given {units.shown(value)}"
    raise UnitError(f"{text}; give its number in the list (from 0) or its name, or several: [0, 1]")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value!r} s"


_SPAN = _reader(units.TIME, zero=False)
AutoSpan = Annotated[
    float | Literal["auto"],
    or_word(_SPAN, "auto"),
    PlainSerializer(_seconds, return_type=str),
    _quantity("a time, or auto", _TIME_UNIT, _POSITIVE, "auto"),
]
DoneOrSpan = Annotated[
    float | Literal["done"],
    or_word(_SPAN, "done"),
    PlainSerializer(_seconds, return_type=str),
    _quantity("a time, or done", _TIME_UNIT, _POSITIVE, "done"),
]
AutoRate = Annotated[
    float | Literal["auto"],
    or_word(_reader(units.RATE, zero=False), "auto"),
    PlainSerializer(lambda value: value if isinstance(value, str) else f"{value!r} B/s", return_type=str),
    _quantity("a rate, or auto", _RATE_UNIT, _POSITIVE, "auto"),
]
AutoData = Annotated[
    Amount | Literal["auto"],
    or_word(_amount, "auto"),
    PlainSerializer(str, return_type=str),
    _quantity("an amount of data, or auto", _DATA_UNIT, _NOT_NEGATIVE, "auto"),
]
Grain = Annotated[
    float | Literal["chunk", "steps"],
    or_word(_reader(units.SIZE, zero=True), "chunk", "steps"),
    PlainSerializer(lambda value: value if isinstance(value, str) else f"{value!r} B", return_type=str),
    _quantity("a size, chunk, or steps", _SIZE_UNIT, _NOT_NEGATIVE, "chunk", "steps"),
]
_A_HOST = {"type": "integer", "minimum": 0}
_A_FLOW = {"anyOf": [_A_HOST, {"type": "string", "minLength": 1}]}
HostsOrCount = Annotated[
    int | tuple[int, ...],
    BeforeValidator(_count_or_hosts),
    Written(
        "a number of hosts, or a list of hosts",
        "",
        "a number: at least 1; a host: at least 0",
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": _A_HOST, "minItems": 1}]},
    ),
]
FlowNames = Annotated[
    tuple[int | str, ...],
    BeforeValidator(_flow_names),
    Written(
        "flows, by number in the list or by name",
        "",
        "a number: at least 0",
        {"anyOf": [*_A_FLOW["anyOf"], {"type": "array", "items": _A_FLOW}]},
    ),
]
