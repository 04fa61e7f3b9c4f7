"""An ensemble: one scenario under several seeds, as one batch. One draw of the paths says little of the tail."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from fabsim.errors import Stopped
from fabsim.results import Ensemble
from fabsim.scenario.batch import Compiler, Member, run_all
from fabsim.store import Variable
from fabsim.study.catalogue import METRICS, metric

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.scenario import Scenario


def ensemble(scenario: Scenario, *, progress: bool = True) -> Ensemble:
    """The headline figures of `scenario.seeds` seeds, from the scenario's own on.

    Raises:
        InputError: a seed for which the scenario contradicts itself, or too little memory.
        Stopped: no seed came to its end.
    """
    seeds = [scenario.seed + number for number in range(scenario.seeds)]
    compiler = Compiler()
    with tqdm(total=len(seeds), unit="scenario", disable=None if progress else True, leave=False) as bar:
        members = [compiler.compile(scenario.change({"seed": seed})) for seed in seeds]
        if not _by_luck(members[0]) and all(_same(members[0].shared.net, member.shared.net) for member in members[1:]):
            text = f"{scenario.name}: nothing in it is drawn, so all {len(seeds)} seeds are one run"
            warnings.warn(text, stacklevel=3)
            members = members[:1]
        found = run_all(members, METRICS, bar=bar)
    if all(found.reasons):
        raise Stopped(f"no seed came to its end: {found.reasons[0]}")
    figures = {}
    for name in METRICS:
        about, values = metric(name), np.resize(found.figures[name], len(seeds))
        assert about is not None
        figures[name] = Variable(("seed",), values, about.unit, about.meaning)
    failed = np.resize([text != "" for text in found.reasons], len(seeds)).astype(np.int8)
    figures["failed"] = Variable(("seed",), failed, "", "1 where the run failed (figures are NaN), else 0")
    return Ensemble(np.array(seeds), figures)


def _by_luck(member: Member) -> bool:
    """Whether a law or a link knows the luck of packets, which is drawn by the seed."""
    from fabsim.engine.luck import loses_at_random

    law = bool(np.any(np.asarray(getattr(member.model.transport, "chance", 0.0)) > 0))
    return law or loses_at_random(member.shared.problem, member.model)


def _same(one: Network, other: Network) -> bool:
    """Whether two networks have the same flows on the same paths."""
    pairs: Sequence[tuple[np.ndarray, np.ndarray]] = (
        (one.flows.src, other.flows.src),
        (one.flows.dst, other.flows.dst),
        (one.routes.path, other.routes.path),
        (one.routes.weight, other.routes.weight),
    )
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)
