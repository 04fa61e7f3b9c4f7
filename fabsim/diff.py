"""Two runs side by side: completions, totals, the flows and links that differ most, and the keys that differ."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from ruamel.yaml import YAML

from fabsim.errors import InputError
from fabsim.results import Result
from fabsim.tables import FIVE, align, five, in_switches, size
from fabsim.units import shown

Pair = tuple[Result, Result]
Row = list[str]


def pairs(mine: Sequence[Result], theirs: Sequence[Result], names: tuple[str, str], cases: Sequence[str]) -> list[Pair]:
    """Which runs of two files belong together.

    Args:
        mine, theirs: the runs of each file.
        names: of the files.
        cases: none: cases of equal names, or the only run of each file; one: the case of that name in both; two: the
            first of the one file and the second of the other.

    Raises:
        InputError: nothing belongs together.
    """
    here, there = ({result.name: result for result in file} for file in (mine, theirs))
    if cases:
        first, second = cases[0], cases[-1]
        for wanted, file, name in ((first, here, names[0]), (second, there, names[1])):
            if wanted not in file:
                raise InputError(f"--case {wanted}: there is no such case in {name}; use {', '.join(file)}")
        return [(here[first], there[second])]
    if len(here) == len(there) == 1:
        return [(mine[0], theirs[0])]
    common = [name for name in here if name in there]
    if not common:
        text = f"{names[0]} has the cases {', '.join(here)}, {names[1]} has {', '.join(there)}"
        raise InputError(f"{text}; they cannot be compared by name: give --case A --case B, one of each")
    return [(here[name], there[name]) for name in common]


def diff(one: Result, other: Result, flows: int = 10, links: int = 10) -> str:
    """All that differs between two runs; differences are those of the second against the first."""
    title = f"A: {one.name}\nB: {other.name}"
    return "\n\n".join(
        [title, _completions(one, other), _totals(one, other)]
        + ([_flows(one, other, flows)] if flows else [])
        + ([_links(one, other, links)] if links else [])
        + [_keys(one, other)]
    )


def _completions(one: Result, other: Result) -> str:
    """Of two ensembles the medians; else of the runs that the files have in full."""
    medians = one.ensemble is not None and other.ensemble is not None
    header = ["median completion (us)" if medians else "completion (us)", "A", "B", "difference"]
    names = ["min", "mean", "p50", "p99", "max", "last"]
    values = zip(names, _figures(one, medians), _figures(other, medians), strict=True)
    rows = [[name, _microseconds(a), _microseconds(b), _percent(a, b)] for name, a, b in values]
    left = [int((~np.isfinite(result.completion)).sum()) for result in (one, other)]
    if any(left):
        rows.append(["unfinished", *map(str, left)])
    return align([header, *rows])


def _figures(result: Result, medians: bool) -> list[float]:
    if medians and result.ensemble is not None:
        return [result.ensemble.spread(name)[1] for name in (*FIVE, "last_completion")]
    return [*five(result.duration), result.last]


def _totals(one: Result, other: Result) -> str:
    header = ["total", "A", "B", "difference"]
    rows: list[Row] = [["flows", str(len(one.size)), str(len(other.size))]]
    for name, figure in {
        "payload": lambda result: result.size.sum(),
        "sent": lambda result: result.sent.sum(),
        "sent again": lambda result: result.retransmitted.sum(),
        "dropped": lambda result: result.dropped.sum(),
        "marked": lambda result: result.marked.sum(),
        "largest queue": lambda result: in_switches(result).max(initial=0.0),
    }.items():
        a, b = float(figure(one)), float(figure(other))
        rows.append([name, size(a), size(b), _percent(a, b)])
    return align([header, *rows])


def _flows(one: Result, other: Result, count: int) -> str:
    """The flows whose completion times differ most; those of the same source, destination and number are the same."""
    places = {key: place for place, key in enumerate(_flow_names(other))}
    both = [(place, places[key], key) for place, key in enumerate(_flow_names(one)) if key in places]
    if not both:
        return "flows: none is in both (the same are those of equal source, destination and number among such)"
    here = one.duration[[pair[0] for pair in both]]
    there = other.duration[[pair[1] for pair in both]]
    ended = np.isfinite(here) & np.isfinite(there)
    apart = np.where(here == there, 0.0, np.inf)  # one ended and the other did not: nothing differs more
    apart[ended] = np.abs(there[ended] - here[ended])
    rows = []
    for n in np.argsort(-apart, kind="stable")[:count].tolist():
        if apart[n] > 0:
            a, b = float(here[n]), float(there[n])
            payload = size(float(one.size[both[n][0]]))
            rows.append([_flow_name(*both[n][2]), payload, _microseconds(a), _microseconds(b), _percent(a, b)])
    text = f"flows: {len(both)} are in both, of {len(one.size)} in A and {len(other.size)} in B"
    if not rows:
        return f"{text}; none differs"
    header = ["flow", "size", "A", "B", "difference"]
    return "\n".join([f"{text}; completion (us) differs most for", align([header, *rows])])


def _links(one: Result, other: Result, count: int) -> str:
    """The links whose bytes and largest queues differ most, by name. Both are bytes, and so is their sum: what a link
    carries more counts for more than a buffer that fills, and where nothing goes another way queues decide."""
    places = {name: place for place, name in enumerate(other.link.tolist())}
    both = [(place, places[name]) for place, name in enumerate(one.link.tolist()) if name in places]
    if not both:
        return "links: none is in both; the fabrics have no name in common"
    mine, theirs = np.array(both).T
    sent = np.abs(other.sent[theirs] - one.sent[mine])
    queue = np.abs(in_switches(other)[theirs] - in_switches(one)[mine])
    rows = [
        [
            one.link[mine[n]],
            *(f"{100 * value:.1f} %" for value in (one.utilisation[mine[n]], other.utilisation[theirs[n]])),
            *(size(float(value)) for value in (one.sent[mine[n]], other.sent[theirs[n]])),
            *(size(float(value)) for value in (one.queue_peak[mine[n]], other.queue_peak[theirs[n]])),
        ]
        for n in np.argsort(-(sent + queue), kind="stable")[:count].tolist()
        if sent[n] > 0 or queue[n] > 0
    ]
    text = f"links: {len(both)} are in both, of {len(one.link)} in A and {len(other.link)} in B"
    if not rows:
        return f"{text}; none differs"
    header = ["link", "utilisation A", "B", "sent A", "B", "largest queue A", "B"]
    order = "the change of the bytes sent and that of the largest queue, added up"
    return "\n".join([f"{text}; these differ most, by {order}", align([header, *rows])])


def _keys(one: Result, other: Result) -> str:
    """Keys of the resolved scenarios whose values differ."""
    a, b = (dict(_flat(_read(result.scenario), "")) for result in (one, other))
    keys = [key for key in dict.fromkeys([*a, *b]) if a.get(key) != b.get(key) and key != "name"]
    if not keys:
        return "scenario: no key differs"
    rows = [[key, *(shown(side[key]).strip("'") if key in side else "-" for side in (a, b))] for key in keys]
    return align([["scenario", "A", "B"], *rows])


def _read(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(io.StringIO(text)) or {}


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Plain values by dotted key."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not items:
        yield path, value
        return
    for key, inner in items:
        yield from _flat(inner, f"{path}.{key}" if path else str(key))


def _flow_names(result: Result) -> list[tuple[int, int, int]]:
    """Source, destination, and the number among the flows between the two."""
    seen: Counter[tuple[int, int]] = Counter()
    names = []
    for src, dst in zip(result.src.tolist(), result.dst.tolist(), strict=True):
        names.append((src, dst, seen[src, dst]))
        seen[src, dst] += 1
    return names


def _flow_name(src: int, dst: int, number: int) -> str:
    return f"h{src} to h{dst}" + (f", number {number}" if number else "")


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}" if np.isfinite(seconds) else "unfinished"


def _percent(a: float, b: float) -> str:
    """The second against the first; a dash where that has no sense."""
    if a == b:
        return "0 %"
    return f"{100 * (b / a - 1):+.1f} %" if a > 0 and np.isfinite(a) and np.isfinite(b) else "-"
