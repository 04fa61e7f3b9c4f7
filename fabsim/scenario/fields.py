"""The types of scenario values: quantities with units, positive counts, and what may be `auto`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo, model_validator

from fabsim import units
from fabsim.units import Amount, Dimension, UnitError


class Section(BaseModel):
    """Base of every section: unknown keys are refused, types are not coerced, nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _note_class(cls, data: Any, info: ValidationInfo) -> Any:
        """Remember which class read which mapping, so that an error can name the right keys."""
        if isinstance(info.context, dict) and isinstance(data, dict):
            info.context[id(data)] = cls
        return data


def like(example: str, default: Any = ...) -> Any:
    """A field with an example, which refusals show; required, if it has no default."""
    return Field(default, examples=[example])


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

Rate = Annotated[
    float, BeforeValidator(_reader(units.RATE, zero=False)), _writer("B/s", 1.0, units.show_rate, units.rate)
]
Time = Annotated[float, BeforeValidator(_reader(units.TIME, zero=True)), _writer("s", 1.0, units.show_time, units.time)]
Span = Annotated[
    float, BeforeValidator(_reader(units.TIME, zero=False)), _writer("s", 1.0, units.show_time, units.time)
]
Latency = Annotated[
    float, BeforeValidator(_reader(units.LATENCY, zero=True)), _writer("s", 1.0, units.show_time, units.time)
]
Size = Annotated[float, BeforeValidator(_reader(units.SIZE, zero=True)), _writer("B", 1.0, units.show_size, units.size)]
Length = Annotated[
    float, BeforeValidator(_reader(units.SIZE, zero=False)), _writer("B", 1.0, units.show_size, units.size)
]
Data = Annotated[Amount, *_AMOUNT]
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
    """One flow or several, each by number or name."""
    flows = value if isinstance(value, list | tuple) else (value,)
    if flows and all((_whole(flow) and flow >= 0) or (isinstance(flow, str) and flow) for flow in flows):
        return tuple(flows)
    text = f"not a flow, given {units.shown(value)}"
    raise UnitError(f"{text}; give its number in the list (from 0) or its name, or several: [0, 1]")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value!r} s"


_SPAN = _reader(units.TIME, zero=False)
AutoSpan = Annotated[float | Literal["auto"], or_word(_SPAN, "auto"), PlainSerializer(_seconds, return_type=str)]
DoneOrSpan = Annotated[float | Literal["done"], or_word(_SPAN, "done"), PlainSerializer(_seconds, return_type=str)]
AutoData = Annotated[Amount | Literal["auto"], or_word(_amount, "auto"), PlainSerializer(str, return_type=str)]
Grain = Annotated[
    float | Literal["chunk", "steps"],
    or_word(_reader(units.SIZE, zero=True), "chunk", "steps"),
    PlainSerializer(lambda value: value if isinstance(value, str) else f"{value!r} B", return_type=str),
]
HostsOrCount = Annotated[int | tuple[int, ...], BeforeValidator(_count_or_hosts)]
FlowNames = Annotated[tuple[int | str, ...], BeforeValidator(_flow_names)]
