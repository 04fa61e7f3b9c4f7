"""The plan of a sweep: which programs it needs, and which points each of its shards holds. Made once, kept in the
journal, and the same for every process that works on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fabsim.engine.batch import shape_of
from fabsim.errors import InputError
from fabsim.scenario.batch import Compiler
from fabsim.study.devices import free, over
from fabsim.sweeps.design import Design
from fabsim.sweeps.draft import SHARD, Draft, Program, members_of
from fabsim.sweeps.structure import structures
from fabsim.sweeps.watch import Watch
from fabsim.typing import Int

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

SHARE = 0.5
"""Part of the free memory that a batch may take, by what one of its scenarios needs."""

ALIKE = 8
"""Points of a structure from which it has shards of its own: so many run side by side even where networks differ."""


@dataclass(frozen=True)
class Shard:
    """Points that are run together and kept in one file; program -1: they cannot be built."""

    program: int
    points: Int


@dataclass(frozen=True)
class Plan:
    """Programs, shards, why some points (by number) cannot be built, and the links whose series are kept."""

    programs: tuple[Program, ...]
    shards: tuple[Shard, ...]
    refused: dict[int, str]
    watched: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "programs": [program.data() for program in self.programs],
            "shards": [[shard.program, shard.points.tolist()] for shard in self.shards],
            "refused": {str(number): text for number, text in self.refused.items()},
            "watched": self.watched,
        }

    @classmethod
    def of(cls, data: dict[str, Any]) -> Plan:
        """The reverse of `data`."""
        programs = tuple(Program.of(entry) for entry in data["programs"])
        shards = tuple(Shard(program, np.array(points, dtype=np.int64)) for program, points in data["shards"])
        refused = {int(number): text for number, text in data["refused"].items()}
        return cls(programs, shards, refused, tuple(data["watched"]))


def plan(
    scenario: Scenario,
    design: Design,
    compiler: Compiler,
    devices: int | None,
    *,
    memory: float | None = None,
    progress: bool = True,
) -> Plan:
    """Build some scenarios of each structure; gather those of one shape into programs, and cut these into shards.

    A structure with many points has shards of its own, whose scenarios share one network: that is the faster program.
    A point that cannot be built is kept with its reason and stops nobody. devices: to spread batches over; all, if not
    given. memory: bytes that a batch may take of each; half of what is free there, if not given. Raises InputError if
    no point can be built, or where the links to watch are in no fabric.
    """
    mesh = over(devices)
    memory = SHARE * free(mesh) if memory is None else memory
    single = scenario.single()
    drafts: dict[Any, Draft] = {}
    refused: dict[int, str] = {}
    watch = Watch(scenario)
    groups = list(structures(design))
    for points in tqdm(groups, unit="network", desc="plan", disable=None if progress else True, leave=False):
        members, wrong = members_of(single, design, points, compiler)
        refused |= wrong
        if members:
            alike = len(points) >= ALIKE
            first = members[0]
            how_long = first.scenario.until, first.scenario.every  # a batch goes on for one time, in frames of one
            shape = shape_of(first.shared.problem, first.model)
            drafts.setdefault((alike, shape, how_long), Draft(alike)).add(points, members)
            watch.look(first)
    if not drafts:
        raise InputError(next(iter(refused.values())))
    wanted = None if scenario.sweep is None else scenario.sweep.batch
    programs = tuple(draft.program(wanted, mesh, memory) for draft in drafts.values())
    shards = [
        Shard(number, points)
        for number, draft in enumerate(drafts.values())
        for group in draft.groups
        for points in cut(group, programs[number].size)
    ]
    shards += [Shard(-1, points) for points in cut(np.array(sorted(refused), dtype=np.int64), SHARD)]
    return Plan(programs, tuple(shards), refused, watch.links())


def cut(points: Int, size: int) -> Iterator[Int]:
    """Pieces of a size, the last one shorter."""
    for begin in range(0, len(points), max(size, 1)):
        yield points[begin : begin + size]
