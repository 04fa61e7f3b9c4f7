"""The driver: plan, run shard by shard, keep each at once, and put all together."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from fabsim import journal
from fabsim.errors import InputError, Stopped
from fabsim.journal import Journal
from fabsim.scenario.batch import Compiler
from fabsim.scenario.compile.files import checksums
from fabsim.scenario.scenario import refuse_unloaded
from fabsim.store import check_folder
from fabsim.study.devices import over
from fabsim.study.outcomes import out_of_memory
from fabsim.sweeps.ahead import ahead
from fabsim.sweeps.design import Design, design
from fabsim.sweeps.draft import Program
from fabsim.sweeps.keeper import Keeper, Memory
from fabsim.sweeps.plan import Plan, plan
from fabsim.sweeps.preview import trace_lines
from fabsim.sweeps.ranks import Rank
from fabsim.sweeps.same import refuse_another
from fabsim.sweeps.whole import dataset, metrics_of, whole
from fabsim.sweeps.work import Gathered, gathered, work

if TYPE_CHECKING:
    import xarray

    from fabsim.scenario.scenario import Scenario


def sweep(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    force: bool = False,
    rank: Rank | None = None,
    devices: int | None = None,
    progress: bool = True,
) -> xarray.Dataset:
    """Run the `sweep` of a scenario: every point of its design, in few programs, on all devices.

    Args:
        out: a folder in which everything that is finished is safe, and from which a sweep that was stopped goes on; in
            memory only, if not given.
        force: begin anew where `out` holds a sweep, of whatever scenario.
        rank: the part of the shards that this process does; all of them, if not given.
        devices: how many to spread batches over; all that JAX finds, if not given.
        progress: a bar on stderr, where that is a terminal.

    Returns:
        The figures over the axes of the design (an xarray Dataset), NaN where a run failed or another process is not
        done yet; `reason` says why.

    Raises:
        InputError: no sweep in the scenario, none of its points can be built, another sweep in `out`, `force` where
            several processes share a folder, or more devices than there are.
        Stopped: every point failed.
        OSError: the disk is full; what was finished stays.
    """
    refuse_unloaded(scenario, "sweep")
    if scenario.sweep is None:
        text = "sweep: this scenario has none; say what to vary under sweep: grid:"
        raise InputError(scenario.source.sentence((), text))
    if force and rank is not None and rank.count > 1:
        raise InputError("--force: one process of several would remove what the others do; remove the folder by hand")
    points, compiler = design(scenario), Compiler()
    text = scenario.resolved()
    kept, todo = _begin(scenario, text, points, compiler, out, force, devices, progress)
    for line in trace_lines(scenario, todo, points, compiler):
        tqdm.write(line, file=sys.stderr)
    while True:
        try:
            run_shards(scenario, points, todo, kept, compiler, rank or Rank(), devices=devices, progress=progress)
            break
        except TooLarge as error:
            tqdm.write(f"{error}; the sweep is planned anew", file=sys.stderr)
            todo = plan(scenario, points, compiler, devices, memory=error.enough, progress=progress)
            kept = kept.begun_anew({**_told(scenario, text), **todo.data()})
    complete = len(kept.done()) == len(todo.shards)  # before they are read: other processes go on
    sheet = whole(scenario, text, points, (found for _, found in kept.sheets()))
    found = dataset(sheet)
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
    force: bool,
    devices: int | None,
    progress: bool,
) -> tuple[Keeper, Plan]:
    """Where shards are kept, and the plan: that of the folder, if it has one for this scenario, and is not forced."""

    def planned() -> Plan:
        return plan(scenario, points, compiler, devices, progress=progress)

    if out is None:
        return Memory(), planned()
    found, told = journal.existing(out), _told(scenario, text)
    if found is None or force:
        check_folder(out, "a sweep")
        anew = {**told, **planned().data()}
        if found is not None:
            journal.forget(out)
        found = journal.begin(out, anew)
    refuse_another(told, found)
    for file in found.set_aside_corrupt():
        warnings.warn(f"{file}: not what was written there; it is set aside and done again", stacklevel=3)
    return found, Plan.of(found.plan)


def _told(scenario: Scenario, text: str) -> dict[str, Any]:
    """What makes the sweep of a folder the same as another one."""
    return {"scenario": text, "files": checksums(scenario)}


class TooLarge(Exception):
    """The first shard did not fit into memory; with so many bytes (`enough`) for the batch of a device it might."""

    def __init__(self, program: Program, devices: int | None) -> None:
        super().__init__(f"out of memory with {program.size} scenarios at a time")
        self.enough = 0.5 * program.need * program.size / over(devices).size


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
    """Run all shards of this rank that are not done, one after the other.

    Raises TooLarge for one that does not fit into memory, while the plan binds nobody: nothing is done, and there are
    no other ranks. Later such a shard runs in parts.
    """
    assert scenario.sweep is not None
    done = kept.done()
    mine = [number for number in range(len(todo.shards)) if rank.does(number)]
    total = sum(len(todo.shards[number].points) for number in mine)
    before = sum(len(todo.shards[number].points) for number in mine if number in done)
    single = scenario.single()
    left = [number for number in mine if number not in done]

    def ready(number: int) -> Gathered:
        return gathered(single, points, todo, compiler, todo.shards[number])

    with tqdm(
        total=total, initial=before, unit="scenario", desc="sweep", disable=None if progress else True, smoothing=0.1
    ) as bar:
        coming = ahead(ready, left)
        for number in left:
            program = todo.programs[todo.shards[number].program]
            settled = rank.count > 1 or program.size == 1 or bool(kept.done())
            try:
                sheet = work(
                    todo, next(coming), metrics=metrics_of(scenario), traces=scenario.sweep.traces,
                    parts=settled, devices=devices, bar=bar,
                )  # fmt: skip
            except (MemoryError, RuntimeError) as error:
                if settled or not out_of_memory(error):
                    raise
                raise TooLarge(program, devices) from error
            kept.put(number, sheet)
