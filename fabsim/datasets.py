"""Whatever fabsim has written, as an xarray Dataset."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fabsim import journal
from fabsim.errors import InputError
from fabsim.journal import Journal
from fabsim.store import DAMAGED, check_source, damaged, decode
from fabsim.tuning.folder import JOURNAL, RESULT, TUNED

if TYPE_CHECKING:
    import xarray


def open(path: str | Path, case: str | None = None) -> xarray.Dataset:
    """A result file, a sweep or a tuning (its folder or its file), as an xarray Dataset, in memory.

    Of a run: links and watched links are labelled by name and frames by time:
    `fabsim.open("r.h5").series_queue.sel(watched="leaf0->spine3").plot()`. A file of several cases gives a dimension
    `case`; where the cases have different flows, name one.

    Of a sweep: figures over the axes of its design, labelled by the keys that were varied:
    `fabsim.open("sweep").completion_p99.sel({"queue.buffer": 2e5}).plot()`. A folder whose sweep is not done yet has
    NaN, and a `reason`, where points are missing.

    Of a tuning (`fabsim tune FILE --out DIR`): the course of the objective, the figures of each row of its table, and
    values and the load of links, before and after: `fabsim.open("tuned").objective.min("descent").plot()`.

    Raises:
        InputError: no such file or case, or cases that cannot stand in one Dataset.
    """
    if Path(path).is_dir():
        return _folder(Path(path))
    check_source(path)
    root = _load(path)
    if root.attrs.get("kind") == "sweep":
        return root.set_coords(json.loads(root.attrs["coordinates_of"]))
    names: list[str] = json.loads(root.attrs["cases"]) if "cases" in root.attrs else []
    if case is not None and case not in (names or [root.attrs["name"]]):
        raise InputError(f'{path}: no case is named "{case}"; there are {", ".join(names) or root.attrs["name"]}')
    if not names:
        return root
    if case is not None:
        return _load(path, f"case{names.index(case)}")
    return _cases(path, names)


def is_sweep(path: str | Path) -> bool:
    """Whether a folder or file is that of a sweep. Raises InputError for a folder of anything else."""
    if Path(path).is_dir():
        return bool(_journal(Path(path)))
    return decode(path)[""].attributes.get("kind") == "sweep"


def _folder(folder: Path) -> xarray.Dataset:
    """A sweep, as far as it has come, or what a tuning has left."""
    if _tuned(folder) and (folder / RESULT).is_file():
        return open(folder / RESULT)
    found = _journal(folder)
    if found.whole.is_file():
        with suppress(InputError):  # it is damaged: the shards are there still
            return open(found.whole)
    from fabsim.scenario.scenario import validated
    from fabsim.scenario.text.source import read_text
    from fabsim.sweeps.design import design
    from fabsim.sweeps.whole import dataset, whole

    scenario = validated(read_text(found.plan["scenario"], str(folder), folder))
    return dataset(whole(scenario, found.plan["scenario"], design(scenario), (sheet for _, sheet in found.sheets())))


def _journal(folder: Path) -> Journal:
    if _tuned(folder):
        text = f"fabsim.open reads its {RESULT} in Python, and its {TUNED} runs, once fabsim tune has come to its end"
        raise InputError(f"{folder}: is the folder of a tuning; {text}")
    found = journal.existing(folder)
    if found is None:
        raise InputError(f"{folder}: is an empty folder; name a result file, or the folder of a sweep")
    return found


def _tuned(folder: Path) -> bool:
    """Whether a folder is that of a tuning, done or not, and of no sweep."""
    return not (folder / journal.PLAN).is_file() and any((folder / name).is_file() for name in (JOURNAL, RESULT))


def _load(path: str | Path, group: str | None = None) -> xarray.Dataset:
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf", group=group, decode_times=False) as dataset:
            return dataset.load()
    except DAMAGED as error:
        raise damaged(path, error) from None


def _cases(path: str | Path, names: list[str]) -> xarray.Dataset:
    import xarray

    parts = [_load(path, f"case{number}") for number in range(len(names))]
    if len({part.sizes["flow"] for part in parts}) > 1:
        raise InputError(f"{path}: the cases have different flows; open one of {', '.join(names)} with case=...")
    parts = [part.assign_coords({dim: range(part.sizes[dim]) for dim in ("group", "traffic")}) for part in parts]
    joined = xarray.concat(parts, "case", join="outer", combine_attrs="drop_conflicts", data_vars="all")
    return joined.assign_coords(case=names)
