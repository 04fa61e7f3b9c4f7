"""Levels that may be tuned: capacities, starts, numbers of a transport; what ports have stands in ports.py.

What a level stands for is what the scenario language can say again, so that a tuned scenario is a scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fabsim.scenario.compile.fabrics import switching
from fabsim.scenario.compile.files import existing
from fabsim.scenario.compile.prices import load_prices
from fabsim.scenario.guide.reference import keys_of
from fabsim.scenario.keys.traffic import ListedFlows
from fabsim.scenario.keys.tune import Tuned
from fabsim.topology.linear import cost_per_rate
from fabsim.tuning.bounds import bound, budget, reader
from fabsim.tuning.groups import grouped, of_links, start_levels
from fabsim.tuning.member import OTHERS, Member, Refuse, own
from fabsim.typing import Float
from fabsim.units import RATE, TIME

if TYPE_CHECKING:
    from fabsim.study.parameters import Levels


def capacity(entry: Tuned, member: Member, refuse: Refuse) -> Levels:
    """Rates of the links between switches. Links of hosts stay: windows and buffers are derived from their rate."""
    per = own(entry, ("tier", "link", "all"), refuse)
    fabric = member.net.fabric
    between = (fabric.src >= fabric.hosts) & (fabric.dst >= fabric.hosts) & (fabric.capacity > 0)
    if not between.any():
        raise refuse("key", "there are no links between switches; links of hosts set windows and buffers, and stay")
    if entry.total is not None and entry.cost is not None:
        raise refuse("cost", "a total and a cost are two budgets; give one of them")
    links = np.flatnonzero(between)
    group = grouped(per, member, links, directed=False)
    price: Float | float = 1.0
    if entry.cost is not None:
        named = member.scenario.prices
        prices = load_prices(None if named is None else existing(member.scenario, ("prices",), named))
        price, missing = cost_per_rate(fabric, prices, switching(member.scenario, fabric))
        if missing and (np.isnan(price[links])).any():
            raise refuse("cost", f"the price list lacks what these links need: {missing[0]}; give total instead")
        total = float((price * fabric.capacity)[links].sum()) if entry.cost == "now" else float(entry.cost)
    else:
        read = lambda: bound(RATE.parse, entry, "total", refuse)  # noqa: E731
        total = budget(entry, read, float(fabric.capacity[links].sum()), refuse)
    rate = lambda key: bound(RATE.parse, entry, key, refuse)  # noqa: E731
    low, high = rate("low"), rate("high")
    start = start_levels(group, fabric.capacity, fabric.speed)
    low = 0.01 * start if low is None else low
    path = ("model", "links", "capacity")
    return of_links(entry, path, group, fabric.capacity, fabric.speed, low, high, total, price, (), refuse)


def start_times(entry: Tuned, member: Member, refuse: Refuse) -> Levels:
    """Starts of whole traffic entries, or of listed flows one by one; flows that wait for others stay."""
    from fabsim.study.parameters import levels

    per = own(entry, ("entry", "flow"), refuse)
    traffic, flows = member.scenario.traffic, member.net.flows
    listed = [isinstance(one, ListedFlows) and one.list is not None for one in traffic]
    if per == "flow" and not all(listed):
        raise refuse("per", "flows of generated traffic have no start of their own; use entry, or list the flows")
    if per == "entry" and not all(hasattr(one, "start") for one in traffic):
        raise refuse("per", "listed flows have no common start; use flow")
    if entry.total is not None:
        raise refuse("total", "starts have no total; give high, the latest")
    high = bound(TIME.parse, entry, "high", refuse)
    if high is None:
        raise refuse("high", "missing; give the latest start, like high: 50 us")
    low = bound(TIME.parse, entry, "low", refuse) or 0.0
    key = member.entry if per == "entry" else np.arange(flows.count)
    group = np.where(flows.trigger < 0, key, -1)
    start = np.zeros(int(key.max()) + 1)
    start[key] = flows.start
    return levels(entry.key, ("problem", "start"), group, start, low=low, high=high)


def gain(entry: Tuned, name: str, member: Member, refuse: Refuse) -> Levels:
    """A number of the transport's law."""
    import jax

    from fabsim.study.parameters import levels

    keys = {key.name: key for key in keys_of(type(member.scenario.transport))}
    law = member.model.transport
    numbers = [key for key in keys if isinstance(getattr(law, key, None), jax.Array)]
    smooth = [key for key in numbers if keys[key].smooth not in ("jumps", "choice")]
    use = ", ".join(f"transport.{key}" for key in smooth) or OTHERS
    kind = member.scenario.transport.kind
    if name not in numbers:
        raise refuse("key", f"the transport ({kind}) has no number {name!r}; tune {use}")
    if name not in smooth:
        raise refuse("key", f"{entry.key} is only compared with, so that its gradient is zero everywhere; tune {use}")
    own(entry, ("all",), refuse)
    if entry.total is not None:
        raise refuse("total", f"{entry.key} is one number; give low and high")
    value = np.asarray(getattr(law, name), float)
    if value.ndim:
        raise refuse("key", f"{entry.key} is a number for each flow; tune {use}")
    read = reader(keys[name], member.net.baseline.nic_bdp)
    low, high = (bound(read, entry, side, refuse) for side in ("low", "high"))
    return levels(entry.key, ("model", "transport", name), np.zeros((), int), value.reshape(1),
                  low=0.0 if low is None else low, high=high)  # fmt: skip


def as_in(members: Sequence[Member], levels: Levels, now: Callable[[Member], Float]) -> list[Levels]:
    """The same levels in each member, where a failed link has a part of its level, as the member has it."""
    import jax.numpy as jnp

    start = np.append(np.asarray(levels.start), 1.0)[np.asarray(levels.group)]
    return [replace(levels, factor=jnp.asarray(now(member) / start, levels.factor.dtype)) for member in members]
