"""Keys that are each right and together are not: checked before anything is built."""

from __future__ import annotations

from collections.abc import Iterator

from fabsim.scenario.fabric_faults import Fault, fabric_faults, host_count, site_hosts
from fabsim.scenario.keys.balancer import Mrc, Oblivious
from fabsim.scenario.keys.direct import Dragonfly, GraphMl
from fabsim.scenario.keys.fabric import HtsimTopology
from fabsim.scenario.keys.queue import Pfc, Shared
from fabsim.scenario.keys.routing import ENTROPIES, Drawn, Ecmp, Explicit, SwitchSpray, Valiant
from fabsim.scenario.keys.traffic import AllToAll, Incast, ListedFlows, OneFlow, Permutation, Ring, Shift
from fabsim.scenario.keys.transport import Ideal, Mixed, Window
from fabsim.scenario.schema import Sections
from fabsim.scenario.source import KeyPath
from fabsim.units import Amount, show_time, shown


def contradictions(scenario: Sections) -> list[Fault]:
    """Paths and sentences of everything that contradicts something else."""
    rules = (_packet, _fabric, _routing, _balancer, _queue, _classes, _transport, _faults, _packets)
    faults = [fault for rule in rules for fault in rule(scenario)]
    hosts = host_count(scenario)
    if hosts is not None and not faults:
        faults += traffic_faults(scenario, hosts)
    return faults


def traffic_faults(scenario: Sections, hosts: int) -> list[Fault]:
    """What cannot be sent on a fabric of so many hosts."""
    faults: list[Fault] = []
    if hosts < 2:
        return [(("fabric",), f"a fabric of {hosts} host has nobody to send to; give at least 2")]
    for number, entry in enumerate(scenario.traffic):
        where: KeyPath = ("traffic", number)
        if isinstance(entry, Shift) and entry.by % hosts == 0:
            text = f"a shift by {entry.by} on {hosts} hosts sends every flow to itself; give 1 to {hosts - 1}"
            faults.append(((*where, "by"), text))
        elif isinstance(entry, Permutation) and entry.across:
            faults += [((*where, "across"), text) for text in _across(site_hosts(scenario))]
        elif isinstance(entry, Incast):
            faults += [((*where, *path), text) for path, text in _incast(entry, hosts)]
            faults += [((*where, "far"), text) for text in _far(entry, site_hosts(scenario))]
        elif isinstance(entry, AllToAll):
            faults += [((*where, *path), text) for path, text in _all_to_all(entry, hosts)]
        elif isinstance(entry, ListedFlows):
            faults += [((*where, *path), text) for path, text in _listed(entry, hosts)]
        elif isinstance(entry, Ring):
            faults += [((*where, *path), text) for path, text in _ring(entry, hosts)]
    return faults


def _packet(scenario: Sections) -> Iterator[Fault]:
    packet = scenario.packet
    if packet.header >= packet.mtu:
        text = f"a packet of {packet.mtu:g} B has no room beside a header of {packet.header:g} B; give a larger mtu"
        yield ("packet", "header"), text
    if packet.trim > packet.mtu:
        yield ("packet", "trim"), f"more than the whole packet of {packet.mtu:g} B, given {packet.trim:g} B; give 64 B"


def _fabric(scenario: Sections) -> Iterator[Fault]:
    yield from fabric_faults(scenario)
    if not isinstance(scenario.fabric, HtsimTopology):
        for number, change in enumerate(scenario.fabric.degraded):
            if not change.model_dump(exclude={"link", "count"}, exclude_none=True):
                text = f"{shown(change.link)} is listed, but nothing changes; give speed, rate, latency, buffer or loss"
                yield ("fabric", "degraded", number), text


def _routing(scenario: Sections) -> Iterator[Fault]:
    """Valiant paths need groups, and as many others as are asked for."""
    routing, fabric = scenario.routing, scenario.fabric
    if not isinstance(routing, Valiant) or isinstance(fabric, GraphMl):
        return
    if not isinstance(fabric, Dragonfly):
        text = f"valiant paths go through groups, which a {fabric.kind} does not have; give a dragonfly, or kind: drawn"
        yield ("routing", "kind"), text
    elif fabric.groups < 3:
        text = f"valiant paths need a third group, the fabric has {fabric.groups}; give kind: all, or more groups"
        yield ("routing", "kind"), text
    elif routing.groups is not None and routing.groups > fabric.groups - 2:
        text = (
            f"two groups have {fabric.groups - 2} others between them, given {routing.groups}; give no more than these"
        )
        yield ("routing", "groups"), text


def _balancer(scenario: Sections) -> Iterator[Fault]:
    """A sender that chooses needs several paths, and switches that leave the choice to it."""
    kind = scenario.balancer.kind
    if isinstance(scenario.balancer, Oblivious):
        return
    if isinstance(scenario.balancer, Mrc):
        yield from _mrc(scenario, scenario.balancer)
    if isinstance(scenario.routing, Ecmp | Explicit):
        text = f"{kind} moves bytes between paths, and routing: {{kind: {scenario.routing.kind}}} has one a flow"
        yield ("balancer", "kind"), f"{text}; give routing: {{kind: drawn}}"
    elif isinstance(scenario.routing, SwitchSpray):
        text = f"{kind} chooses paths, and under routing: {{kind: switch_spray}} the switches choose"
        yield ("balancer", "kind"), f"{text}; give routing: {{kind: drawn}}"


def _mrc(scenario: Sections, mrc: Mrc) -> Iterator[Fault]:
    """What MRC has in a way of its own: values, and the time after which a loss is missed."""
    routing = scenario.routing
    drawn = routing.entropies if isinstance(routing, Drawn) else ENTROPIES
    values = drawn if mrc.entropies is None else mrc.entropies
    if mrc.min_active > values:
        text = f"more values than the {values:g} that are active are never retired: {mrc.min_active:g}"
        text += f"; give at most {values:g}, or more entropies"
        yield ("balancer", "min_active"), text
    if scenario.recovery.timeout != "auto":
        given = show_time(scenario.recovery.timeout)
        text = f"mrc misses a loss by its own detection time, given {given}; give balancer.detect instead"
        yield ("recovery", "timeout"), text


def _queue(scenario: Sections) -> Iterator[Fault]:
    low, high, buffer = scenario.queue.ecn_low, scenario.queue.ecn_high, getattr(scenario.queue, "buffer", None)
    if isinstance(low, Amount) and isinstance(high, Amount) and _above(low, high):
        yield ("queue", "ecn_low"), f"above ecn_high ({high}), given {low}; give at most {high}"
    if isinstance(buffer, Amount) and buffer.value == 0:
        yield ("queue", "buffer"), "a port without a buffer passes nothing, given 0; write it like 1 BDP"


def _classes(scenario: Sections) -> Iterator[Fault]:
    """Classes by name: each once, and none that is not there."""
    queue, names = scenario.queue, [own.name for own in scenario.queue.classes]
    if queue.classes and queue.links:
        yield ("queue", "links"), "each class has thresholds of its own, for all ports; leave links or classes out"
    for number, own in enumerate(queue.classes):
        where: KeyPath = ("queue", "classes", number)
        if own.name in names[:number]:
            yield (*where, "name"), f"a second class {shown(own.name)}; give each a name of its own"
        if own.buffer != "auto" and isinstance(queue, Pfc | Shared):
            text = f"ports have no buffers of their own under kind: {queue.kind}; leave it out"
            yield (*where, "buffer"), text
        elif isinstance(own.buffer, Amount) and own.buffer.value == 0:
            yield (*where, "buffer"), "a queue without a buffer passes nothing, given 0; write it like 1 BDP"
        if isinstance(own.ecn_low, Amount) and isinstance(own.ecn_high, Amount) and _above(own.ecn_low, own.ecn_high):
            yield (*where, "ecn_low"), f"above ecn_high ({own.ecn_high}), given {own.ecn_low}; give at most that"
    levels = [own.priority for own in queue.classes]
    if isinstance(scenario.transport, Ideal) and len(set(levels)) < len(levels):
        text = "knows what classes leave each other by priority, not by weight; give each class a priority of its own"
        yield ("transport", "kind"), text
    for number, entry in enumerate(scenario.traffic):
        name = getattr(entry, "class")
        if name is not None and name not in names:
            there = f"the classes are {', '.join(names)}" if names else "queue.classes declares none"
            yield ("traffic", number, "class"), f"there is no class {shown(name)}; {there}"


def _transport(scenario: Sections) -> Iterator[Fault]:
    """A window, and a law for each entry of the traffic."""
    transport = scenario.transport
    if isinstance(transport, Window) and transport.window.value == 0:
        yield ("transport", "window"), "a window of 0 never sends, given 0; write it like 1.5 BDP"
    if isinstance(transport, Mixed) and len(transport.laws) != len(scenario.traffic):
        text = f"`traffic` has {len(scenario.traffic)} entries, given {len(transport.laws)} laws; give one for each"
        yield ("transport", "laws"), text


def _faults(scenario: Sections) -> Iterator[Fault]:
    """Events that do nothing, end before they begin, or never let go."""
    for number, event in enumerate(scenario.faults):
        if event.speed is None and event.loss is None and event.flap is None:
            yield (
                ("faults", number),
                f"{shown(event.link)} is listed, but nothing happens; give speed, loss or flap",
            )
        if event.until is not None and event.until <= event.at:
            text = f"not after it begins at {show_time(event.at)}, given {show_time(event.until)}; give a later time"
            yield ("faults", number, "until"), text
        if event.flap is not None and event.flap.down >= event.flap.every:
            every, down = show_time(event.flap.every), show_time(event.flap.down)
            yield (
                ("faults", number, "flap", "down"),
                f"it never is up, down for {down} of each {every}; give less than {every}",
            )


def _above(one: Amount, other: Amount) -> bool:
    """Known already to be more; amounts of two kinds are compared once the fabric is built."""
    return one.relative == other.relative and one.value > other.value


def _packets(scenario: Sections) -> Iterator[Fault]:
    names = list(scenario.cases) or [scenario.name]
    for case in scenario.packets:
        if case not in names:
            yield ("packets", case), f"there is no case {case!r}; the cases are {', '.join(map(repr, names))}"


def _across(sites: list[int]) -> Iterator[str]:
    """A permutation between sites needs several, and none with more hosts than all others."""
    if not sites:
        yield "there is one site; give fabric: {kind: sites}, or leave it out"
    elif 2 * max(sites) > sum(sites):
        yield f"a site has {max(sites)} of {sum(sites)} hosts, more than all others, and they cannot all send away"


def _far(entry: Incast, sites: list[int]) -> Iterator[str]:
    """Far senders need several sites, and as many hosts there."""
    if entry.far is None:
        return
    if not sites:
        yield "there is one site; give fabric: {kind: sites}, or leave it out"
    elif not isinstance(entry.senders, int):
        yield "the senders are listed, near and far ones; give their number, or leave it out"
    elif entry.far > entry.senders:
        yield f"more than all senders, given {entry.far}; give at most {entry.senders}"
    elif entry.receiver < sum(sites):
        own = next(count for i, count in enumerate(sites) if entry.receiver < sum(sites[: i + 1]))
        if entry.far > sum(sites) - own:
            yield f"the other sites have {sum(sites) - own} hosts, given {entry.far}; give at most as many"
        elif entry.senders - entry.far > own - 1:
            yield f"leaves {entry.senders - entry.far} for the receiver's site, where {own - 1} others are; give more"


def _incast(entry: Incast, hosts: int) -> Iterator[Fault]:
    if entry.receiver >= hosts:
        yield ("receiver",), f"there is no host {entry.receiver}; hosts are 0 to {hosts - 1}"
    if isinstance(entry.senders, int):
        if entry.senders > hosts - 1:
            yield ("senders",), f"more senders than other hosts, given {entry.senders}; give at most {hosts - 1}"
        return
    for sender in entry.senders:
        if sender >= hosts:
            yield ("senders",), f"there is no host {sender}; hosts are 0 to {hosts - 1}"
        if sender == entry.receiver:
            yield ("senders",), f"host {sender} would send to itself; leave the receiver out"


def _all_to_all(entry: AllToAll, hosts: int) -> Iterator[Fault]:
    if isinstance(entry.hosts, int):
        if not 2 <= entry.hosts <= hosts:
            yield ("hosts",), f"an all-to-all here has 2 to {hosts} hosts, given {entry.hosts}"
    elif entry.hosts is not None:
        yield from _group(entry.hosts, hosts, ("hosts",), "an all-to-all")


def _listed(entry: ListedFlows, hosts: int) -> Iterator[Fault]:
    if (entry.file is None) == (entry.list is None):
        yield (), "give either a file or a list of flows, like list: [{src: 0, dst: 17, size: 2 MB}]"
        return
    flows = entry.list or ()
    if entry.list is not None and not flows:
        yield ("list",), "must not be empty, given []; write it like [{src: 0, dst: 17, size: 2 MB}]"
    for number, flow in enumerate(flows):
        for key, host in (("src", flow.src), ("dst", flow.dst)):
            if host >= hosts:
                yield ("list", number, key), f"there is no host {host}; hosts are 0 to {hosts - 1}"
        if flow.src == flow.dst:
            yield ("list", number), f"host {flow.src} would send to itself; give another dst"
        if flow.after and flow.start:
            yield ("list", number, "start"), "a flow that waits for others has no start of its own; give delay"
    yield from _waiting(flows)


def _waiting(flows: tuple[OneFlow, ...]) -> Iterator[Fault]:
    """Flows that wait for what is not there, for themselves, or for each other in a circle and so for ever."""
    names = {flow.name: number for number, flow in enumerate(flows) if flow.name is not None}
    waiting: dict[int, set[int]] = {}
    wrong = False
    for number, flow in enumerate(flows):
        others = [names.get(other, -1) if isinstance(other, str) else other for other in flow.after]
        for given, other in zip(flow.after, others, strict=True):
            if not 0 <= other < len(flows) or other == number:
                what = "itself" if other == number else f"flow {given!r}, which is not there"
                yield ("list", number, "after"), f"waits for {what}; flows count from 0 to {len(flows) - 1}"
                wrong = True
        waiting[number] = set(others)
    while not wrong and (ready := [number for number, others in waiting.items() if not others]):
        for number in ready:
            del waiting[number]
        for others in waiting.values():
            others.difference_update(ready)
    if waiting and not wrong:
        text = f"flows {sorted(waiting)} wait for each other for ever; let one start by itself"
        yield ("list", min(waiting), "after"), text


def _ring(entry: Ring, hosts: int) -> Iterator[Fault]:
    if (entry.ranks is None) == (entry.groups is None):
        yield (), "give either ranks or groups of hosts, like ranks: 16"
        return
    if entry.ranks is not None and not 2 <= entry.ranks <= hosts:
        yield ("ranks",), f"a ring here has 2 to {hosts} ranks, given {entry.ranks}"
    for number, group in enumerate(entry.groups or ()):
        yield from _group(group, hosts, ("groups", number), "a ring")


def _group(group: tuple[int, ...], hosts: int, path: KeyPath, what: str) -> Iterator[Fault]:
    """A list of hosts that take part in something together."""
    if len(group) < 2 or len(set(group)) < len(group):
        yield path, f"{what} needs 2 or more different hosts, given {list(group)}"
    missing = [host for host in group if host >= hosts]
    if missing:
        yield path, f"there is no host {missing[0]}; hosts are 0 to {hosts - 1}"
