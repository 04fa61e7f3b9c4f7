"""Levels that may be tuned: buffers, thresholds, capacities, starts, numbers of a transport, with bounds and budgets.

What a level stands for is what the scenario language can say again, so that a tuned scenario is a scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.scenario.classes import class_queues, queues_a_port
from fabsim.scenario.fabrics import switching
from fabsim.scenario.files import existing
from fabsim.scenario.keys.price import load_prices
from fabsim.scenario.keys.traffic import ListedFlows
from fabsim.scenario.keys.tune import Tuned
from fabsim.scenario.reference import Key, keys_of
from fabsim.topology.linear import cost_per_rate
from fabsim.tuning.member import OTHERS, Member, Refuse, own
from fabsim.typing import Float, Int
from fabsim.units import AMOUNT, RATE, TIME, UnitError

if TYPE_CHECKING:
    from fabsim.study.parameters import Levels


SHRINKS = ("buffer", "ecn_low", "ecn_high")
"""What a slow link has less of, in proportion to its speed."""


INGRESS = ("headroom",)
"""What the head of a link has for what comes over it; all else is of the port at its tail."""


def queue(entry: Tuned, name: str, member: Member, given: Sequence[str], refuse: Refuse) -> Levels:
    """What each port has: buffers, thresholds and what else `queue.links` may say, by tier, link or all; with classes
    of traffic buffers and thresholds, by class."""
    net, mtu = member.net, member.scenario.packet.mtu
    chosen, marks = member.scenario.queue, name in ("ecn_low", "ecn_high")
    if marks and not (member.model.transport.signals or member.model.balancer):
        kind = member.scenario.transport.kind
        raise refuse("key", f"{entry.key} has no effect: the transport ({kind}) does not react to marks; tune "
                     "queue.buffer, or take a transport that does (nscc)")  # fmt: skip
    count = queues_a_port(member.scenario)
    if chosen.classes and name not in SHRINKS:
        text = f"{entry.key} is not tuned where traffic has classes, each with queues of its own"
        raise refuse("key", f"{text}; leave out queue.classes, or tune another key")
    if not hasattr(chosen, "buffer") and (name == "buffer" or (name == "ecn_high" and entry.high is None)):
        do = "tune links.capacity instead" if name == "buffer" else "give high, like high: 1 BDP"
        raise refuse("key", f"a port has no buffer of its own under queue: {{kind: {chosen.kind}}}; {do}")
    ways = ("tier", "link", "all") if name == "buffer" else ("all", "tier", "link")
    per = own(entry, ("class",) if chosen.classes else ways, refuse)
    fabric, now = net.fabric, of_ports(name)(member)
    silent = marks & (not chosen.ecn_last_hop) & (fabric.dst < fabric.hosts)
    switch = fabric.dst if name in INGRESS else fabric.src
    ports = np.flatnonzero((switch >= fabric.hosts) & (fabric.capacity > 0) & ~silent)
    group = _by_class(member, ports, now, refuse) if per == "class" else _grouped(per, member, ports, directed=True)
    speed = np.tile(fabric.speed, count) if name in SHRINKS else np.ones(fabric.links)
    keys = {key.name: key for key in keys_of(type(chosen))}
    parse = _reader(keys[name], net.baseline.bdp)
    low, high = (_read(parse, entry, side, refuse) for side in ("low", "high"))
    total = _total(entry, lambda: _read(parse, entry, "total", refuse), float(now[group >= 0].sum()), refuse)
    if marks:
        bounds = _apart(name, member, group, both={"queue.ecn_low", "queue.ecn_high"} <= set(given))
        low, high = bounds[0] if low is None else low, bounds[1] if high is None else high
    if low is None:
        low = mtu if name in SHRINKS else 0.01 * _start_levels(group, now, speed)
    follow = ()
    if name == "buffer" and all(one.ecn_low == "auto" for one in (chosen, *chosen.classes)):
        follow = ("model", "queue", "ecn_low"), ("model", "queue", "ecn_high")
    return _levels(entry, ("model", "queue", name), group, now, speed, low, high, total, 1.0, follow, refuse)


def of_ports(name: str) -> Callable[[Member], Float]:
    """[L] what the ports of a member have by this name, whether they use it or not; [C L] with classes of traffic."""

    def now(member: Member) -> Float:
        queues, net = member.net.queues, member.net
        if member.scenario.queue.classes:
            queues = class_queues(member.scenario, net.fabric, net.baseline)
        return np.asarray(getattr(queues if name in SHRINKS else member.model.queue, name), float)

    return now


def _apart(name: str, member: Member, group: Int, both: bool) -> tuple[float | Float, float | Float]:
    """Bounds of a threshold: from a packet to the buffer, and never across the other threshold of any link. Where both
    are tuned neither crosses the middle between them."""
    speed = np.tile(member.net.fabric.speed, queues_a_port(member.scenario))
    whole = {
        side: np.divide(of_ports(side)(member), speed, out=np.zeros_like(speed), where=speed > 0)
        for side in SHRINKS
    }  # fmt: skip
    middle = 0.5 * (whole["ecn_low"] + whole["ecn_high"])
    if name == "ecn_low":
        return member.scenario.packet.mtu, _of_groups(np.min, group, middle if both else whole["ecn_high"])
    low = _of_groups(np.max, group, middle if both else whole["ecn_low"])
    return low, _of_groups(np.min, group, whole["buffer"])


def _of_groups(extreme: Callable[[Float], float], group: Int, values: Float) -> Float:
    """[G] the smallest or largest of the values in each group."""
    return np.array([extreme(values[group == number]) for number in range(int(group.max()) + 1)])


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
    group = _grouped(per, member, links, directed=False)
    price: Float | float = 1.0
    if entry.cost is not None:
        named = member.scenario.prices
        prices = load_prices(None if named is None else existing(member.scenario, ("prices",), named))
        price, missing = cost_per_rate(fabric, prices, switching(member.scenario, fabric))
        if missing and (np.isnan(price[links])).any():
            raise refuse("cost", f"the price list lacks what these links need: {missing[0]}; give total instead")
        total = float((price * fabric.capacity)[links].sum()) if entry.cost == "now" else float(entry.cost)
    else:
        read = lambda: _read(RATE.parse, entry, "total", refuse)  # noqa: E731
        total = _total(entry, read, float(fabric.capacity[links].sum()), refuse)
    rate = lambda key: _read(RATE.parse, entry, key, refuse)  # noqa: E731
    low, high = rate("low"), rate("high")
    start = _start_levels(group, fabric.capacity, fabric.speed)
    low = 0.01 * start if low is None else low
    path = ("model", "links", "capacity")
    return _levels(entry, path, group, fabric.capacity, fabric.speed, low, high, total, price, (), refuse)


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
    high = _read(TIME.parse, entry, "high", refuse)
    if high is None:
        raise refuse("high", "missing; give the latest start, like high: 50 us")
    low = _read(TIME.parse, entry, "low", refuse) or 0.0
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
    read = _reader(keys[name], member.net.baseline.nic_bdp)
    low, high = (_read(read, entry, side, refuse) for side in ("low", "high"))
    return levels(entry.key, ("model", "transport", name), np.zeros((), int), value.reshape(1),
                  low=0.0 if low is None else low, high=high)  # fmt: skip


def as_in(members: Sequence[Member], levels: Levels, now: Callable[[Member], Float]) -> list[Levels]:
    """The same levels in each member, where a failed link has a part of its level, as the member has it."""
    import jax.numpy as jnp

    start = np.append(np.asarray(levels.start), 1.0)[np.asarray(levels.group)]
    return [replace(levels, factor=jnp.asarray(now(member) / start, levels.factor.dtype)) for member in members]


def _grouped(per: str, member: Member, links: Int, directed: bool) -> Int:
    """[L] group of each link, -1 for one that stays."""
    group = np.full(member.net.fabric.links, -1)
    group[links] = {
        "all": lambda: np.zeros(len(links), int),
        "link": lambda: np.arange(len(links)),
        "tier": lambda: _tiers(member, links, directed),
    }[per]()
    return group


def _by_class(member: Member, links: Int, now: Float, refuse: Refuse) -> Int:
    """[C L] the class of each queue, -1 for one that stays. A scenario says a class of all ports at once."""
    fabric = member.net.fabric
    group = np.full((len(member.scenario.queue.classes), fabric.links), -1)
    group[:, links] = np.arange(len(group))[:, None]
    for number, own_levels in enumerate(now.reshape(group.shape)[:, links] / fabric.speed[links]):
        if np.ptp(own_levels) > 1e-6 * own_levels.max():
            name = member.scenario.queue.classes[number].name
            text = f"class {name} has other queues at some ports than at others, and has one value for all"
            raise refuse("per", f"{text}; give its buffer in bytes")
    return group.reshape(-1)


def _tiers(member: Member, links: Int, directed: bool) -> Int:
    """Group of each of some links by the tiers at its ends."""
    fabric = member.net.fabric
    ends = np.stack([fabric.tier[fabric.src[links]], fabric.tier[fabric.dst[links]]], 1)
    return np.unique(ends if directed else np.sort(ends, 1), axis=0, return_inverse=True)[1].reshape(-1)


def _levels(
    entry: Tuned,
    path: tuple[str, ...],
    group: Int,
    now: Float,
    speed: Float,
    low: float | Float,
    high: float | Float | None,
    total: float | None,
    price: Float | float,
    follow: tuple[tuple[str, ...], ...],
    refuse: Refuse,
) -> Levels:
    """Levels of links: each link has its level times what it has now over the level of its group at the start."""
    from fabsim.study.parameters import levels

    start = _start_levels(group, now, speed)
    some = group >= 0
    factor = np.where(some, now / start[group], 1.0)
    each = np.bincount(group[some], (factor * price)[some], minlength=len(start)).astype(float)
    if high is not None and np.any(np.asarray(high) <= low):
        raise refuse("high", f"must be more than low, given {entry.high}; give a larger one")
    if total is not None and len(start) == 1:
        raise refuse("cost" if entry.cost is not None else "total", "of one value alone the budget is the value; give "
                     "more than one, by per: link or per: tier, or leave the budget out")  # fmt: skip
    if total is not None:
        least, most = (each * low).sum(), np.inf if high is None else (each * high).sum()
        if not least < total < most:
            key = "cost" if entry.cost is not None else "total"
            raise refuse(key, f"the bounds leave from {least:.4g} to {most:.4g}, given {total:.4g}; give one between")
    return levels(entry.key, path, group, start, low=low, high=high, factor=factor, price=each, total=total,
                  follow=follow)  # fmt: skip


def _start_levels(group: Int, now: Float, speed: Float) -> Float:
    """[G] what a healthy link of each group has, on average."""
    some = group >= 0
    whole = np.divide(now, speed, out=np.zeros_like(now), where=speed > 0)[some]
    return np.bincount(group[some], whole) / np.bincount(group[some])


def _total(entry: Tuned, read: Callable[[], float | None], now: float, refuse: Refuse) -> float | None:
    return now if entry.total == "now" else read()


def _reader(key: Key, bdp: float) -> Callable[[Any], float]:
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


def _read(read: Callable[[Any], float], entry: Tuned, key: str, refuse: Refuse) -> float | None:
    """A bound in SI units; None where it is not given."""
    given = getattr(entry, key)
    try:
        return None if given is None else read(given)
    except UnitError as error:
        raise refuse(key, str(error)) from None
