"""What ports have and may be tuned: buffers, thresholds and what else `queue.links` may say of single ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabsim.scenario.compile.classes import class_queues, queues_a_port
from fabsim.scenario.compile.ports import INGRESS
from fabsim.scenario.guide.reference import keys_of
from fabsim.scenario.keys.tune import Tuned
from fabsim.tuning.bounds import bound, budget, reader
from fabsim.tuning.groups import grouped, of_links, start_levels
from fabsim.tuning.member import Member, Refuse, own
from fabsim.typing import Float, Int

if TYPE_CHECKING:
    from fabsim.study.parameters import Levels

MARKS = ("ecn_low", "ecn_high")
"""Thresholds."""
SHRINKS = ("buffer", *MARKS)
"""What a slow link has less of, in proportion to its speed."""


def queue(entry: Tuned, name: str, member: Member, given: Sequence[str], refuse: Refuse) -> Levels:
    """What each port has: buffers, thresholds and what else `queue.links` may say, by tier, link or all; with classes
    of traffic buffers and thresholds, by class. A port with a level of its own moves along with its group, by the same
    factor."""
    _refuse_what_says_nothing(entry, name, member, refuse)
    chosen, now = member.scenario.queue, of_ports(name)(member)
    group = _ports(entry, name, member, now, refuse)
    speed = _part(name, member)
    low, high = _bounds(entry, name, member, given, group, now, refuse)
    read = _reader(entry, name, member, refuse)
    total = budget(entry, lambda: read("total"), float(now[group >= 0].sum()), refuse)
    follow = ()
    if name == "buffer" and all(one.ecn_low == "auto" for one in (chosen, *chosen.classes)):
        follow = ("model", "queue", "ecn_low"), ("model", "queue", "ecn_high")
    return of_links(entry, ("model", "queue", name), group, now, speed, low, high, total, 1.0, follow, refuse)


def _refuse_what_says_nothing(entry: Tuned, name: str, member: Member, refuse: Refuse) -> None:
    """A key that this transport, these classes or this kind of queue make nothing of."""
    chosen = member.scenario.queue
    if name in MARKS and not (member.model.transport.signals or member.model.balancer):
        kind = member.scenario.transport.kind
        raise refuse("key", f"{entry.key} has no effect: the transport ({kind}) does not react to marks; tune "
                     "queue.buffer, or take a transport that does (nscc)")  # fmt: skip
    if chosen.classes and name not in SHRINKS:
        text = f"{entry.key} is not tuned where traffic has classes, each with queues of its own"
        raise refuse("key", f"{text}; leave out queue.classes, or tune another key")
    if not hasattr(chosen, "buffer") and (name == "buffer" or (name == "ecn_high" and entry.high is None)):
        do = "tune links.capacity instead" if name == "buffer" else "give high, like high: 1 BDP"
        raise refuse("key", f"a port has no buffer of its own under queue: {{kind: {chosen.kind}}}; {do}")


def _ports(entry: Tuned, name: str, member: Member, now: Float, refuse: Refuse) -> Int:
    """[L], or [C L], the group of each port that has such a level, -1 for all others."""
    fabric, chosen = member.net.fabric, member.scenario.queue
    ways = ("tier", "link", "all") if name == "buffer" else ("all", "tier", "link")
    per = own(entry, ("class",) if chosen.classes else ways, refuse)
    silent = (name in MARKS) & (not chosen.ecn_last_hop) & (fabric.dst < fabric.hosts)
    switch = fabric.dst if name in INGRESS else fabric.src
    ports = np.flatnonzero((switch >= fabric.hosts) & (fabric.capacity > 0) & ~silent)
    return _by_class(member, ports, now, refuse) if per == "class" else grouped(per, member, ports, directed=True)


def _part(name: str, member: Member) -> Float:
    """The part of the level of a healthy port that each has by the speed of its link."""
    fabric = member.net.fabric
    return np.tile(fabric.speed, queues_a_port(member.scenario)) if name in SHRINKS else np.ones(fabric.links)


def _bounds(
    entry: Tuned, name: str, member: Member, given: Sequence[str], group: Int, now: Float, refuse: Refuse
) -> tuple[float | Float, float | Float | None]:
    """Smallest and largest level, as given, else as the other threshold, a packet, or a hundredth leave."""
    low, high = map(_reader(entry, name, member, refuse), ("low", "high"))
    least: float | Float = member.scenario.packet.mtu
    most: float | Float | None = None
    if name in MARKS:
        least, most = _apart(name, member, group, both=set(given) >= {f"queue.{key}" for key in MARKS})
    elif name not in SHRINKS:
        least = 0.01 * start_levels(group, now, _part(name, member))
    return least if low is None else low, most if high is None else high


def _reader(entry: Tuned, name: str, member: Member, refuse: Refuse) -> Callable[[str], float | None]:
    """From low, high or total to what is given there."""
    key = next(key for key in keys_of(type(member.scenario.queue)) if key.name == name)
    parse = reader(key, member.net.baseline.bdp)
    return lambda side: bound(parse, entry, side, refuse)


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
    speed = _part(name, member)
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
