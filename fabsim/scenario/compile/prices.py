"""The price list of a scenario, or the one that is built in."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ValidationError

from fabsim.errors import InputError
from fabsim.scenario.keys.price import PriceList
from fabsim.scenario.text.sentences import in_order, sentences
from fabsim.scenario.text.source import Source, read_file, read_text
from fabsim.topology.prices import OpticPrice, Prices, SwitchPrice


def load_prices(file: Path | None = None) -> Prices:
    """A price list, or the one that is built in. Raises InputError, a sentence a fault, with its place."""
    return _built_in() if file is None else _prices(read_file(file, "a price list"))


@cache
def _built_in() -> Prices:
    text = (files("fabsim.scenario") / "prices.yaml").read_text(encoding="utf-8")
    return _prices(read_text(text, "prices.yaml", Path()))


def _prices(source: Source) -> Prices:
    classes: dict[int, type[BaseModel]] = {}
    lines = list(source.errors)
    try:
        found = PriceList.model_validate(source.data, context=classes)
    except ValidationError as error:
        lines += sentences(error, source, classes)
        found = None
    if found is None or lines:
        raise InputError(in_order(lines))
    switches = tuple(SwitchPrice(**entry.model_dump(exclude={"source", "speed"}), speed=entry.speed)
                     for entry in found.switches)  # fmt: skip
    optics = tuple(OpticPrice(**entry.model_dump(exclude={"source", "speed"}), speed=entry.speed)
                   for entry in found.optics)  # fmt: skip
    return Prices(found.currency, switches, optics, found.fibre.cost_per_km)
