"""Text files with line numbers, plain or gzipped, and errors that begin with file:line."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path

from fabsim.errors import InputError, InputWarning


def read_text(path: str | Path) -> str:
    """The text of a file, unpacked where its name ends in .gz. Raises InputError where it cannot be read."""
    try:
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text; give a file of text") from None
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not text.strip():
        raise InputError(f"{path}:1: the file is empty")
    return text


def records(
    path: str | Path, needed: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """(file:line, fields) of each row of a CSV file with a header.

    Raises InputError where a needed column is missing or a row is short; warns of columns that are not used.
    """
    reader = csv.DictReader(read_text(path).splitlines())
    names = [name.strip() for name in reader.fieldnames or []]
    reader.fieldnames = names
    missing = [name for name in needed if name not in names]
    if missing:
        there = f"given {', '.join(names)}"
        raise InputError(f"{path}:1: no column {', '.join(missing)}, {there}; {', '.join(needed)} are needed")
    unused = [name for name in names if name not in needed and name not in optional]
    if unused:
        warnings.warn(f"{path}:1: columns not used: {', '.join(unused)}", InputWarning, stacklevel=3)
    for fields in reader:
        place = f"{path}:{reader.line_num}"
        if None in fields or None in fields.values():
            given = "more" if None in fields else "fewer"
            raise InputError(f"{place}: {len(names)} fields are needed, as in the header, given {given}")
        yield place, fields


def real(text: str, key: str, place: str) -> float:
    """A finite number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{place}: {key}: {text!r} is not a number") from None
    if not isfinite(value) or value < 0:
        raise InputError(f"{place}: {key}: {text} given, must be a number, 0 or more")
    return value


def whole(text: str, key: str, place: str, least: int = 0) -> int:
    """A whole number, at least `least`."""
    try:
        value = int(text)
    except ValueError:
        raise InputError(f"{place}: {key}: {text!r} is not a whole number") from None
    if value < least:
        raise InputError(f"{place}: {key}: {value} given, must be {least} or more")
    return value


def host(fields: Mapping[str, str], key: str, hosts: int, place: str) -> int:
    """A host number that is there."""
    value = whole(fields[key], key, place)
    if value >= hosts:
        raise InputError(f"{place}: {key}: there is no host {value}: hosts are 0 to {hosts - 1}")
    return value
