"""What may stand in a price list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from fabsim.scenario.keys.fields import Count, Many, Rate, Section, Text, like
from fabsim.units import Dimension

METRES: Callable[[Any], float] = Dimension("a length", {"m": 1.0}, "'500 m' or '2 km'", "100000 km").parse
Reach = Annotated[float, BeforeValidator(METRES)]
Money = Annotated[float, Field(ge=0.0)]
Watts = Annotated[float, Field(ge=0.0)]


class Fibre(Section):
    """Fibre, by the kilometre of one pair."""

    cost_per_km: Money = like("150")
    source: Text = like("assumed", "not said")


class SwitchEntry(Section):
    """A switch; `split`: slower ports from one cage; watts without optics."""

    name: Text = like("64 x 800G")
    ports: Count = like("64")
    speed: Rate = like("800 Gbps")
    split: Count = like("8", 1)
    watts: Watts = like("1300")
    cost: Money = like("45000")
    source: Text = like("assumed", "not said")


class OpticEntry(Section):
    """One end of a cable; `split`: slower ports that share it; `pairs`: pairs of fibre out of it, 0 for copper."""

    name: Text = like("800G DR8")
    speed: Rate = like("800 Gbps")
    reach: Reach = like("500 m")
    split: Count = like("8", 1)
    pairs: Annotated[int, Field(ge=0)] = like("8", 1)
    watts: Watts = like("15")
    cost: Money = like("700")
    source: Text = like("assumed", "not said")


class PriceList(Section):
    """The whole file."""

    currency: Text = like("USD", "USD")
    fibre: Fibre = like("{cost_per_km: 150}")
    switches: Annotated[Many[SwitchEntry], Field(min_length=1)] = like("[{name: 64 x 800G, ports: 64, ...}]")
    optics: Annotated[Many[OpticEntry], Field(min_length=1)] = like("[{name: 800G DR8, speed: 800 Gbps, ...}]")
