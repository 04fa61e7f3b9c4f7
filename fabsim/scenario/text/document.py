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
        """The whole scenario as YAML, defaults and overrides included; it loads again to an equal scenario."""
        return yaml_text(self.model_dump(exclude_none=True))
