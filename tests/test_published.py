"""The table of published measurements: rows that run, rows that are refused, and what each row is held against."""

from __future__ import annotations

import csv
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

import fabsim
from fabsim.cli import main
from fabsim.errors import InputError
from fabsim.published import NAME, Row, read_rows
from fabsim.published.table import Found

MRC = Path(__file__).parents[1] / "configs" / "mrc"


def rows() -> list[Row]:
    """All of MRC's."""
    return read_rows(MRC)


def test_fast_rows_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rows over two cases, and their verdicts in a CSV."""
    table = tmp_path / "table.csv"
    assert main(["validate", str(MRC), "--cases", "4 of 8 ports*", "--csv", str(table)]) == 0
    printed = capsys.readouterr().out
    assert "2 of 2 counted rows pass; 0 are shown, or put in" in printed
    found = list(csv.DictReader(table.open()))
    assert [row["verdict"] for row in found] == ["pass", "pass"]
    assert float(found[0]["simulated"]) == pytest.approx(0.5, abs=0.05)
    assert float(found[1]["simulated"]) == pytest.approx(1.0, abs=0.05)


def test_every_row_names_what_is_there() -> None:
    """Each case of each scenario serves a row, each row has a source, and what is not counted says why."""
    table = rows()
    used = {(row.scenario, case) for row in table for case in (row.case, row.over) if case}
    there = {(file.name, case) for file in MRC.glob("*.yaml") for case in fabsim.load(file).variants}
    assert used == there
    assert all(row.source.startswith("Araujo") for row in table)
    assert all(row.note for row in table if row.counts != "counted")
    assert sum(row.counts == "counted" for row in table) >= 9


def test_one_parameter_set() -> None:
    """All MRC of the table is one, but for the number of values where a test had few of them."""
    laws = {
        str(variant.balancer.model_dump(exclude={"entropies"}))
        for file in MRC.glob("*.yaml")
        for variant in fabsim.load(file).variants.values()
        if variant.balancer.kind == "mrc"
    }
    assert len(laws) == 1


def made(**changes: object) -> Row:
    """A row."""
    values: dict[str, Any] = {
        "row": "r", "scenario": "s.yaml", "case": "", "seeds": 1.0, "measure": "mean", "links": "*", "begin": 0.0,
        "end": 1.0, "sample": math.nan, "over": "", "unit": "", "published": "1", "low": 0.9, "high": 1.1,
        "counts": "counted", "source": "", "note": "",
    } | changes  # fmt: skip
    return Row(**values)


def test_verdicts() -> None:
    for value, verdict in ((0.95, "pass"), (0.89, "FAIL"), (1.11, "FAIL"), (math.nan, "FAIL")):
        assert Found(made(), value, 0.0).verdict == verdict
    assert Found(made(high=math.nan), 5.0, 0.0).verdict == "pass"
    assert Found(made(counts="shown"), 5.0, 0.0).verdict == "shown"


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("measure", "median", "measure: 'median' given, must be one of mean, least, fairness, speed"),
        ("counts", "yes", "counts: 'yes' given"),
        ("low", "many", "low: 'many' given, must be a number"),
        ("begin", "9000", "the window must have a length"),
        ("seeds", "0", "seeds: 0 given"),
    ],
)
def test_a_wrong_row_is_refused_by_its_line(tmp_path: Path, column: str, value: str, words: str) -> None:
    given = list(csv.DictReader((MRC / NAME).open()))[1] | {column: value}
    with (tmp_path / NAME).open("w", newline="") as file:
        out = csv.DictWriter(file, list(given))
        out.writeheader()
        out.writerow(given)
    with pytest.raises(InputError) as caught:
        read_rows(tmp_path)
    assert f"{NAME}:2: " in str(caught.value)
    assert words in str(caught.value)


def test_other_mistakes_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(MRC), "--cases", "nobody"]) == 2
    assert "no row fits 'nobody'" in capsys.readouterr().err
    shutil.copytree(MRC, tmp_path / "mrc")
    table = tmp_path / "mrc" / NAME
    table.write_text(table.read_text().replace("a spine dies", "a spine dies twice"))
    assert main(["validate", str(tmp_path / "mrc"), "--cases", "a spine*"]) == 2
    assert "has no case 'a spine dies twice'" in capsys.readouterr().err
    table.write_text("row,scenario\n")
    assert main(["validate", str(tmp_path / "mrc")]) == 2
    assert "has no column case" in capsys.readouterr().err
