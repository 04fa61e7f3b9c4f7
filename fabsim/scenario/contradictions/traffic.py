"""Traffic that cannot be sent on a fabric of so many hosts."""

from __future__ import annotations

from collections.abc import Iterator

from fabsim.scenario.keys.counts import site_hosts
from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.keys.traffic import AllToAll, Incast, ListedFlows, OneFlow, Permutation, Ring, Shift
from fabsim.scenario.text.source import Fault, KeyPath


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
    if entry.ranks is not None and entry.groups is not None:
        yield ("ranks",), f"groups say this already, given {entry.ranks}; give one of them, or neither: one ring of all"
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
