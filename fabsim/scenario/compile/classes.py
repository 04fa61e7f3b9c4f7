"""From `queue.classes` to the queues of each class at each port, and to what they are shared by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import InputError
from fabsim.scenario.compile.ports import at_links
from fabsim.scenario.keys.classes import Tokens, TrafficClass
from fabsim.scenario.text.source import KeyPath
from fabsim.topology import Fabric, find_links
from fabsim.topology.baseline import Baseline, Queues, default_queues
from fabsim.typing import Int
from fabsim.units import Amount, show_rate, show_size

if TYPE_CHECKING:
    from fabsim.models.bucket import Bucket
    from fabsim.models.classes import Classes
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.text.document import Document

FREE = 1e15
"""Bytes, and bytes a second, of a bucket that holds nothing back."""


def traffic_class(scenario: Document, entry: Int) -> Int:
    """[F] class of each flow, by the entry of the traffic that it comes from; the last for those that name none."""
    names = [own.name for own in scenario.queue.classes]
    named = [getattr(one, "class") for one in scenario.traffic]
    numbers = [max(len(names) - 1, 0) if name is None else names.index(name) for name in named]
    return np.array(numbers)[entry]


def queues_a_port(scenario: Document) -> int:
    """One for each class of traffic."""
    return max(len(scenario.queue.classes), 1)


def class_queues(scenario: Document, fabric: Fabric, base: Baseline) -> Queues:
    """[C L] buffers and thresholds, class by class. Raises InputError for thresholds that cross."""
    queue = scenario.queue
    common = {name: getattr(queue, name, "auto") for name in ("buffer", "ecn_low", "ecn_high")}
    parts = []
    for number, own in enumerate(queue.classes):
        # Thresholds follow a buffer of the class's own, as they follow that of the port.
        instead = common if own.buffer == "auto" else dict.fromkeys(common, "auto")
        amounts = {name: getattr(own, name) for name in common}
        amounts = {name: instead[name] if given == "auto" else given for name, given in amounts.items()}
        parts.append(sized(scenario, fabric, base, ("queue", "classes", number), **amounts))
    return Queues(*(np.concatenate([getattr(part, name) for part in parts]) for name in common))


def sized(scenario: Document, fabric: Fabric, base: Baseline, where: KeyPath, **amounts: Amount | str) -> Queues:
    """[L] buffers and thresholds of one queue a port; one that is not given is derived. Raises InputError, with the
    place of the section, where a threshold is above the other."""
    bdp = base.at_ports(fabric)
    given = {name: x.bytes(bdp) if isinstance(x, Amount) else None for name, x in amounts.items()}
    queues = default_queues(fabric, bdp, scenario.packet.mtu, **given)
    low, high = (at_links(scenario, fabric, bdp, x, getattr(queues, x)) for x in ("ecn_low", "ecn_high"))
    queues = Queues(queues.buffer, low, high)
    wrong = np.flatnonzero((queues.ecn_low > queues.ecn_high) & (fabric.speed > 0))
    if len(wrong):
        low, high = (show_size(float(side[wrong[0]])) for side in (queues.ecn_low, queues.ecn_high))
        key = "ecn_low" if given["ecn_low"] is not None else "ecn_high"
        text = f"ecn_low would be {low}, above ecn_high at {high}; give a lower ecn_low or a higher ecn_high"
        raise InputError(scenario.source.sentence((*where, key), text))
    return queues


def classes_law(scenario: Document, net: Network, real: Any) -> Classes | None:
    """How the classes share a port; None where there are none."""
    declared = scenario.queue.classes
    if not declared:
        return None
    from fabsim.models.classes import Classes

    return Classes(
        weight=real([own.weight for own in declared]),
        priority=tuple(own.priority for own in declared),
        shape=_buckets(scenario, net, "shape", real),
        police=_buckets(scenario, net, "police", real),
    )


def _buckets(scenario: Document, net: Network, key: str, real: Any) -> Bucket | None:
    """The buckets [C L] of all classes that shape, or police; None where no class does."""
    from fabsim.models.bucket import Bucket

    given: list[Tokens | None] = [getattr(own, key) for own in scenario.queue.classes]
    if not any(given):
        return None
    rate = np.full((len(given), net.fabric.links), FREE)
    burst = rate.copy()
    for number, tokens in enumerate(given):
        if tokens is not None:
            stand = _where(scenario, net.fabric, tokens, ("queue", "classes", number, key))
            rate[number, stand] = tokens.rate
            burst[number, stand] = _burst(scenario, net, tokens, ("queue", "classes", number, key, "burst"))
    return Bucket(real(rate.reshape(-1)), real(burst.reshape(-1)))


def _burst(scenario: Document, net: Network, tokens: Tokens, path: KeyPath) -> float:
    """Bytes. Raises InputError for a bucket that no full packet would ever pass."""
    burst, mtu = tokens.burst.bytes(net.baseline.bdp), scenario.packet.mtu
    if burst < mtu:
        text = f"holds less than a packet of {show_size(mtu)}, which would never pass, given {show_size(burst)}"
        raise InputError(scenario.source.sentence(path, f"{text}; give more, like 1 MB"))
    return burst


def _where(scenario: Document, fabric: Fabric, tokens: Tokens, path: KeyPath) -> Int:
    """The links at whose tails buckets stand. Raises InputError for links that are not there, or not of switches."""
    links = np.arange(fabric.links)
    if tokens.links is not None:
        try:
            links = find_links(fabric, tokens.links)
        except InputError as error:
            lines = [scenario.source.sentence((*path, "links"), text) for text in error.sentences]
            raise InputError(lines) from None
    if path[-1] == "shape":
        return links
    links = links[fabric.src[links] >= fabric.hosts]
    if not len(links):
        text = f"{tokens.links} are links of senders, who cut nothing of their own; give shape, or links of switches"
        raise InputError(scenario.source.sentence((*path, "links"), text))
    return links


def class_lines(scenario: Document, net: Network) -> list[tuple[str, str]]:
    """What `fabsim check` says of each class."""
    flows = traffic_class(scenario, net.entry)
    return [
        ("class", f"{own.name}: {int((flows == number).sum())} flows, {_told(own, net.baseline.bdp)}")
        for number, own in enumerate(scenario.queue.classes)
    ]


def _told(own: TrafficClass, bdp: float) -> str:
    """Level, weight and buckets of a class."""
    parts = [f"priority {own.priority}, weight {own.weight:g}"]
    for what, tokens in (("shaped to", own.shape), ("policed at", own.police)):
        if tokens is not None:
            at = "" if tokens.links is None else f" at {tokens.links}"
            burst = show_size(tokens.burst.bytes(bdp))
            parts.append(f"{what} {show_rate(tokens.rate)} and a burst of {burst}{at}")
    return ", ".join(parts)
