"""What several commands share: the options of a scenario, the device, and where a picture goes."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabsim.errors import InputError
from fabsim.machine import ask_for_vectors, cores

if TYPE_CHECKING:
    import xarray

    from fabsim.results import Result
    from fabsim.scenario import Scenario

F = TypeVar("F", bound=Callable[..., Any])
OUT_FOLDER = "fabsim-out"


def scenario_options(command: F) -> F:
    """FILE, --set, --seed, --precision and --device."""
    for option in (
        device_option,
        click.option("--precision", type=click.Choice(["float32", "float64"]), help="Override the precision."),
        click.option("--seed", type=click.IntRange(min=0), help="Override the seed."),
        click.option(
            "--set",
            "changes",
            multiple=True,
            metavar="KEY=VALUE",
            help="Override a value, e.g. --set transport.window='1 BDP' (may be given several times). A case that has "
            "a value of its own keeps it.",
        ),
        click.argument("file", metavar="FILE"),
    ):
        command = option(command)
    return command


def device_option(command: F) -> F:
    """--device."""
    kinds = click.Choice(["cpu", "gpu", "tpu"])
    return click.option("--device", type=kinds, help="Where to compute; if not given, the best that there is.")(command)


def at_option(command: F) -> F:
    """--at."""
    text = "Of a sweep: only the points with this value (may be given several times)."
    return click.option("--at", "chosen", multiple=True, metavar="KEY=VALUE", help=text)(command)


def chosen_part(data: xarray.Dataset, pairs: Sequence[str]) -> xarray.Dataset:
    """The part of a sweep that --at asks for. Raises InputError."""
    from fabsim.swept import at

    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise InputError(f"--at {pair}: not KEY=VALUE; write it like --at transport.window='1 BDP'")
        data = at(data, {key.strip(): text.strip()})
    return data


def case_option(command: F) -> F:
    """--case."""
    text = "Of a run: one of its cases; all, if not given, where there is room for all, else the first."
    return click.option("--case", metavar="NAME", help=text)(command)


def chosen_cases(results: Sequence[Result], case: str | None, file: str) -> Sequence[Result]:
    """The case that --case asks for, else all of a file. Raises InputError."""
    found = [result for result in results if case in (None, result.name)]
    if not found:
        names = ", ".join(result.name for result in results)
        raise InputError(f"--case {case}: there is no such case in {file}; use {names}")
    return found


def load_scenario(file: str, changes: Sequence[str], seed: int | None, precision: str | None) -> Scenario:
    """The scenario of a file with the overrides of the command line. Raises InputError."""
    from fabsim.scenario.scenario import laid_over
    from fabsim.scenario.text.source import parse_value, read_file

    source = read_file(file)
    values: dict[str, Any] = {}
    faults: list[str] = []
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            faults.append(f"--set {change}: not KEY=VALUE; write it like --set transport.window='1 BDP'")
            continue
        try:
            values[key.strip()] = parse_value(text, f"--set {key.strip()}")
        except InputError as error:
            faults += error.sentences
    source = replace(source, errors=(*source.errors, *faults))
    named = {key: value for key, value in (("seed", seed), ("precision", precision)) if value is not None}
    places = {key: f"--set {key}" for key in values} | {key: f"--{key}" for key in named}
    return laid_over(source, values | named, places)


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs for the next call, per user and version, unless it has been told where already."""
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "fabsim" / f"jax-{jax.__version__}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a home that cannot be written to: every call compiles
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))


def use_device(kind: str | None, count: int | None = None) -> None:
    """Make JAX compute there; the CPU stands for `count` devices, for as many as it has cores if not given. Raises
    InputError where there is no such device."""
    ask_for_vectors()
    import jax

    keep_compiled_programs()
    if count is not None or not _said_how_many():
        with suppress(RuntimeError):  # JAX has started: with the devices that there are
            jax.config.update("jax_num_cpu_devices", count or cores())
    if kind is None:
        return
    try:
        device = jax.devices(kind)[0]
    except RuntimeError:
        there = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise InputError(f"--device {kind}: JAX finds no {kind} here, only {there}; see fabsim info") from None
    jax.config.update("jax_default_device", device)


def _said_how_many() -> bool:
    """Whether the user has told JAX how many devices a CPU is."""
    names = "JAX_NUM_CPU_DEVICES" in os.environ
    return names or "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")


def picture_place(given: str | None, name: str, force: bool) -> Path:
    """Where a picture goes: the given place, else ./fabsim-out, else (nothing may be written here) a new folder. In
    ./fabsim-out a picture of that name is replaced: the name tells what is drawn from what else is.

    Raises InputError for an ending that no picture has, and for a given place that has a file, unless `force` is on.
    """
    if given is not None:
        from fabsim.store import check_target

        if Path(given).suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError(f"{given}: a picture ends in .png, .svg or .pdf")
        check_target(given, force)
        return Path(given)
    file = f"{plain(name)}.png"
    folder = Path(OUT_FOLDER)
    try:
        folder.mkdir(exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder / file
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix=f"{OUT_FOLDER}-")) / file


def picture_name(file: str, *parts: str | None) -> str:
    """The name of a picture of a file or folder: what that is called from here, without its ending, and parts."""
    place = Path(file) if Path(file).is_dir() else Path(file).with_suffix("")
    return " ".join(filter(None, [os.path.relpath(place), *parts]))


def plain(name: str) -> str:
    """A name as part of one of a file: "my first" is my-first."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"


def plain_apart(names: Iterable[str]) -> dict[str, str]:
    """Each of several names as part of one of a file, no two the same: "A b" and "a-b" are a-b and a-b-2."""
    found: dict[str, str] = {}
    for name in names:
        tries = chain([plain(name)], (f"{plain(name)}-{number}" for number in count(2)))
        found[name] = next(word for word in tries if word not in found.values())
    return found
