"""A directory of packet-level results, and the cases in it.

`summary.csv` has one row a run: name, topo, cm and args are needed; rc, flows and user_s are read where there are any.
Topology T is `inputs/topo/T.topo`, matrix M is `inputs/cm/M`; measured completions are in `fct/<run>.csv`, and for
some runs the links of each flow in `paths/<run>.csv`, or packets per flow and link in `splits/<run>.csv`. Any of these
files may be gzipped (.gz).
"""

from __future__ import annotations

import csv
from fnmatch import fnmatchcase
from pathlib import Path

from fabsim.errors import InputError
from fabsim.formats.text import read_text
from fabsim.validation.case import Case

NEEDED = ("name", "topo", "cm", "args")


def cases(folder: Path, pattern: str = "*") -> list[Case]:
    """The cases whose names fit the pattern (as file names do).

    Raises InputError where there is none, or where the files of a case are missing or wrong: all of them at once,
    before anything is run.
    """
    rows = _rows(folder)
    found = [Case(row["name"], folder, row) for row in rows if fnmatchcase(row["name"], pattern)]
    if not found:
        some = f"there are {len(rows)}, such as {rows[0]['name']}"
        raise InputError(f"{folder / 'summary.csv'}: no case fits --cases {pattern!r}; {some}")
    faults: list[str] = []
    for case in found:
        try:
            case.cannot()
        except InputError as error:
            faults += error.sentences
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    return found


def _rows(folder: Path) -> list[dict[str, str]]:
    """Rows of summary.csv."""
    table = folder / "summary.csv"
    if not table.is_file():
        found = "there is no summary.csv here" if folder.is_dir() else "there is no such directory"
        raise InputError(f"{folder}: {found}; give one with summary.csv (packet-level results) or published.csv")
    reader = csv.DictReader(read_text(table).removeprefix("\ufeff").splitlines())
    names = reader.fieldnames or ()
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise InputError(f"{table}:1: no column {', '.join(missing)}: {', '.join(NEEDED)} are needed")
    rows = []
    for row in reader:
        if None in row or None in row.values():
            raise InputError(f"{table}:{reader.line_num}: {len(names)} fields are needed, as in line 1")
        rows.append({key: value.strip() for key, value in row.items()})
    if not rows:
        raise InputError(f"{table}: there are no cases in it")
    return rows
