"""fabsim: a fluid simulator of GPU fabrics. The public names, each imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabsim.datasets import open
    from fabsim.engine.simulate import simulate
    from fabsim.errors import InputError, Stopped
    from fabsim.results import Result
    from fabsim.scenario import Scenario, load
    from fabsim.scenario.run import run
    from fabsim.sweeps.sweep import sweep
    from fabsim.tuning.tune import tune

_HOME = {
    "InputError": "fabsim.errors",
    "Result": "fabsim.results",
    "Scenario": "fabsim.scenario",
    "Stopped": "fabsim.errors",
    "load": "fabsim.scenario",
    "open": "fabsim.datasets",
    "run": "fabsim.scenario.run",
    "simulate": "fabsim.engine.simulate",
    "sweep": "fabsim.sweeps.sweep",
    "tune": "fabsim.tuning.tune",
}

__all__ = ["InputError", "Result", "Scenario", "Stopped", "load", "open", "run", "simulate", "sweep", "tune"]


def __getattr__(name: str) -> Any:
    """Import the home of a public name."""
    if name not in _HOME:
        raise AttributeError(f"module 'fabsim' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
