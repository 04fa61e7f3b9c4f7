"""The links whose series a sweep keeps: by name, since the networks of its points may differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.scenario.batch import Member
from fabsim.study.catalogue import series_of
from fabsim.topology import Fabric, find_links, link_names
from fabsim.typing import Int
from fabsim.units import show_time

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario


class Watch:
    """Gathers the names of the links that `sweep: watch:` means, from one member of each structure."""

    def __init__(self, scenario: Scenario) -> None:
        section = scenario.sweep
        self._source = scenario.source
        self._patterns = () if section is None else section.watch
        self._series = series_of(() if section is None else section.traces)
        self._found: list[dict[str, None]] = [{} for _ in self._patterns]
        self._refusals: list[InputError | None] = [None] * len(self._patterns)
        self._frames: dict[float, None] = {}

    def look(self, member: Member) -> None:
        """One more network."""
        if not self._series:
            return
        dt = float(member.shared.problem.dt)
        self._frames[round(member.scenario.steps_of_frame(dt) * dt, 12)] = None
        fabric = member.shared.net.fabric
        names = link_names(fabric)
        for number, pattern in enumerate(self._patterns):
            try:
                self._found[number] |= dict.fromkeys(names[link] for link in find_links(fabric, pattern))
            except InputError as error:
                self._refusals[number] = error

    def links(self) -> tuple[str, ...]:
        """Their names. Raises InputError for a pattern that fits no network, and for frames that differ in length."""
        wrong = [
            self._source.sentence(("sweep", "watch", number), text)
            for number, (found, error) in enumerate(zip(self._found, self._refusals, strict=True))
            if error is not None and not found
            for text in error.sentences
        ]
        if len(self._frames) > 1:
            told = " and ".join(map(show_time, list(self._frames)[:2]))
            text = f"{self._series[0]} has one axis of time, and frames of {told} are asked for; give one dt and every"
            wrong.append(self._source.sentence(("sweep", "traces"), text))
        if wrong:
            raise InputError(wrong)
        return tuple(dict.fromkeys(name for found in self._found for name in found))


def numbers(members: Sequence[Member], watched: Sequence[str]) -> Int | None:
    """[members, W] the links of these names; -1 where a fabric has none. None where nothing is watched."""
    if not watched:
        return None
    known: dict[int, list[int]] = {}

    def row(fabric: Fabric) -> list[int]:
        if id(fabric) not in known:
            place = {name: number for number, name in enumerate(link_names(fabric))}
            known[id(fabric)] = [place.get(name, -1) for name in watched]
        return known[id(fabric)]

    return np.array([row(member.shared.net.fabric) for member in members])
