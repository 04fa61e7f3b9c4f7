"""Queues and classes of traffic that contradict themselves, or each other."""

from __future__ import annotations

from collections.abc import Iterator

from fabsim.scenario.keys.queue import Pfc, Shared, said_of_links
from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.keys.transport import Ideal
from fabsim.scenario.text.source import Fault, KeyPath
from fabsim.units import Amount, shown


def queue(scenario: Sections) -> Iterator[Fault]:
    """Thresholds that cross, and ports that hold nothing."""
    low, high, buffer = scenario.queue.ecn_low, scenario.queue.ecn_high, getattr(scenario.queue, "buffer", None)
    if isinstance(low, Amount) and isinstance(high, Amount) and _above(low, high):
        yield ("queue", "ecn_low"), f"above ecn_high ({high}), given {low}; give at most {high}"
    memory = getattr(scenario.queue, "memory", None)
    if isinstance(memory, Amount) and memory.value == 0:
        yield ("queue", "memory"), "a switch without memory passes nothing, given 0; write it like 16 MB"
    for number, entry in enumerate(scenario.queue.links):
        said = said_of_links(scenario.queue)
        if all(getattr(entry, key) is None for key in said):
            text = f"{shown(entry.link)} is listed, but nothing changes; give {', '.join(said[:-1])} or {said[-1]}"
            yield ("queue", "links", number), text
    if isinstance(buffer, Amount) and buffer.value == 0:
        yield ("queue", "buffer"), "a port without a buffer passes nothing, given 0; write it like 1 BDP"


def classes(scenario: Sections) -> Iterator[Fault]:
    """Classes by name: each once, and none that is not there."""
    chosen, names = scenario.queue, [own.name for own in scenario.queue.classes]
    if chosen.classes and chosen.links:
        yield ("queue", "links"), "each class has thresholds of its own, for all ports; leave links or classes out"
    for number, own in enumerate(chosen.classes):
        where: KeyPath = ("queue", "classes", number)
        if own.name in names[:number]:
            yield (*where, "name"), f"a second class {shown(own.name)}; give each a name of its own"
        if own.buffer != "auto" and isinstance(chosen, Pfc | Shared):
            text = f"ports have no buffers of their own under kind: {chosen.kind}; leave it out"
            yield (*where, "buffer"), text
        elif isinstance(own.buffer, Amount) and own.buffer.value == 0:
            yield (*where, "buffer"), "a queue without a buffer passes nothing, given 0; write it like 1 BDP"
        if isinstance(own.ecn_low, Amount) and isinstance(own.ecn_high, Amount) and _above(own.ecn_low, own.ecn_high):
            yield (*where, "ecn_low"), f"above ecn_high ({own.ecn_high}), given {own.ecn_low}; give at most that"
    levels = [own.priority for own in chosen.classes]
    if isinstance(scenario.transport, Ideal) and len(set(levels)) < len(levels):
        text = "knows what classes leave each other by priority, not by weight; give each class a priority of its own"
        yield ("transport", "kind"), text
    for number, entry in enumerate(scenario.traffic):
        name = getattr(entry, "class")
        if name is not None and name not in names:
            there = f"the classes are {', '.join(names)}" if names else "queue.classes declares none"
            yield ("traffic", number, "class"), f"there is no class {shown(name)}; {there}"


def _above(one: Amount, other: Amount) -> bool:
    """Known already to be more; amounts of two kinds are compared once the fabric is built."""
    return one.relative == other.relative and one.value > other.value
