"""The lines of `fabsim check` about what the fabric is made of, and what that costs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fabsim.scenario.compile.fabrics import build_fabric, switching
from fabsim.scenario.compile.files import existing
from fabsim.scenario.compile.prices import load_prices
from fabsim.topology.bill import Bill, bill
from fabsim.topology.prices import Prices

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario


def part_lines(scenario: Scenario) -> list[tuple[str, str]]:
    """Switches, ports, optics, kilometres, watts and cost of the healthy fabric. Raises as `parts_of`."""
    found, prices = parts_of(scenario)
    lines = [
        ("switches", f"{_listed(found.switches)}; {found.ports:,} ports in use"),
        ("optics", f"{_listed(found.optics)}; copper ends: {_listed(found.copper)}"),
        ("cables", f"{found.cables:,}, {found.kilometres:,.4g} km, by their latency at 4.9 us per km"),
        ("power", f"{found.watts / 1e3:,.4g} kW for switches and optics"),
        ("cost", f"{found.cost:,.0f} {prices.currency}, illustrative ({scenario.prices or 'the built-in price list'})"),
    ]
    return [*lines, *(("not priced", text) for text in found.missing)]


def parts_of(scenario: Scenario) -> tuple[Bill, Prices]:
    """What the healthy fabric is made of, and the list that says what it costs. Raises InputError for a price list that
    is not one."""
    named = scenario.prices
    prices = load_prices(None if named is None else existing(scenario, ("prices",), named))
    fabric = build_fabric(scenario)
    return bill(fabric, prices, switching(scenario, fabric)), prices


def _listed(parts: Counter[str]) -> str:
    """How many in all, and of each."""
    if not parts:
        return "none"
    each = ", ".join(f"{number:,} of {name}" for name, number in parts.most_common())
    return f"{parts.total():,} ({each})"
