"""htsim connection matrices (.cm): flows, and triggers that start flows when others end.

Grammar: `Nodes N`, `Connections C` and, where there are any, `Triggers T`; then
`src->dst [id n] (start t | trigger tid) size bytes [send_done_trigger tid] [recv_done_trigger tid]` and
`trigger id tid (oneshot | multishot | barrier count k)`, one a line; `#` begins a comment line.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fabsim.errors import InputError, InputWarning
from fabsim.formats.text import read_text, real, whole
from fabsim.typing import Int
from fabsim.workload.assemble import assemble
from fabsim.workload.flows import Flows

UNITS = {"us": 1e-6, "ps": 1e-12}


@dataclass(frozen=True)
class Matrix:
    """What a .cm file says.

    Attributes:
        flows: the flows, in the order of the file.
        ids: [F] their ids; the place in the file, from 1, where none is given.
        nodes: number of hosts that the file is made for.
    """

    flows: Flows
    ids: Int
    nodes: int


@dataclass
class Entry:
    """One connection line. Triggers are ids of the file, None where there is none."""

    place: str
    src: int
    dst: int
    id: int | None = None
    start: float | None = None
    trigger: int | None = None
    size: int = 0
    send_done: int | None = None
    recv_done: int | None = None


@dataclass
class Parsed:
    """Lines of the file, read."""

    head: dict[str, tuple[int, str]] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    triggers: dict[int, tuple[str, int]] = field(default_factory=dict)  # id -> (kind, count)


def read_matrix(path: str | Path, *, start_unit: str, hosts: int | None = None) -> Matrix:
    """Flows of a .cm file; `start_unit` is "us" or "ps": programs that read such files do not agree on it.

    `hosts`: number of hosts of the fabric, against which the file is checked; None: its own `Nodes` (which in files for
    two sites counts the hosts of one). send_done_trigger fires when the sender
    has the last acknowledgement, recv_done_trigger when the receiver has the last byte. Unknown words warn with their
    line. Raises InputError (file:line) for anything else that does not fit; also for flows without an end (size 0 or
    none), failures (these belong to the fabric), and triggers that would leave a flow waiting for ever.
    """
    if start_unit not in UNITS:
        raise InputError(f'{path}: start_unit: "{start_unit}" given, must be "us" or "ps"')
    parsed = _parse(path)
    nodes = _check_head(path, parsed, hosts)
    for entry in parsed.entries:
        _check_entry(entry, parsed, nodes if hosts is None else hosts)
    number: dict[int | None, int] = {trigger: index for index, trigger in enumerate(parsed.triggers)}
    entries = parsed.entries
    fires = [entry.recv_done if entry.send_done is None else entry.send_done for entry in entries]
    flows = assemble(
        [entry.src for entry in entries],
        [entry.dst for entry in entries],
        [entry.size for entry in entries],
        start=[(entry.start or 0.0) * UNITS[start_unit] for entry in entries],
        trigger=[number.get(entry.trigger, -1) for entry in entries],
        need=_needs(parsed, Counter(fires)),
        fires=[number.get(trigger, -1) for trigger in fires],
        fires_at_sender=[entry.send_done is not None for entry in entries],
    )
    ids = [index if entry.id is None else entry.id for index, entry in enumerate(entries, start=1)]
    if len(set(ids)) < len(ids):
        twice = next(flow_id for flow_id, count in Counter(ids).items() if count > 1)
        raise InputError(f"{entries[len(ids) - 1 - ids[::-1].index(twice)].place}: id: {twice} comes twice")
    return Matrix(flows, np.array(ids, dtype=np.int64), nodes)


def _parse(path: str | Path) -> Parsed:
    """All lines of the file."""
    parsed = Parsed()
    for line, text in enumerate(read_text(path).splitlines(), start=1):
        words, place = text.split(), f"{path}:{line}"
        if not words or words[0].startswith("#"):
            continue
        key = words[0].lower()
        if key in ("nodes", "connections", "triggers", "failures"):
            if key in parsed.head:
                raise InputError(f"{place}: {words[0]} comes twice, first at {parsed.head[key][1]}")
            parsed.head[key] = whole(_after(words, 0, place), words[0], place), place
        elif "->" in words[0]:
            parsed.entries.append(_connection(words, place))
        elif key == "trigger":
            _trigger(words, place, parsed)
        elif key == "failure":
            raise InputError(f"{place}: failures in a matrix are not read: say under fabric which links are degraded")
        else:
            warnings.warn(f"{place}: {words[0]}: unknown keyword, line not used", InputWarning, stacklevel=4)
    return parsed


def _connection(words: Sequence[str], place: str) -> Entry:
    """A line `src->dst ...`."""
    src, dst = words[0].split("->", 1)
    entry = Entry(place, whole(src, "source", place), whole(dst, "destination", place))
    at = 1
    while at < len(words):
        key = words[at].lower()
        if key == "start":
            entry.start = real(_after(words, at, place), key, place)
        elif key in ("id", "trigger", "size"):
            setattr(entry, key, whole(_after(words, at, place), key, place, least=0 if key == "size" else 1))
        elif key in ("send_done_trigger", "recv_done_trigger"):
            setattr(entry, key.removesuffix("_trigger"), whole(_after(words, at, place), key, place, least=1))
        else:
            warnings.warn(f"{place}: {words[at]}: not used", InputWarning, stacklevel=5)
            bare = at + 1 < len(words) and words[at + 1].lstrip("-").isdigit()
            at += 2 if bare else 1
            continue
        at += 2
    return entry


def _trigger(words: Sequence[str], place: str, parsed: Parsed) -> None:
    """A line `trigger id n kind`."""
    if len(words) < 4 or words[1].lower() != "id":
        raise InputError(f"{place}: trigger: `trigger id n oneshot`, `multishot` or `barrier count k` is needed")
    number, kind = whole(words[2], "trigger id", place, least=1), words[3].lower()
    if number in parsed.triggers:
        raise InputError(f"{place}: trigger {number} comes twice")
    if kind not in ("oneshot", "multishot", "barrier"):
        raise InputError(f"{place}: trigger {number}: {words[3]!r} given, must be oneshot, multishot or barrier")
    count = 1
    if kind == "barrier":
        if len(words) < 6 or words[4].lower() != "count":
            raise InputError(f"{place}: trigger {number}: `barrier count k` is needed")
        count = whole(words[5], "count", place, least=1)
    parsed.triggers[number] = kind, count


def _after(words: Sequence[str], at: int, place: str) -> str:
    """The word after a keyword."""
    if at + 1 >= len(words):
        raise InputError(f"{place}: {words[at]}: a value must follow")
    return words[at + 1]


def _check_head(path: str | Path, parsed: Parsed, hosts: int | None) -> int:
    """Counts of the head must match what follows; gives the number of nodes."""
    for key, count in (("nodes", None), ("connections", len(parsed.entries)), ("triggers", len(parsed.triggers))):
        given, place = parsed.head.get(key, (0 if key == "triggers" else None, str(path)))
        if given is None:
            raise InputError(f"{path}: {key.title()} is missing")
        if count is not None and given != count:
            raise InputError(f"{place}: {key.title()}: {given} given, but there are {count} in the file")
    if parsed.head.get("failures", (0, ""))[0]:
        place = parsed.head["failures"][1]
        raise InputError(f"{place}: failures in a matrix are not read: say under fabric which links are degraded")
    nodes, place = parsed.head["nodes"]
    if hosts is not None and nodes > hosts:
        raise InputError(f"{place}: Nodes: {nodes} given, but the fabric has {hosts} hosts")
    return nodes


def _check_entry(entry: Entry, parsed: Parsed, hosts: int) -> None:
    """Hosts, size, start and triggers of one connection."""
    place = entry.place
    for host in (entry.src, entry.dst):
        if host >= hosts:
            raise InputError(f"{place}: there is no host {host}: hosts are 0 to {hosts - 1}")
    if entry.src == entry.dst:
        raise InputError(f"{place}: a flow goes from host {entry.src} to itself: give two different hosts")
    if not entry.size:
        raise InputError(f"{place}: size: none or 0 is a flow without an end here: give its bytes")
    if (entry.start is None) == (entry.trigger is None):
        raise InputError(f"{place}: either start or trigger is needed" + (", not both" if entry.trigger else ""))
    if entry.send_done is not None and entry.recv_done is not None:
        raise InputError(f"{place}: send_done_trigger and recv_done_trigger on one flow: give one of them")
    for trigger in (entry.trigger, entry.send_done, entry.recv_done):
        if trigger is not None and trigger not in parsed.triggers:
            raise InputError(f"{place}: trigger {trigger} is not in the file: add `trigger id {trigger} oneshot`")


def _needs(parsed: Parsed, activations: Counter[int | None]) -> list[int]:
    """Activations that each flow waits for: 1 (oneshot), count (barrier), its place in the queue (multishot)."""
    queue: Counter[int] = Counter()
    needs = []
    for entry in parsed.entries:
        if entry.trigger is None:
            needs.append(0)
            continue
        kind, count = parsed.triggers[entry.trigger]
        queue[entry.trigger] += 1
        needs.append(queue[entry.trigger] if kind == "multishot" else count)
        if needs[-1] > activations[entry.trigger]:
            raise InputError(
                f"{entry.place}: waits for activation {needs[-1]} of trigger {entry.trigger}, which "
                f"{activations[entry.trigger]} flow(s) activate: it would never start"
            )
    return needs
