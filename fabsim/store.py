"""Files of results: netCDF-4 images built in memory, and put in place whole or not at all.

A file that grows on disk is not safe: a crash or a full disk in the middle can cost what had been flushed before.
So HDF5 writes into memory only, and plain Python writes the bytes aside, forces them to the disk and renames.
Only float32, float64, integers and UTF-8 strings are stored: what every reader of netCDF-4 understands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from errno import ENOSPC
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fabsim.errors import InputError

_TEXT = h5py.string_dtype("utf-8")
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
"""Begins what netCDF-4 notes at an axis that has a length and no values."""

DAMAGED = (OSError, RuntimeError, KeyError)
"""What h5py, and h5netcdf over it, raise of bytes that are not what was written."""

_COMPRESSION = {"compression": "gzip", "compression_opts": 1, "fletcher32": True}


@dataclass(frozen=True)
class Variable:
    """An array with named axes: floats, integers or strings, with its unit ("s", "B", "" for none) and meaning."""

    dims: tuple[str, ...]
    values: NDArray
    units: str = ""
    long_name: str = ""


@dataclass(frozen=True)
class Sheet:
    """One table of variables that share their axes, with attributes (text and numbers) of the whole."""

    variables: Mapping[str, Variable]
    attributes: Mapping[str, Any] = field(default_factory=dict)


def encode(sheets: Mapping[str, Sheet]) -> bytes:
    """The netCDF-4 image of sheets by group name; "" is the root, which xarray opens when it is not told otherwise."""
    image = BytesIO()
    with h5py.File(image, "w", track_order=True) as file:
        for name, sheet in sheets.items():
            _put(file.create_group(name, track_order=True) if name else file, sheet)
    return image.getvalue()


def decode(path: str | Path) -> dict[str, Sheet]:
    """The sheets of a file, by group name.

    Raises:
        InputError: as `check_source`.
    """
    check_source(path)
    try:
        with h5py.File(path, "r") as file:
            groups = {name: group for name, group in file.items() if isinstance(group, h5py.Group)}
            return {"": _get(file)} | {name: _get(group) for name, group in groups.items()}
    except DAMAGED as error:
        raise damaged(path, error) from None


def damaged(path: str | Path, error: Exception) -> InputError:
    """The sentence of a file whose bytes are not what was written."""
    return InputError(f"{path}: is damaged and cannot be read ({error}); write it again")


def check_source(path: str | Path) -> None:
    """Refuses what cannot be a result file.

    Raises:
        InputError: no such file, or not an HDF5 file.
    """
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder; name a file in it")
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    if not h5py.is_hdf5(path):
        raise InputError(f"{path}: not a result file; name one that was written by --out")


def check_target(path: str | Path, force: bool = False) -> None:
    """Refuses a place where a result could not be put, before the work is done rather than after.

    Raises:
        InputError: the folder is missing or cannot be written to, the path is a folder, or the file exists and `force`
            is off.
    """
    target = Path(path)
    _check_parent(target)
    if target.is_dir():
        raise InputError(f"{path}: is a folder; name a file in it")
    if target.exists() and not force:
        raise InputError(f"{path}: exists already; give --force to replace it, or name another file")


def check_folder(path: str | Path, what: str) -> None:
    """Refuses a place where a folder could not be made, before the work is done. what: what it would be, in words.

    Raises:
        InputError: the path is a file, or the folder above is missing or cannot be written to.
    """
    if Path(path).is_file():
        raise InputError(f"{path}: is a file; {what} is a folder, so name another place")
    _check_parent(Path(path) / "x" if Path(path).is_dir() else Path(path))


def _check_parent(target: Path) -> None:
    """Refuses a place whose folder is not there, or takes no file."""
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{target}: there is no folder {folder}; make it first, or name another place")
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        if error.errno == ENOSPC:
            raise
        raise InputError(f"{folder}: cannot be written to ({error.strerror}); name another place") from None


def publish(path: str | Path, content: bytes, force: bool = False) -> None:
    """Writes a file whole or not at all: aside, forced to the disk, renamed, and the folder forced to the disk.

    Whatever goes wrong, what stood at `path` before stays as it was and nothing is left aside.

    Raises:
        InputError: as `check_target`.
        OSError: the disk is full or cannot be written.
    """
    check_target(path, force)
    target = Path(path).resolve()  # a symbolic link keeps pointing where it did
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(aside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _put(group: h5py.Group, sheet: Sheet) -> None:
    """Writes a sheet into a group. By h5py itself: shards are many and small, and h5netcdf takes twice as long or more
    for each."""
    for name, variable in sheet.variables.items():
        stored = _values(group, name, variable)
        if variable.units:
            stored.attrs["units"] = variable.units
        if variable.long_name:
            stored.attrs["long_name"] = variable.long_name
    _name_axes(group, sheet.variables)
    for name, value in sheet.attributes.items():
        group.attrs[name] = value


def _values(group: h5py.Group, name: str, variable: Variable) -> h5py.Dataset:
    """Writes the values of a variable."""
    values = variable.values
    if values.dtype.kind in "OU":
        return group.create_dataset(name, data=values.astype(object), dtype=_TEXT)
    if values.dtype in (np.float32, np.float64) or values.dtype.kind in "iu":
        return group.create_dataset(name, data=values, **_COMPRESSION if values.size and variable.dims else {})
    raise TypeError(f"{name}: {values.dtype} is not stored; only float32, float64, integers and strings are")


def _name_axes(group: h5py.Group, variables: Mapping[str, Variable]) -> None:
    """Says which axes variables share, as netCDF-4 does in HDF5: an axis is a dimension scale, which is the variable of
    its own name, or else one without values, and is attached to the axes of variables."""
    sizes = {dim: size for x in variables.values() for dim, size in zip(x.dims, x.values.shape, strict=True)}
    scales: dict[str, Any] = {}
    for dim, size in sizes.items():
        empty = dim not in variables
        scales[dim] = group.create_dataset(dim, (size,), ">f4") if empty else group[dim]
        scales[dim].make_scale(f"{_NO_VARIABLE.decode()}. {size:10d}" if empty else dim)
    for name, variable in variables.items():
        stored: Any = group[name]
        for axis, dim in enumerate(variable.dims):
            if dim != name:
                stored.dims[axis].attach_scale(scales[dim])


def _get(group: h5py.Group) -> Sheet:
    """Reads a group. By h5py itself, which for many small files is several times as fast as h5netcdf."""
    variables = {
        name: Variable(
            _dims(name, stored),
            np.asarray(stored.asstr()[...] if h5py.check_string_dtype(stored.dtype) else stored[...]),
            str(stored.attrs.get("units", "")),
            str(stored.attrs.get("long_name", "")),
        )
        for name, stored in group.items()
        if isinstance(stored, h5py.Dataset) and not stored.attrs.get("NAME", b"").startswith(_NO_VARIABLE)
    }
    noted = {name: value for name, value in group.attrs.items() if not name.startswith("_N")}  # _NCProperties
    return Sheet(variables, {name: value[0] if np.shape(value) == (1,) else value for name, value in noted.items()})


def _dims(name: str, stored: h5py.Dataset) -> tuple[str, ...]:
    """The axes of a variable; one that is itself an axis has its own name."""
    if stored.is_scale:
        return (name,)
    return tuple(str(dim[0].name).rsplit("/", 1)[-1] for dim in stored.dims)
