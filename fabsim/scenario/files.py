"""Files that a scenario names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fabsim.scenario.source import KeyPath, PlacedError

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario


def existing(scenario: Scenario, where: KeyPath, name: str) -> Path:
    """A file that the scenario names under the key `where`. Raises InputError where it is not there."""
    path = scenario.file(name)
    if not path.is_file():
        text = f"there is no file {str(path)!r}; paths start at the folder of the scenario"
        raise PlacedError(scenario.source.sentence(where, text))
    return path
