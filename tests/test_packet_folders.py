"""Directories of packet-level results by strangers: what they may lack, and what is said of a fault."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabsim import validation
from fabsim.cli import main
from fabsim.errors import InputError
from fabsim.validation import Row

TOPOLOGY = """
Nodes 4
Tiers 2
Podsize 4
Tier 0
Downlink_speed_Gbps 400
Radix_Down 2
Radix_Up 1
Downlink_Latency_ns 1000
Queue_Down 9000
Tier 1
Downlink_speed_Gbps 400
Radix_Down 2
Downlink_Latency_ns 1000
"""
MATRIX = "Nodes 4\nConnections 2\n0->1 id 7 start 0 size 1000000\n2->3 id 3 start 20 size 200000\n"
CONST = "-sender_cc_only -sender_cc_algo constant -load_balancing_algo oblivious -paths 1"


def folder(
    tmp_path: Path,
    *,
    args: str = CONST,
    matrix: str = MATRIX,
    fct: str | None = None,
    columns: str = "name,topo,cm,args",
    more: str = "",
) -> Path:
    """A directory with one case, `mine`: two flows that do not meet, each below a leaf of its own."""
    for name in ("inputs/topo", "inputs/cm", "fct"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "summary.csv").write_text(f"{columns}\nmine,four,two.cm,{args}{more}\n")
    (tmp_path / "inputs/topo/four.topo").write_text(TOPOLOGY)
    (tmp_path / "inputs/cm/two.cm").write_text(matrix)
    if fct is not None:
        (tmp_path / "fct/mine.csv").write_text(fct)
    return tmp_path


def took(size: float, mtu: float = 4150) -> float:
    """us for a lone flow over two links: the closed form."""
    return 2 + (size + 64 * math.ceil(size / (mtu - 64)) + mtu) / 50e3


def finishes(first: float = 0, second: float = 20, mtu: float = 4150) -> str:
    """A table of completions in another order than the matrix, from starts in us."""
    rows = f"3,{second},{second + took(2e5, mtu):.4f}\n7,{first},{first + took(1e6, mtu):.4f}\n"
    return "flow_id,start_us,rx_finish_us\n" + rows


def only(where: Path) -> Row:
    """The row of a directory with one case."""
    (row,) = validation.validate(where, progress=False)
    return row


def test_plain_files_few_columns_ids_in_disorder_and_late_starts(tmp_path: Path) -> None:
    row = only(folder(tmp_path, fct=finishes()))
    assert row.kind == "drawn"
    assert row.err_p90 < 1e-3
    assert row.packet_max_us == pytest.approx(took(1e6), abs=1e-3)
    assert row.note.startswith("starts differ: last byte of all at 26")
    assert math.isnan(row.packet_cpu_s)


def test_measured_starts_overrule_the_matrix(tmp_path: Path) -> None:
    assert only(folder(tmp_path, fct=finishes(second=4.5))).err_p90 < 1e-3


def test_flows_that_wait_for_a_trigger(tmp_path: Path) -> None:
    matrix = (
        "Nodes 4\nConnections 2\nTriggers 1\n0->1 id 7 start 0 size 1000000 send_done_trigger 1\n"
        "2->3 id 3 trigger 1 size 200000\ntrigger id 1 oneshot\n"
    )
    knows = took(1e6) + 2 + 2 * 64 / 50e3
    row = only(folder(tmp_path, matrix=matrix, fct=finishes(second=knows)))
    assert row.err_p90 < 1e-3
    assert f"{knows + took(2e5):.1f}" in row.note


def test_packets_of_another_size(tmp_path: Path) -> None:
    row = only(folder(tmp_path, args=f"{CONST} -mtu 1564 -q 100 -end 100", fct=finishes(mtu=1564)))
    assert row.err_p90 < 1e-3


def test_a_small_window_is_felt(tmp_path: Path) -> None:
    row = only(folder(tmp_path, args=f"{CONST} -cwnd 10", fct=finishes()))
    assert row.fluid_max_us > 2 * row.packet_max_us


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (f"{CONST} -disable_trim", "option -disable_trim is not modelled yet"),
        ("-sender_cc_algo dctcp", "transport dctcp is not modelled yet"),
        ("-receiver_cc", "transport nscc with rccc is not modelled yet"),
        ("-sender_cc_algo constant -strat ecmp_host_ar", "balancer ecmp_host_ar is not modelled yet"),
        ("-sender_cc_algo constant -load_balancing_algo reps_legacy", "balancer reps_legacy is not modelled yet"),
        (f"{CONST} -linkspeed 200000", "NICs of 200000 Mbps at links of 400000 Mbps are not modelled yet"),
    ],
)
def test_an_option_that_is_not_modelled_is_no_silent_one(tmp_path: Path, args: str, says: str) -> None:
    assert only(folder(tmp_path, args=args, fct=finishes())).note == says


def test_unfinished_flows_are_no_target(tmp_path: Path) -> None:
    row = only(folder(tmp_path, fct="flow_id,rx_finish_us\n7,\n", columns="name,topo,cm,args,flows,rc", more=",2,0"))
    assert row.note == "2 flows did not finish in the packet simulator"
    assert row.flows == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "fct/mine.csv: there is no such file, nor one that ends in .gz"),
        ({"fct": "flow_id\n7\n"}, "mine.csv:1: no column rx_finish_us"),
        ({"fct": "flow_id,rx_finish_us\n8,30\n"}, "mine.csv:2: flow_id: flow 8 is not in the matrix"),
        ({"fct": "flow_id,rx_finish_us\n3,30\n3,30\n"}, "mine.csv:3: flow_id: flow 3 comes twice"),
        ({"fct": "flow_id,rx_finish_us\n3,12\n"}, "mine.csv:2: rx_finish_us: 12 given, not after the start"),
        ({"fct": "flow_id,src,rx_finish_us\n3,1,30\n"}, "mine.csv:2: src: 1 given, but in the matrix it is 2"),
        ({"fct": "flow_id,rx_finish_us\n3,soon\n"}, "mine.csv:2: rx_finish_us: 'soon' is not a number"),
        ({"args": f"{CONST} -mtu big"}, "mine: args: -mtu: 'big' is no number"),
        ({"args": f"{CONST} -mtu 64"}, "mine: args: -mtu: 64 given, must be more than the header"),
        ({"args": "fast"}, "mine: args: 'fast' stands before the first option"),
        ({"columns": "name,topo,cm,options"}, "summary.csv:1: no column args"),
        ({"more": ",0"}, "summary.csv:2: 4 fields are needed"),
    ],
)
def test_a_fault_is_one_sentence(tmp_path: Path, change: dict[str, str], says: str) -> None:
    with pytest.raises(InputError) as caught:
        only(folder(tmp_path, **change))
    assert says in str(caught.value)
    assert len(caught.value.sentences) == 1


@pytest.mark.parametrize("pattern", ["nothing*", "", "[", "mine/.."])
def test_a_pattern_that_fits_nothing(tmp_path: Path, pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(folder(tmp_path, fct=finishes())), "--cases", pattern]) == 2
    assert f"no case fits --cases {pattern!r}; there are 1, such as mine" in capsys.readouterr().err


def test_all_faults_are_told_before_anything_is_run(tmp_path: Path) -> None:
    where = folder(tmp_path)
    with (where / "summary.csv").open("a") as file:
        file.write(f"other,four,three.cm,{CONST}\n")
    with pytest.raises(InputError) as caught:
        list(validation.validate(where, progress=False))
    assert [sentence.split(": ")[0].rsplit("/", 1)[1] for sentence in caught.value.sentences] == [
        "mine.csv",
        "three.cm",
    ]


@pytest.mark.parametrize("table", [None, "", "name,topo,cm,args\n"])
def test_no_directory_of_results(tmp_path: Path, table: str | None) -> None:
    if table is not None:
        (tmp_path / "summary.csv").write_text(table)
    with pytest.raises(InputError, match=r"summary\.csv"):
        list(validation.validate(tmp_path, progress=False))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = folder(tmp_path, fct=None)
    with gzip.open(where / "fct/mine.csv.gz", "wt") as file:
        file.write(finishes())
    assert main(["validate", str(where), "--csv", str(tmp_path / "out.csv")]) == 0
    assert "mine  drawn     2" in capsys.readouterr().out
    assert (tmp_path / "out.csv").read_text().count("\n") == 2


def test_what_was_compared_before_an_interruption_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = folder(tmp_path, fct=finishes())
    row = next(iter(validation.validate(there, progress=False)))

    def interrupted(*_: object) -> Iterator[Row]:
        yield row
        raise KeyboardInterrupt

    monkeypatch.setattr(validation, "validate", interrupted)
    table = tmp_path / "table.csv"
    table.write_text("a whole table\n")
    assert main(["validate", str(there), "--csv", str(table), "--force"]) == 130
    said = capsys.readouterr()
    assert "mine" in said.out
    assert "table-part.csv" in said.out
    assert "interrupted" in said.err
    assert (tmp_path / "table-part.csv").read_text().splitlines()[1].startswith("mine,")
    assert table.read_text() == "a whole table\n"
