"""The plan of a sweep in words: programs, batches, memory, and how long it will take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fabsim.engine.batch import Batch, batch
from fabsim.scenario.batch import Compiler, Member
from fabsim.scenario.keys.balancer import Oblivious
from fabsim.scenario.length import ideal_seconds, routed_seconds
from fabsim.study.advance import run_batch
from fabsim.study.catalogue import series_of
from fabsim.study.devices import free, over
from fabsim.sweeps.design import Design, design
from fabsim.sweeps.draft import Program
from fabsim.sweeps.plan import Plan, plan
from fabsim.sweeps.table import aligned
from fabsim.units import show_size, show_time

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

TRIED = 4
"""Programs of which a few steps are run to see how fast they are; the others are reckoned from them."""

STEPS = 50
"""Steps of such a trial."""

LONGER = 1.5
"""Queues, losses and windows make a run so much longer than its busiest link needs; a guess, and said to be one."""


def preview(scenario: Scenario, *, devices: int | None = None, progress: bool = True) -> str:
    """The text of --dry-run. Raises InputError as the sweep itself would."""
    points, compiler = design(scenario), Compiler()
    todo = plan(scenario, points, compiler, devices, progress=progress)
    head = ["program", "points", "batch", "shards", "memory", "time", "what"]
    rates = _rates(scenario, points, todo, compiler, devices)
    rows, total = [head], 0.0
    for number, program in enumerate(todo.programs):
        seconds = program.points * _work(scenario, points, program, compiler) / rates[min(number, len(rates) - 1)]
        total += seconds
        shards = sum(shard.program == number for shard in todo.shards)
        memory = show_size(program.need * program.size)
        rows.append(
            [
                str(number),
                f"{program.points:,}",
                str(program.size),
                str(shards),
                memory,
                show_time(seconds),
                program.about,
            ]
        )
    shape = " x ".join(f"{axis.size} {axis.name}" for axis in points.axes)
    lines = [f"{points.count:,} points: {shape}", *aligned(rows)]
    mesh = over(devices)
    where = "" if mesh.size == 1 else f" on each of {mesh.size} devices"
    lines.append(f"about {show_time(total)} in all, after compilation (guessed from a few steps); "
                 f"{show_size(free(mesh))} of memory are free{where}")  # fmt: skip
    lines += trace_lines(scenario, todo, points, compiler)
    lines += (
        [f"{len(todo.refused)} points cannot be built: {next(iter(todo.refused.values()))}"] if todo.refused else []
    )
    return "\n".join(lines)


def _work(scenario: Scenario, points: Design, program: Program, compiler: Compiler) -> float:
    """Subflow-hops times steps of one scenario."""
    member = compiler.compile(points.scenario(scenario.single(), program.example))
    return program.hops * _seconds(member) / float(member.shared.problem.dt)


def _seconds(member: Member) -> float:
    """s that a scenario is simulated, or may be until it is done."""
    scenario, net = member.scenario, member.shared.net
    if scenario.until != "done":
        return float(scenario.until)
    routed = isinstance(scenario.balancer, Oblivious)  # a balancer leaves slow links
    busy = float(routed_seconds(scenario, net).max()) if routed else ideal_seconds(scenario, net)
    return busy * LONGER


def _rates(scenario: Scenario, points: Design, todo: Plan, compiler: Compiler, devices: int | None) -> list[float]:
    """Subflow-hops per second of the first programs, batched as planned: the second of two trials."""
    rates = []
    for number, program in list(enumerate(todo.programs))[:TRIED]:
        shard = next(shard for shard in todo.shards if shard.program == number)
        members = [compiler.compile(points.scenario(scenario.single(), int(point))) for point in shard.points]
        problems = [member.shared.problem for member in members]
        one = batch(problems, [member.model for member in members], program.widths, program.differs)

        def trial(one: Batch = one, size: int = program.size) -> float:
            began = time.perf_counter()
            run_batch(one, until=STEPS * float(one.problem.dt), devices=devices, like=size)
            return time.perf_counter() - began

        trial()
        rates.append(program.hops * len(members) * STEPS / trial())
    return rates


def trace_lines(scenario: Scenario, todo: Plan, points: Design, compiler: Compiler) -> list[str]:
    """How large the traces are that were asked for; where nobody says when a run ends, as long as it may take."""
    if scenario.sweep is None or not scenario.sweep.traces:
        return []
    names, size, guessed = scenario.sweep.traces, 0.0, False
    over_time = len(series_of(names))
    for program in todo.programs:
        member = compiler.compile(points.scenario(scenario.single(), program.example))
        dt, width = float(member.shared.problem.dt), member.shared.problem.size.dtype.itemsize
        frames = -(-int(_seconds(member) / dt) // member.scenario.steps_of_frame(dt))
        guessed = guessed or (over_time > 0 and member.scenario.until == "done")
        each = (len(names) - over_time) * member.shared.problem.flows + over_time * frames * len(todo.watched)
        size += program.points * width * each
    about = "about " if guessed else ""
    links = f" of {len(todo.watched)} link{'s' * (len(todo.watched) > 1)}" if over_time else ""
    return [f"traces ({', '.join(names)}){links}: {about}{show_size(size)} before compression"]
