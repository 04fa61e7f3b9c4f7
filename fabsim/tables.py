"""Results as text: tables to read. Tables to go on with stand in export.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fabsim.results import Ensemble, Result
from fabsim.typing import Float

Packets = Mapping[str, Float]
"""By case: completion times (s, from the start of a flow) that a packet-level simulator gave for the same flows."""

FIVE = ("completion_min", "completion_mean", "completion_p50", "completion_p99", "completion_max")
_TOTALS = ("again", "dropped", "marked", "queue_peak")
"""Figures of an ensemble that stand in the tables of one run."""


def show(results: Sequence[Result], packets: Packets | None = None, busiest: int = 10) -> str:
    """All there is to say about a result file on one screen or two."""
    parts = [summary(results, packets), *filter(None, [collectives(results)]), totals(results)]
    parts.append("\n".join(map(last_flow, results)))
    parts += [f"{result.name}: classes of traffic\n{by_class(result)}" for result in results if len(result.classes) > 1]
    parts += [
        f"{result.name}: entries of traffic\n{by_entry(result)}"
        for result in results
        if len(result.entries) > 1 and len(result.classes) == 1
    ]
    parts += [f"{result.name}: busiest links\n{busiest_links(result, busiest)}" for result in results]
    return "\n\n".join(parts)


def summary(results: Sequence[Result], packets: Packets | None = None) -> str:
    """Completion times of each case in microseconds; with packet-level figures, those and the difference below.

    Of an ensemble the median over its seeds, with the 5 to 95 % range below; each figure by itself.
    """
    header = ["completion (us)", "flows", "min", "mean", "p50", "p99", "max"]
    rows = []
    slowdowns = any(np.isfinite(result.slowdown).any() for result in results)
    for result in results:
        fluid = five(result.duration)
        if result.ensemble is None:
            slow = _slowdown(result) if slowdowns else []
            rows.append([result.name, str(len(result.size)), *_microseconds(fluid), *slow])
        else:
            fluid = [result.ensemble.spread(name)[1] for name in FIVE]
            rows += _ensemble(result, result.ensemble, slowdowns)
        if packets and result.name in packets:
            times = packets[result.name]
            reference = five(times)
            apart = [f"{100 * (mine / theirs - 1):+.1f} %" for mine, theirs in zip(fluid, reference, strict=True)]
            rows.append(["  packets", str(len(times)), *_microseconds(reference)])
            rows.append(["  difference", "", *apart])
    unfinished = [
        f"{result.name}: {missing} of {len(result.size)} flows did not end; the figures are those of the others"
        for result in results
        if (missing := int((~np.isfinite(result.duration)).sum()))
    ]
    unfinished += [
        f"{result.name}: {missing} of {len(result.ensemble.seeds)} seeds did not end; the figures are of the others"
        for result in results
        if result.ensemble is not None and (missing := int((result.ensemble.figures["failed"].values > 0).sum()))
    ]
    return "\n".join([align([header + ["slowdown mean", "p99"] * slowdowns, *rows]), *unfinished])


def collectives(results: Sequence[Result]) -> str:
    """Times and bus bandwidths of the collectives, equal ones in one row; nothing where there are none."""
    header = ["collectives", "groups", "fastest (us)", "slowest (us)", "busbw (Gbps)"]
    rows = []
    for result in results:
        for name in dict.fromkeys(result.collectives):
            mine = result.collectives == name
            times = _microseconds([result.collective_time[mine].min(), result.collective_time[mine].max()])
            first = "" if result.ensemble is None else f"first of {len(result.ensemble.seeds)} seeds, "
            rows.append(
                [f"{result.name}, {first}{name}", str(mine.sum()), *times, f"{result.busbw[mine].min() * 8e-9:.1f}"]
            )
    return align([header, *rows]) if rows else ""


def totals(results: Sequence[Result]) -> str:
    """What was delivered, lost and marked, and how the run went."""
    header = [
        "total",
        "payload",
        "sent again",
        "dropped",
        "marked",
        "largest queue",
        "last (us)",
        "steps",
        "dt",
        "took",
    ]
    rows = []
    for result in results:
        lost = (result.retransmitted.sum(), result.dropped.sum(), result.marked.sum())
        figures = [*map(size, lost), size(in_switches(result).max(initial=0.0)), f"{result.last * 1e6:.1f}"]
        how = [str(result.steps), f"{result.dt * 1e9:.0f} ns", f"{result.wall_s:.2f} s"]
        if result.ensemble is None:
            rows.append([result.name, size(result.size.sum()), *figures, *how])
            continue
        spreads = [[size(value) for value in result.ensemble.spread(name)] for name in _TOTALS]
        spreads.append(_microseconds(result.ensemble.spread("last_completion")))
        low, middle, high = (list(column) for column in zip(*spreads, strict=True))
        rows.append([_median(result, result.ensemble), size(result.size.sum()), *middle, *how])
        rows += [["  5 %", "", *low], ["  95 %", "", *high]]
    apart = any(f"{one.last:.7f}" != f"{five(one.duration)[-1]:.7f}" for one in results)
    note = ["last: from time zero; completions are from the start of each flow"] * apart
    return "\n".join([align([header, *rows]), *note])


def last_flow(result: Result) -> str:
    """A line about the flow that completes last, or the first of those that never do; of an ensemble that of its first
    seed. Flows that complete at once are counted."""
    flow, end = int(result.completion.argmax()), float(result.completion.max())
    alike = int((result.completion == end).sum())
    draw = f", first of {len(result.ensemble.seeds)} seeds" if result.ensemble is not None else ""
    when = f"completes at {end * 1e6:.1f} us, {result.duration[flow] * 1e6:.1f} us after its start"
    return (
        f"{result.name}{draw}: the last flow is h{result.src[flow]} to h{result.dst[flow]}"
        + (f" (one of {alike})" if alike > 1 else "")
        + f" of {result.entries[result.entry[flow]]}: {when if np.isfinite(end) else 'it did not end'}, "
        + f"{size(float(result.retransmitted[flow]))} sent again"
    )


def busiest_links(result: Result, count: int = 10) -> str:
    """What the busiest links carried, and what became of it there; see fabsim.busiest for their order."""
    header = ["link", "rate", "sent", "utilisation", "mean queue", "largest", "marked", "dropped"]
    headers, pauses = bool(result.headers.any()), bool(result.paused.any())
    rows = [
        [
            result.link[number],
            f"{result.capacity[number] * 8e-9:.0f} Gbps",
            size(float(result.sent[number])),
            f"{100 * result.utilisation[number]:.1f} %",
            size(float(result.queue_mean[number])),
            size(float(result.queue_peak[number])),
            size(float(result.marked[number])),
            size(float(result.dropped[number])),
            *([size(float(result.headers[number]))] if headers else []),
            *([f"{result.paused[number] * 1e6:.1f} us"] if pauses else []),
        ]
        for number in result.busiest[:count]
    ]
    return align([header + ["headers"] * headers + ["paused"] * pauses, *rows])


def by_class(result: Result) -> str:
    """Completion times of each class of traffic, and what became of its bytes in the switches."""
    header = [
        "class",
        "flows",
        "mean (us)",
        "p50",
        "p99",
        "max",
        "payload",
        "utilisation",
        "largest",
        "marked",
        "dropped",
    ]
    inside, rows = result.tail_tier > 0, []
    for number, name in enumerate(result.classes):
        mine = result.traffic_class == number
        figures = [
            size(float(result.size[mine].sum())),
            f"{100 * result.class_utilisation[number].max(initial=0.0):.1f} %",
            size(float(result.class_queue_peak[number, inside].max(initial=0.0))),
            size(float(result.class_marked[number].sum())),
            size(float(result.class_dropped[number].sum())),
        ]
        rows.append([str(name), str(int(mine.sum())), *_microseconds(five(result.duration[mine])[1:]), *figures])
    return align([header, *rows])


def by_entry(result: Result) -> str:
    """Completion times of the flows of each entry of the traffic, and what of them was sent again."""
    rows = [["entry", "flows", "mean (us)", "p50", "p99", "max", "payload", "sent again"]]
    for number, name in enumerate(result.entries):
        mine = result.entry == number
        figures = [size(float(values[mine].sum())) for values in (result.size, result.retransmitted)]
        rows.append([str(name), str(int(mine.sum())), *_microseconds(five(result.duration[mine])[1:]), *figures])
    return align(rows)


def align(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in columns: the first to the left, the others to the right. Short rows end early."""
    columns = max(map(len, rows))
    full = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(len(row[number]) for row in full) for number in range(columns)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in full
    )


def size(value: float) -> str:
    """Bytes for people: 4 significant digits at most."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value:.3g} B"


def five(times: Float) -> list[float]:
    """Minimum, mean, median, 99th percentile and maximum of what ended; NaN where nothing did."""
    ended = times[np.isfinite(times)]
    if not len(ended):
        return [np.nan] * 5
    return [float(value) for value in (ended.min(), ended.mean(), *np.quantile(ended, [0.5, 0.99]), ended.max())]


def _ensemble(result: Result, seeds: Ensemble, slowdowns: bool) -> list[list[str]]:
    """Three rows: the median of each figure, and the ends of its range."""
    columns = [_microseconds(seeds.spread(name)) for name in FIVE]
    slow = ("slowdown_mean", "slowdown_p99") if slowdowns else ()
    columns += [["-" if np.isnan(value) else f"{value:.2f}" for value in seeds.spread(name)] for name in slow]
    low, middle, high = (list(row) for row in zip(*columns, strict=True))
    return [
        [_median(result, seeds), str(len(result.size)), *middle],
        ["  5 %", "", *low],
        ["  95 %", "", *high],
    ]


def _median(result: Result, seeds: Ensemble) -> str:
    return f"{result.name}, median of {len(seeds.seeds)} seeds"


def _microseconds(times: Iterable[float]) -> list[str]:
    return [f"{time * 1e6:.1f}" for time in times]


def _slowdown(result: Result) -> list[str]:
    """Mean and 99th percentile of the slowdown; a dash where it was not worked out."""
    known = result.slowdown[np.isfinite(result.slowdown)]
    return [f"{known.mean():.2f}", f"{np.quantile(known, 0.99):.2f}"] if len(known) else ["-", "-"]


def in_switches(result: Result) -> Float:
    """[L] largest queue of each switch port; 0 at NICs, whose backlog is the sender's own."""
    return np.where(result.tail_tier > 0, result.queue_peak, 0.0)
