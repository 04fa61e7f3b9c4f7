"""A tuning from a scenario: what is tuned and over what, the descent, and its report."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.scenario.compile.files import checksums
from fabsim.scenario.keys.tune import Over, Tune
from fabsim.scenario.scenario import refuse_unloaded
from fabsim.store import check_folder
from fabsim.tuning.certificate import Task, Tuning, ended, figures, report, row, seconds_of
from fabsim.tuning.folder import JOURNAL
from fabsim.tuning.members import members
from fabsim.tuning.tunables import parameters
from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.objectives import Objective


def tune(scenario: Scenario, *, out: str | Path | None = None, force: bool = False, progress: bool = True) -> Tuning:
    """Run the `tune:` of a scenario.

    Args:
        out: a folder for the journal (journal.npz), written after each step, from which another call with the same
            scenario goes on; it is made if it is not there. Nothing else is written: tune.h5 (for `fabsim.open`), the
            tuned scenario (tuned.yaml) and pictures are of `fabsim tune FILE --out DIR`.
        force: begin anew where `out` holds the journal of a tuning.
        progress: bars on stderr, where that is a terminal.

    Returns:
        A fabsim.tuning.certificate.Tuning. SI units; G groups, K lanes, L links, S steps, R descents:
        `levels` by key, values at the start and tuned, each [G], or [G, K] of shares; `rows` with `name`, `busy` (s,
        busiest link at line rate) and `terms` (figures of the objective by name) of each way to set the parameters;
        `optimum` (s), below which no split brings the busiest link; `busy` [2, L] (s), each link at the start and
        tuned; `tuned.history` [S + 1, R], the objective over its value at the start, and `tuned.raw`, the raw numbers.

    Raises:
        InputError: the scenario has nothing to tune, or something that cannot be tuned; `out` is a file, cannot be
            made, or holds the journal of another tuning while `force` is off, or a journal that cannot be read.
        Stopped: a flow does not complete.
    """
    from fabsim.study.tune import Inert
    from fabsim.study.tune import tune as descend

    refuse_unloaded(scenario, "tune")
    journal = None if out is None else Path(out) / JOURNAL
    if journal is not None:
        check_folder(journal.parent, "a tuning")
    task = prepare(scenario, progress=progress)
    if journal is not None:
        journal.parent.mkdir(exist_ok=True)
        if force:
            journal.unlink(missing_ok=True)
    began = time.perf_counter()
    try:
        tuned = descend(
            task.batches, task.objective, task.plan, task.scales,
            journal=journal, stamp=stamp(scenario), progress=progress,
        )  # fmt: skip
    except Inert as refusal:
        raise InputError(instead(scenario, task, refusal.names)) from None
    seconds = time.perf_counter() - began
    found = report(scenario, task, tuned, seconds)
    over = scenario.tune.over if scenario.tune else None
    return with_healthy(scenario, found, task, progress) if over is not None and over.failures is not None else found


def plan_of(scenario: Scenario) -> Tune:
    """The section. Raises InputError where there is none."""
    if scenario.tune is None:
        raise InputError(scenario.source.sentence((), "tune: this scenario has none; say what to tune under tune:"))
    return scenario.tune


def prepare(scenario: Scenario, *, progress: bool = True, checkpoint: bool = True) -> Task:
    """Everything up to the first step. Raises InputError, Stopped."""
    from fabsim.study.cases import batches
    from fabsim.study.objectives import Objective
    from fabsim.study.plan import Plan
    from fabsim.study.tune import steps_for

    section = plan_of(scenario)
    refuse_optimiser(scenario, section)
    base, found = members(scenario, splits(section), progress=progress)
    rows = parameters(scenario, base, found)
    objective = Objective(section.objective, checkpoint=checkpoint)
    if not objective.simulated:
        first = [{"utilisation": float(seconds_of(one, one.model).max())} for one in found]
    else:
        first = [figures(one, objective) for one in found]
        last = max(steps_for(one.problem, start["last_completion"]) for one, start in zip(found, first, strict=True))
        every = max(10, round(math.sqrt(last)))  # memory: as many frames as steps in a frame
        objective = replace(objective, steps=last, every=every)
    over = section.over or Over()
    plan = Plan(
        optimiser=section.optimiser, learning_rate=section.learning_rate, schedule=section.schedule,
        steps=section.steps, restarts=section.restarts, tolerance=section.tolerance, patience=section.patience,
        measure=over.measure, share=over.share, seed=scenario.seed,
    )  # fmt: skip
    groups = batches([(one.problem, one.model) for one in found], rows, [one.entry for one in found])
    return Task(plan, objective, scales(scenario, objective, first), base, found, rows, groups, progress)


def refuse_faults(scenario: Scenario) -> None:
    """Everything that would keep a tuning from its first step and is known without a run: for `fabsim check`.

    Raises InputError.
    """
    section = plan_of(scenario)
    refuse_optimiser(scenario, section)
    base, found = members(scenario, splits(section), progress=False)
    parameters(scenario, base, found)


def refuse_optimiser(scenario: Scenario, section: Tune) -> None:
    """Raises InputError for a rule of descent that is not there."""
    from fabsim.study.plan import optimiser

    try:
        optimiser(section.optimiser, section.learning_rate, section.schedule, section.steps)
    except InputError as error:
        raise InputError(scenario.source.sentence(("tune", "optimiser"), str(error))) from None


def splits(section: Tune) -> bool:
    """Whether shares of paths are tuned."""
    return any(entry.key == "split.weight" for entry in section.changes)


def scales(scenario: Scenario, objective: Objective, first: Sequence[dict[str, float]]) -> Float:
    """[terms] the value of each term at the start, on average. Raises InputError for one that is zero already."""
    found = np.array([np.mean([one[name] for one in first]) for name, _ in objective.weights])
    for (name, _), value in zip(objective.weights, found, strict=True):
        if value == 0:
            raise InputError(scenario.source.sentence(("tune", "objective"), f"{name} is zero at the start already: "
                                                      "there is nothing to make smaller; leave it out"))  # fmt: skip
    return found


def stamp(scenario: Scenario) -> str:
    """What a journal must be about to be gone on from."""
    told = json.dumps([scenario.resolved(), checksums(scenario)])
    return hashlib.sha256(told.encode()).hexdigest()


def instead(scenario: Scenario, task: Task, names: Sequence[str]) -> list[str]:
    """A sentence for each parameter that changes nothing: its place, and what does change something."""
    from fabsim.tuning.attribute import felt

    rest = [name for name in felt(task.base, task.objective) if name not in names]
    use = f"tune {', '.join(rest)} instead" if rest else "nothing else does, either"
    keys = [entry.key for entry in plan_of(scenario).changes]
    text = "its gradient is exactly zero: the objective does not depend on it here"
    return [
        scenario.source.sentence(("tune", "parameters", keys.index(name), "key"), f"{name}: {text}; {use}")
        for name in names
    ]


def with_healthy(scenario: Scenario, found: Tuning, task: Task, progress: bool) -> Tuning:
    """A row more: what the tuning for the fabric in which nothing fails is worth over the same failures."""
    from fabsim.study.tune import tune as descend

    section = plan_of(scenario)
    over = section.over
    assert over is not None
    alone = {key: value for key, value in scenario.source.data["tune"]["over"].items() if key != "failures"}
    healthy = prepare(scenario.change({"tune.over": alone}), progress=progress)
    tuned = descend(healthy.batches, healthy.objective, healthy.plan, healthy.scales, progress=progress)
    ends = [ended(one, parts, tuned.raw) for one, parts in zip(task.members, task.parameters, strict=True)]
    more = row("tuned, healthy fabric", task, [model for _, model in ends], [problem for problem, _ in ends])
    place = next(number for number, one in enumerate(found.rows) if one.name == "tuned")
    return replace(found, rows=[*found.rows[:place], more, *found.rows[place:]])
