"""The driver: plan, run shard by shard, keep each at once, and put all together."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tqdm import tqdm

from fabsim import journal
from fabsim.errors import InputError, Stopped
from fabsim.journal import Journal
from fabsim.scenario.batch import Compiler
from fabsim.store import Sheet
from fabsim.sweeps.design import Design, design
from fabsim.sweeps.plan import Plan, plan
from fabsim.sweeps.preview import trace_lines
from fabsim.sweeps.ranks import Rank
from fabsim.sweeps.same import refuse_another
from fabsim.sweeps.whole import dataset, metrics_of, whole
from fabsim.sweeps.work import work

if TYPE_CHECKING:
    import xarray

    from fabsim.scenario.scenario import Scenario


class Keeper(Protocol):
    """Where shards are kept: a journal on the disk, or memory."""

    def done(self) -> dict[int, Any]: ...

    def put(self, number: int, sheet: Sheet) -> None: ...

    def sheets(self) -> Iterator[tuple[int, Sheet]]: ...


class Memory:
    """Shards of a sweep that nobody wants on the disk."""

    def __init__(self) -> None:
        self._sheets: dict[int, Sheet] = {}

    def done(self) -> dict[int, Sheet]:
        """The finished shards by number."""
        return self._sheets

    def put(self, number: int, sheet: Sheet) -> None:
        """Add a shard."""
        self._sheets[number] = sheet

    def sheets(self) -> Iterator[tuple[int, Sheet]]:
        """The finished shards, in order."""
        yield from sorted(self._sheets.items())


def sweep(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    rank: Rank | None = None,
    devices: int | None = None,
    progress: bool = True,
) -> xarray.Dataset:
    """Run the `sweep` of a scenario: every point of its design, in few programs, on all devices.

    Args:
        out: a folder in which everything that is finished is safe, and from which a sweep that was stopped goes on; in
            memory only, if not given.
        rank: the part of the shards that this process does; all of them, if not given.
        devices: how many to spread batches over; what suits the machine, if not given.
        progress: a bar on stderr, where that is a terminal.

    Returns:
        The figures over the axes of the design (an xarray Dataset), NaN where a run failed or another process is not
        done yet; `reason` says why.

    Raises:
        InputError: no sweep in the scenario, none of its points can be built, or another sweep in `out`.
        Stopped: every point failed.
        OSError: the disk is full; what was finished stays.
    """
    if scenario.sweep is None:
        text = "sweep: this scenario has none; say what to vary under sweep: grid:"
        raise InputError(scenario.source.sentence((), text))
    points, compiler = design(scenario), Compiler()
    text = scenario.resolved()
    kept, todo = _begin(scenario, text, points, compiler, out, devices, progress)
    for line in trace_lines(scenario, todo, points, compiler):
        tqdm.write(line, file=sys.stderr)
    run_shards(scenario, points, todo, kept, compiler, rank or Rank(), devices=devices, progress=progress)
    sheet = whole(scenario, text, points, (found for _, found in kept.sheets()))
    found = dataset(sheet)
    complete = len(kept.done()) == len(todo.shards)
    if isinstance(kept, Journal) and complete:
        kept.publish_whole(sheet)
    if complete and bool(found.failed.all()):
        raise Stopped(f"every point of the sweep failed, the first one: {found.reason.values.reshape(-1)[0]}")
    return found


def _begin(
    scenario: Scenario,
    text: str,
    points: Design,
    compiler: Compiler,
    out: str | Path | None,
    devices: int | None,
    progress: bool,
) -> tuple[Keeper, Plan]:
    """Where shards are kept, and the plan: that of the folder, if it has one for this scenario."""

    def planned() -> Plan:
        return plan(scenario, points, compiler, devices or 1, progress=progress)

    if out is None:
        return Memory(), planned()
    found = journal.existing(out)
    if found is None:
        found = journal.begin(out, {"scenario": text, **planned().data()})
    refuse_another(text, found)
    for file in found.set_aside_corrupt():
        warnings.warn(f"{file}: not what was written there; it is set aside and done again", stacklevel=3)
    return found, Plan.of(found.plan)


def run_shards(
    scenario: Scenario,
    points: Design,
    todo: Plan,
    kept: Keeper,
    compiler: Compiler,
    rank: Rank,
    *,
    devices: int | None,
    progress: bool,
) -> None:
    """Run all shards of this rank that are not done, one after the other."""
    assert scenario.sweep is not None
    done = kept.done()
    mine = [number for number in range(len(todo.shards)) if rank.does(number)]
    total = sum(len(todo.shards[number].points) for number in mine)
    before = sum(len(todo.shards[number].points) for number in mine if number in done)
    single = scenario.single()
    with tqdm(
        total=total, initial=before, unit="scenario", desc="sweep", disable=None if progress else True, smoothing=0.1
    ) as bar:
        for number in mine:
            if number in done:
                continue
            sheet = work(
                single, points, todo, todo.shards[number], compiler, metrics=metrics_of(scenario),
                traces=scenario.sweep.traces, devices=devices, bar=bar,
            )  # fmt: skip
            kept.put(number, sheet)
