"""Results as tables to go on with: CSV and JSON, in SI units."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from fabsim.errors import InputError
from fabsim.results import COLUMNS, Result
from fabsim.tables import five

Table = Literal["summary", "flows", "collectives", "links", "classes", "series", "seeds"]
_AXIS = {
    "flows": "flow",
    "collectives": "group",
    "links": "link",
    "classes": "classes",
    "series": "time",
    "seeds": "seed",
}


def as_csv(results: Sequence[Result], table: Table = "flows") -> str:
    """One table as CSV in SI units; a first column names the case, units stand in the column names.

    `series` has one row for each frame and watched link, `classes` for each class of traffic and link.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    blocks = [_rows(result, table) for result in results]
    writer.writerow(["case", *blocks[0][0]])
    for result, (_, rows) in zip(results, blocks, strict=True):
        writer.writerows([result.name, *row] for row in rows)
    return text.getvalue()


def as_json(results: Sequence[Result]) -> str:
    """Everything but the series, in SI units. What is not a number (a flow that did not end) is null."""
    return json.dumps([_as_object(result) for result in results], allow_nan=False)


def _rows(result: Result, table: Table) -> tuple[list[str], Iterable[Sequence[Any]]]:
    """Header and rows of a table."""
    if table == "summary":
        names = ["min", "mean", "p50", "p99", "max"]
        return ["flows", *(f"{name}_s" for name in names)], [[len(result.size), *five(result.duration)]]
    if table not in _AXIS:
        raise InputError(f'no table is named "{table}"; there are {", ".join(get_args(Table))}')
    if table == "series":
        return _long(result, "time_s", result.time.tolist(), result.watched.tolist(), ("time", "watched"))
    if table == "classes":
        return _long(result, "class", result.classes.tolist(), result.link.tolist(), ("classes", "link"))
    if table == "seeds":
        return _seeds(result)
    columns = [item for item in COLUMNS if item.metadata["dims"] == (_AXIS[table],)]
    arrays = [getattr(result, item.name).tolist() for item in columns]
    number = [list(range(len(arrays[0])))] if table == "flows" else []
    heads = ["flow"] if table == "flows" else []
    return [*heads, *map(_heading, columns)], zip(*number, *arrays, strict=True)


def _long(
    result: Result, head: str, outer: list[Any], links: list[str], dims: tuple[str, str]
) -> tuple[list[str], Iterable[Sequence[Any]]]:
    """One row for each frame, or class, and link."""
    columns = [item for item in COLUMNS if item.metadata["dims"] == dims]
    arrays = [getattr(result, item.name).ravel().tolist() for item in columns]
    firsts = [value for value in outer for _ in links]
    return [head, "link", *map(_heading, columns)], zip(firsts, links * len(outer), *arrays, strict=True)


def _seeds(result: Result) -> tuple[list[str], Iterable[Sequence[Any]]]:
    """One row for each seed of an ensemble. Raises InputError where there is none."""
    if result.ensemble is None:
        raise InputError(f"{result.name}: this is a run of one seed; a scenario with seeds: 20 gives an ensemble")
    figures = result.ensemble.figures
    arrays = [figure.values.tolist() for figure in figures.values()]
    heads = [with_unit(name, figure.units) for name, figure in figures.items()]
    return ["seed", *heads], zip(result.ensemble.seeds.tolist(), *arrays, strict=True)


def _heading(item: Any) -> str:
    """The name of a column with its unit: completion_s, mean_rate_B_per_s."""
    return with_unit(item.name, item.metadata["units"])


def with_unit(name: str, units: str) -> str:
    """The head of a column of numbers in SI units."""
    return name if units in ("", "1") else f"{name}_{units.replace('/', '_per_')}"


def _as_object(result: Result) -> dict[str, Any]:
    facts = {name: getattr(result, name) for name in ("name", "seed", "versions", "sharing", "steps", "dt", "wall_s")}
    names = ["min", "mean", "p50", "p99", "max"]
    tables = {
        table: {
            _heading(item): _plain(getattr(result, item.name))
            for item in COLUMNS
            if item.metadata["dims"] == (_AXIS[table],)
        }
        for table in ("flows", "collectives", "links")
    }
    if result.ensemble is not None:
        figures = result.ensemble.figures.items()
        found = {with_unit(name, figure.units): _plain(figure.values) for name, figure in figures}
        tables["seeds"] = {"seed": result.ensemble.seeds.tolist()} | found
    completion = {f"{name}_s": _plain(value) for name, value in zip(names, five(result.duration), strict=True)}
    more = {"completion_times": completion, "scenario": result.scenario, "entries": result.entries.tolist()}
    return facts | more | tables


def _plain(values: Any) -> Any:
    """Lists and numbers that JSON has."""
    if isinstance(values, np.ndarray):
        return [_plain(value) for value in values.tolist()]
    return None if isinstance(values, float) and not np.isfinite(values) else values
