"""An ensemble: one scenario under several seeds, as one batch. One draw of the paths says little of the tail."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabsim.results import Ensemble
from fabsim.scenario.batch import figures, networks
from fabsim.store import Variable

if TYPE_CHECKING:
    from fabsim.scenario.compile import Network
    from fabsim.scenario.scenario import Scenario


def ensemble(scenario: Scenario, *, progress: bool = True) -> Ensemble:
    """The headline figures of `scenario.seeds` seeds, from the scenario's own on.

    Raises:
        InputError: a seed for which the scenario contradicts itself, or too little memory.
        Stopped: no seed came to its end.
    """
    from fabsim.study.sweep import METRICS

    seeds = [scenario.seed + number for number in range(scenario.seeds)]
    members = [scenario.change({"seed": seed}) for seed in seeds]
    nets = networks(members, progress=progress)
    different = len(seeds)
    by_chance = getattr(scenario.transport, "chance", 0.0) > 0
    if not by_chance and all(_same(nets[0], net) for net in nets[1:]):
        warnings.warn(f"{scenario.name}: nothing in it is drawn, so all {len(seeds)} seeds are one run", stacklevel=3)
        different = 1
    found = figures(members[:different], nets[:different], progress=progress)
    every = {name: np.resize(values, len(seeds)) for name, values in found.items()}
    return Ensemble(
        np.array(seeds), {name: Variable(("seed",), every[name], *about) for name, about in METRICS.items()}
    )


def _same(one: Network, other: Network) -> bool:
    """Whether two networks have the same flows on the same paths."""
    pairs: Sequence[tuple[np.ndarray, np.ndarray]] = (
        (one.flows.src, other.flows.src),
        (one.flows.dst, other.flows.dst),
        (one.routes.path, other.routes.path),
        (one.routes.weight, other.routes.weight),
    )
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)
