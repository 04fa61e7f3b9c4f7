"""What a file says, and where it says it."""

from __future__ import annotations

from pathlib import Path

from pydantic import PrivateAttr

from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.text.source import Source
from fabsim.scenario.text.written import yaml_text


class Document(Sections):
    """The sections of a scenario, and the text behind them."""

    _source: Source = PrivateAttr(default_factory=lambda: Source("<scenario>", Path(), {}))

    @property
    def source(self) -> Source:
        """The text behind it: file, places of keys."""
        return self._source

    def file(self, name: str) -> Path:
        """A file that the scenario names; relative to the scenario's own folder."""
        return self._source.folder / name

    def steps_of_frame(self, dt: float) -> int:
        """`every` in whole steps of dt seconds."""
        return max(1, round(self.every / dt))

    def resolved(self) -> str:
        """The whole scenario as YAML, defaults and overrides included; it loads again to an equal scenario.

        A section whose `kind` varies stands as it was given: the defaults of one kind are not those of another.
        """
        varied = self._kinds_that_vary()
        given = self.model_dump(exclude_none=True, exclude_unset=True, include=varied)
        whole = self.model_dump(exclude_none=True, exclude=varied - given.keys())
        return yaml_text(whole | given)

    def _kinds_that_vary(self) -> set[str]:
        """Sections of which a sweep or a case changes a `kind`."""
        sweep = [] if self.sweep is None else [*(self.sweep.grid or {}), *(self.sweep.zip or {})]
        keys = [*sweep, *(key for case in self.cases.values() for key in case)]
        return {key.partition(".")[0] for key in keys if key.endswith(".kind")}
