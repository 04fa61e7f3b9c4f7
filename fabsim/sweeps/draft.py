"""A program while it is gathered: what its scenarios have in common, and which leaves they have of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from fabsim.engine.batch import Widths
from fabsim.errors import InputError
from fabsim.scenario.batch import Compiler, Member
from fabsim.scenario.compile.memory import needed_by
from fabsim.scenario.scenario import Scenario
from fabsim.study.devices import side_by_side
from fabsim.sweeps.design import Design
from fabsim.typing import Int

SHARD = 256
"""Scenarios of a shard, at most: what is lost when a process is killed. Devices that advance more at once get more."""

PLACES = 4
"""Places of an axis that are looked at to see which leaves it changes."""


@dataclass(frozen=True)
class Program:
    """One compiled program.

    Attributes:
        about: what its scenarios are, in words.
        points: how many there are.
        size: of a shard.
        widths: least lengths of the padded tables.
        differs: leaves of problem and model, by number, that its scenarios have of their own.
        need: bytes that one scenario needs while it runs.
        hops: subflow-hops that advance in one step of one scenario.
        example: the number of one of them.
    """

    about: str
    points: int
    size: int
    widths: Widths
    differs: tuple[int, ...]
    need: float
    hops: int
    example: int

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Program:
        """The reverse of `data`."""
        return cls(**{**data, "widths": Widths(**data["widths"]), "differs": tuple(data["differs"])})


@dataclass
class Draft:
    """What becomes a program.

    Attributes:
        alike: whether the scenarios of a shard have one network; each structure then has shards of its own.
        groups: points that are cut into shards by themselves.
    """

    alike: bool
    groups: list[Int] = field(default_factory=list)
    _widths: Widths = field(default_factory=Widths)
    _differs: set[int] = field(default_factory=set)
    _first: Member | None = None

    def add(self, points: Int, members: Sequence[Member]) -> None:
        """One more structure, with some of its members."""
        self._first = self._first or members[0]
        against = _leaves(members[0] if self.alike else self._first)
        for member in members:
            self._widths |= Widths.of(member.shared.problem)
            self._differs |= {number for number, pair in enumerate(zip(_leaves(member), against, strict=True))
                              if not _equal(*pair)}  # fmt: skip
        self.groups = [*self.groups, points] if self.alike or not self.groups else [np.append(self.groups[0], points)]

    def program(self, wanted: int | None, mesh: Mesh, memory: float) -> Program:
        """Its size is what is wanted, or what the memory (bytes of each device) and a shard may hold."""
        assert self._first is not None
        member, most = self._first, max(map(len, self.groups))
        need = needed_by(member.shared.problem)
        fits = max(int(memory / need), 1) * mesh.size
        size = min(wanted or max(SHARD, side_by_side(mesh) * mesh.size), fits, most)
        size = -(-most // -(-most // size))  # as many in each
        problem, scenario = member.shared.problem, member.scenario
        paths = int(problem.first.shape[1])
        kinds = f"{scenario.fabric.kind}, {scenario.routing.kind}, {scenario.transport.kind}"
        return Program(
            about=f"{kinds}: {problem.flows} flows over {paths} path{'s' * (paths > 1)}",
            points=sum(map(len, self.groups)),
            size=size,
            widths=self._widths,
            differs=tuple(sorted(self._differs)),
            need=need,
            hops=problem.flows * (int(problem.at.row.shape[0]) * paths + problem.planes),
            example=int(self.groups[0][0]),
        )


def members_of(
    single: Scenario, design: Design, points: Int, compiler: Compiler
) -> tuple[list[Member], dict[int, str]]:
    """Some scenarios of a structure, enough to see every leaf that differs; or why none of them can be built."""
    members: list[Member] = []
    refused: dict[int, str] = {}
    chosen = examples(design, points)
    for number in [*chosen, *np.setdiff1d(points, chosen)]:
        if members and number not in chosen:
            break
        try:
            members.append(compiler.compile(design.scenario(single, int(number))))
        except InputError as error:
            refused[int(number)] = str(error)
    return members, {} if members else refused


def examples(design: Design, points: Int) -> Int:
    """The first of some points, and for each axis some at other places of it."""
    found = [points[:1]]
    for places in design.places(points):
        _, index = np.unique(places, return_index=True)
        found.append(points[np.sort(index)[1 : PLACES + 1]])
    return np.unique(np.concatenate(found))


def _leaves(member: Member) -> list[Any]:
    return jax.tree.leaves((member.shared.problem, member.model))


def _equal(one: Any, other: Any) -> bool:
    return one is other or np.array_equal(np.asarray(one), np.asarray(other))
