"""The plan of a sweep: which programs it needs, and which points each of its shards holds. Made once, kept in the
journal, and the same for every process that works on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fabsim.errors import InputError
from fabsim.scenario.batch import Compiler, Member
from fabsim.scenario.memory import available, needed_by
from fabsim.study.batch import Widths, shape_of
from fabsim.sweeps.design import Design
from fabsim.sweeps.structure import structures
from fabsim.typing import Int

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

SHARE = 0.5
"""Part of the free memory that a batch may take, by what one of its scenarios needs."""

SHARD = 256
"""Most scenarios of a shard: what is lost when a process is killed."""


@dataclass(frozen=True)
class Program:
    """One compiled program.

    Attributes:
        about: what its scenarios are, in words.
        points: how many there are.
        size: of a batch.
        widths: of the padded tables.
        need: bytes that one scenario needs while it runs.
        hops: subflow-hops that advance in one step of one scenario.
        example: the number of one of them.
    """

    about: str
    points: int
    size: int
    widths: Widths
    need: float
    hops: int
    example: int


@dataclass(frozen=True)
class Shard:
    """Points that are run together and kept in one file; program -1: they cannot be built."""

    program: int
    points: Int


@dataclass(frozen=True)
class Plan:
    """Programs, shards, and why some points (by number) cannot be built."""

    programs: tuple[Program, ...]
    shards: tuple[Shard, ...]
    refused: dict[int, str]

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "programs": [asdict(program) for program in self.programs],
            "shards": [[shard.program, shard.points.tolist()] for shard in self.shards],
            "refused": {str(number): text for number, text in self.refused.items()},
        }

    @classmethod
    def of(cls, data: dict[str, Any]) -> Plan:
        """The reverse of `data`."""
        programs = [Program(**{**entry, "widths": Widths(**entry["widths"])}) for entry in data["programs"]]
        shards = [Shard(program, np.array(points, dtype=np.int64)) for program, points in data["shards"]]
        return cls(tuple(programs), tuple(shards), {int(number): text for number, text in data["refused"].items()})


@dataclass
class _Draft:
    """A program while it is gathered: an example, its points, and the widest tables."""

    example: Member
    first: int
    widths: Widths
    points: list[Int]


def plan(scenario: Scenario, design: Design, compiler: Compiler, devices: int, *, progress: bool = True) -> Plan:
    """Build one scenario of each structure; gather those of one shape into programs, and cut these into shards.

    A point that cannot be built is kept with its reason and stops nobody. Raises InputError if none can be built.
    """
    single = scenario.single()
    drafts: dict[Any, _Draft] = {}
    refused: dict[int, str] = {}
    groups = list(structures(design))
    for points in tqdm(groups, unit="network", desc="plan", disable=None if progress else True, leave=False):
        try:
            member = compiler.compile(single.change(design.values(int(points[0]))))
        except InputError as error:
            refused |= dict.fromkeys(points.tolist(), str(error))
            continue
        shape = shape_of(member.shared.problem, member.model)
        draft = drafts.setdefault(shape, _Draft(member, int(points[0]), Widths(), []))
        draft.widths |= Widths.of(member.shared.problem)
        draft.points.append(points)
    if not drafts:
        raise InputError(next(iter(refused.values())))
    wanted = None if scenario.sweep is None else scenario.sweep.batch
    programs = [_program(draft, wanted, devices) for draft in drafts.values()]
    shards = [
        Shard(number, points)
        for number, (draft, program) in enumerate(zip(drafts.values(), programs, strict=True))
        for points in cut(np.concatenate(draft.points), program.size)
    ]
    shards += [Shard(-1, points) for points in cut(np.array(sorted(refused), dtype=np.int64), SHARD)]
    return Plan(tuple(programs), tuple(shards), refused)


def _program(draft: _Draft, wanted: int | None, devices: int) -> Program:
    member, points = draft.example, sum(map(len, draft.points))
    need = needed_by(member)
    fits = max(int(SHARE * available() / need), 1) * devices
    size = min(wanted or SHARD, fits, points)
    shards = -(-points // size)
    size = -(-points // shards)  # as many in each, so that little is filled up
    problem, scenario = member.shared.problem, member.scenario
    paths = int(problem.first.shape[1])
    about = (
        f"{scenario.fabric.kind}, {scenario.routing.kind}, {scenario.transport.kind}: "
        f"{problem.flows} flows over {paths} path{'s' * (paths > 1)}"
    )
    hops = problem.flows * (int(problem.at.row.shape[0]) * paths + problem.planes)
    return Program(about, points, size, draft.widths, need, hops, draft.first)


def cut(points: Int, size: int) -> Iterator[Int]:
    """Pieces of a size, the last one shorter."""
    for begin in range(0, len(points), max(size, 1)):
        yield points[begin : begin + size]
