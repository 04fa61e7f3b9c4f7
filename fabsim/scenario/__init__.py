"""Scenarios: what a person writes, checked and compiled."""

from fabsim.scenario.scenario import Scenario, load

__all__ = ["Scenario", "load"]
