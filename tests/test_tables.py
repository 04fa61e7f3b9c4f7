"""Results as text, CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabsim.busiest import busiest
from fabsim.collect import collect
from fabsim.errors import InputError
from fabsim.export import as_csv, as_json
from fabsim.results import Result
from fabsim.tables import busiest_links, by_entry, last_flow, show, size, summary, totals

Recorded = Callable[..., dict[str, Any]]


def test_summary_sets_packets_beside(result: Result, other_case: Result) -> None:
    lines = summary([result, other_case], {"ECMP": result.duration / 1.25}).splitlines()
    assert lines[0].split()[2:] == ["flows", "min", "mean", "p50", "p99", "max", "slowdown", "mean", "p99"]
    assert lines[1].split() == ["ECMP", "3", "30.0", "43.3", "40.0", "59.6", "60.0", "1.81", "2.48"]
    assert lines[2].split() == ["packets", "3", "24.0", "34.7", "32.0", "47.7", "48.0"]
    assert lines[3].split() == ["difference", *["+25.0", "%"] * 5]
    assert lines[4].split()[-2:] == ["-", "-"]  # no zero-load times were given


def test_flows_that_did_not_end_are_told(recorded: Recorded) -> None:
    text = summary([collect(**recorded(np.array([30e-6, np.inf, 50e-6])), name="x")])
    assert "x: 1 of 3 flows did not end" in text
    assert "nan" in summary([collect(**recorded(np.full(3, np.inf)), name="x")])


def test_show_names_the_busiest_link_and_what_was_lost(result: Result) -> None:
    text = show([result], busiest=1)
    assert "leaf1->h2      400 Gbps  3 MB      100.0 %" in text or "leaf1->h2  400 Gbps  3 MB      100.0 %" in text
    assert "leaf0->spine0" not in text
    assert "50 kB" in text


def test_the_last_flow_has_a_name(result: Result, recorded: Recorded) -> None:
    ends = replace(
        result,
        start=np.array([0.0, 15e-6, 0.0]),
        completion=np.array([30e-6, 60e-6, 40e-6]),
        retransmitted=np.array([9e3, 20e3, 0.0]),
        entry=np.array([0, 1, 0]),
        entries=np.array(["traffic.0: shift", "traffic.1: incast"]),
    )
    told = "the last flow is h1 to h2 of traffic.1: incast: completes at 60.0 us, 45.0 us after its start, 20 kB sent"
    assert last_flow(ends) == f"ECMP: {told} again"
    assert last_flow(ends) in show([ends])
    never = collect(**recorded(np.array([30e-6, np.inf, np.inf])), name="x")
    assert "h1 to h2 (one of 2) of " in last_flow(never)
    assert "it did not end" in last_flow(never)


def test_what_was_always_busy_comes_before_what_was_briefly_full() -> None:
    """A core link at a quarter of its speed has a quarter of the buffer; one sender is as busy, and others less."""
    links = ["h0", "h1", "h2", "full", "slow", "like slow", "idle", "dead"]
    tier = np.array([0, 0, 0, 2, 3, 3, 1, 1])
    rate = np.array([50e9, 50e9, 50e9, 50e9, 12.5e9, 50e9, 50e9, 0.0])
    busy = np.array([0.9801, 0.5, 0.97, 0.3, 0.9804, 0.9802, 0.0, 0.0])
    queue = np.array([9e6, 9e6, 9e6, 4e5, 1e5, 3e5, 0.0, 0.0])  # 8 us at the slow link, 6 us at the one like it
    order = busiest(tier, rate, busy, queue, busy * rate * 1e-3)
    assert [links[n] for n in order] == ["slow", "like slow", "h0", "full", "h2", "h1", "idle", "dead"]


def test_last_says_from_when_it_counts_where_that_matters(parts: dict[str, Any]) -> None:
    note = "last: from time zero"
    run = collect(**parts, name="x")
    assert note not in totals([run])
    late = replace(run, start=np.full(3, 5e-6))
    assert late.last == run.last
    assert note in totals([run, late])


def test_entries_of_traffic_stand_apart(parts: dict[str, Any]) -> None:
    names = ["traffic.0: incast", "traffic.1: permutation"]
    run = collect(**parts, name="x", entries=names, entry=np.array([0, 0, 1]))
    lines = by_entry(run).splitlines()
    assert lines[1].split() == ["traffic.0:", "incast", "2", "35.0", "35.0", "39.9", "40.0", "2", "MB", "0", "B"]
    assert lines[2].split() == ["traffic.1:", "permutation", "1", *["60.0"] * 4, "1", "MB", "0", "B"]
    assert by_entry(run) in show([run])
    assert "entries" not in show([collect(**parts, name="x")])


@pytest.mark.parametrize("count", [1, 4, 9])
def test_the_series_kept_are_those_of_the_links_listed(parts: dict[str, Any], count: int) -> None:
    run = collect(**parts, name="x", watch=count)
    listed = [line.split()[0] for line in busiest_links(run, count).splitlines()[1:]]
    assert set(run.watched) == set(listed)
    assert run.watched[run.busiest_watched].tolist() == listed


@pytest.mark.parametrize(
    ("table", "rows", "columns"),
    [
        ("flows", 6, {"case", "flow", "completion_s", "mean_rate_B_per_s", "retransmitted_B"}),
        ("links", 32, {"case", "link", "utilisation", "queue_peak_B", "dropped_B"}),
        ("series", (4 + 3) * 6, {"case", "time_s", "link", "series_queue_B"}),
        ("summary", 2, {"case", "flows", "p99_s"}),
    ],
)
def test_csv_has_a_row_for_each(result: Result, other_case: Result, table: Any, rows: int, columns: set[str]) -> None:
    read = list(csv.DictReader(as_csv([result, other_case], table).splitlines()))
    assert len(read) == rows
    assert columns <= set(read[0])
    assert {row["case"] for row in read} == {"ECMP", "spray"}


def test_csv_keeps_all_digits(result: Result) -> None:
    read = list(csv.DictReader(as_csv([result]).splitlines()))
    assert [float(row["completion_s"]) for row in read] == result.completion.tolist()


def test_an_unknown_table_is_refused(result: Result) -> None:
    with pytest.raises(
        InputError, match='no table is named "flow"; there are summary, flows, collectives, links, classes'
    ):
        as_csv([result], "flow")  # pyright: ignore[reportArgumentType]


def test_json_is_strict_and_whole(recorded: Recorded) -> None:
    run = collect(**recorded(np.array([30e-6, np.inf, 50e-6])), name="x", scenario="name: x")

    def refuse(text: str) -> None:
        raise AssertionError(text)

    (read,) = json.loads(as_json([run]), parse_constant=refuse)
    assert read["flows"]["completion_s"] == [30e-6, None, 50e-6]
    assert read["scenario"] == "name: x"
    assert len(read["links"]["link"]) == 16
    assert read["completion_times"]["max_s"] == 50e-6


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (1.5e3, "1.5 kB"), (2e6, "2 MB"), (3e9, "3 GB")]
)
def test_sizes_for_people(value: float, text: str) -> None:
    assert size(value) == text
