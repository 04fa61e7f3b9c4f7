"""`fabsim attribute`: which links, tiers, hosts and buffers the objective depends on, and whether that holds true."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import InputError
from fabsim.scenario.keys.tune import OBJECTIVES
from fabsim.topology import Fabric, link_names
from fabsim.tuning.certificate import figures
from fabsim.tuning.member import Member
from fabsim.tuning.members import member
from fabsim.typing import Float

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.objectives import Objective

CHANGE = 0.1
"""The change of a rate that is foretold and run."""
CHECKED = 5
"""Links whose foretold changes are really run."""
UNSEEN = 1e-12
"""Elasticities below this are roundings."""


@dataclass(frozen=True)
class Trial:
    """A link with another rate. Parts of the objective: -0.02 is 2 % less."""

    link: int
    faster: float
    faster_run: float
    slower: float
    slower_run: float


@dataclass(frozen=True)
class Attribution:
    """Elasticities of an objective; -0.3: 1 % more of this, 0.3 % less of the objective.

    Attributes:
        objective: its name.
        value: true, SI units.
        fabric: whose links and buffers these are.
        capacity, latency, buffer: [L] by the rate, latency and buffer of each link.
        trials: of the links with the largest.
        inert: keys on which nothing depends.
    """

    objective: str
    value: float
    fabric: Fabric
    capacity: Float
    latency: Float
    buffer: Float
    trials: list[Trial]
    inert: list[str]

    def tiers(self, values: Float) -> dict[str, float]:
        """Sums over the links from one tier to another."""
        fabric, found = self.fabric, {}
        ends = np.stack([fabric.tier[fabric.src], fabric.tier[fabric.dst]], 1)
        for tail, head in np.unique(ends, axis=0).tolist():
            found[f"tier {tail} to {head}"] = float(values[(ends == (tail, head)).all(1)].sum())
        return found

    def hosts(self) -> Float:
        """[hosts] sums over the links of each host, both ways, by their rate."""
        fabric, sums = self.fabric, np.zeros(self.fabric.hosts)
        for end in (fabric.src, fabric.dst):
            mine = end < fabric.hosts
            np.add.at(sums, end[mine], self.capacity[mine])
        return sums


def attribute(scenario: Scenario, objective: str = "last_completion", *, checked: int = CHECKED) -> Attribution:
    """One backward pass, and runs of the links with the largest elasticities.

    Raises:
        InputError: no such objective, or one that is zero here.
        Stopped: the run does not end.
    """
    one, value, slope = backward(scenario, objective)
    capacity = np.asarray(slope.links.capacity, float)
    order = np.argsort(-np.abs(capacity), kind="stable")[:checked].tolist()
    largest = [link for link in order if abs(capacity[link]) > UNSEEN]
    return Attribution(
        objective=objective,
        value=value,
        fabric=one.net.fabric,
        capacity=capacity,
        latency=np.asarray(slope.links.latency, float),
        buffer=np.asarray(slope.queue.buffer, float).reshape(-1, len(capacity)).sum(0),  # of all classes of traffic
        trials=[trial(one, objective, value, link, float(capacity[link])) for link in largest],
        inert=inert(scenario, slope),
    )


def backward(scenario: Scenario, objective: str) -> tuple[Member, float, Any]:
    """The scenario with its arrays, the true objective, and the model of elasticities."""
    from fabsim.study.objectives import Objective

    if objective not in OBJECTIVES:
        raise InputError(f"--objective {objective}: there is no such objective; use {', '.join(OBJECTIVES)}")
    one = member(scenario, split=False)
    terms = Objective(((objective, 1.0),))
    found = figures(one, terms)
    if found[objective] == 0:
        raise InputError(f"--objective {objective}: is zero in this scenario; there is nothing to explain")
    steps = math.ceil(found["last_completion"] / float(one.problem.dt)) + one.problem.ring
    terms = replace(terms, steps=steps, every=max(10, round(math.sqrt(steps))))
    return one, found[objective], slope_of(one, terms)


def slope_of(one: Member, objective: Objective) -> Any:
    """The model of elasticities."""
    import jax.numpy as jnp

    from fabsim.study.attribute import elasticities

    entries = int(one.entry.max()) + 1
    return elasticities(one.problem, one.model, jnp.asarray(one.entry), objective=objective, entries=entries)[1]


def felt(one: Member, objective: Objective) -> list[str]:
    """The keys on which an objective depends."""
    leaves = keys_of(one.scenario, slope_of(one, objective))
    return [name for name, leaf in leaves.items() if np.asarray(leaf).any() and name != "links.latency"]


def trial(one: Member, objective: str, value: float, link: int, elasticity: float) -> Trial:
    """Run with the link faster and slower, beside what its elasticity foretells."""
    from fabsim.study.objectives import Objective

    def part(factor: float) -> float:
        rate = one.model.links.capacity.at[link].multiply(factor)
        model = replace(one.model, links=replace(one.model.links, capacity=rate))
        return figures(one, Objective(((objective, 1.0),)), model)[objective] / value - 1

    up, down = 1 + CHANGE, 1 - CHANGE
    return Trial(link, up**elasticity - 1, part(up), down**elasticity - 1, part(down))


def keys_of(scenario: Scenario, slope: Any) -> dict[str, Any]:
    """The leaves of a model by the keys that set them; what no key of the scenario sets is left out."""
    leaves = {"links.capacity": slope.links.capacity, "links.latency": slope.links.latency}
    leaves["split.weight"] = slope.split.weight
    for section in ("queue", "transport", "recovery"):
        part, keys = getattr(slope, section), getattr(scenario, section)
        names = [] if part is None else [x.name for x in dataclasses.fields(part) if hasattr(keys, x.name)]
        leaves |= {f"{section}.{name}": getattr(part, name) for name in names}
    return {name: leaf for name, leaf in leaves.items() if hasattr(leaf, "dtype")}


def inert(scenario: Scenario, slope: Any) -> list[str]:
    """Keys whose gradient is exactly zero: no small change of them changes anything here."""
    return [name for name, leaf in keys_of(scenario, slope).items() if not np.asarray(leaf).any()]


def as_text(found: Attribution, top: int = 10) -> str:
    """Top links with what was really run, tiers, hosts and buffers."""
    from fabsim.study.objectives import FACTOR, TERMS

    names = link_names(found.fabric)
    unit = TERMS[found.objective].unit
    lines = [f"{found.objective}: {found.value * FACTOR[unit]:.3f} {unit}"]
    trials = {trial.link: trial for trial in found.trials}
    rows: list[tuple[str, ...]] = [("", "elasticity", "10 % faster: foretold", "run", "10 % slower: foretold", "run")]
    for link in np.argsort(-np.abs(found.capacity), kind="stable")[:top]:
        if abs(found.capacity[link]) <= UNSEEN:
            break
        each = trials.get(int(link))
        run: tuple[str, ...] = ("", "", "", "")
        if each is not None:
            run = tuple(f"{100 * x:+.2f} %" for x in (each.faster, each.faster_run, each.slower, each.slower_run))
        rows.append((names[link], f"{found.capacity[link]:+.4f}", *run))
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    lines += [
        "  ".join([f"{row[0]:<{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    lines.append("tiers, by rate:    " + _listed(found.tiers(found.capacity), top))
    lines.append("hosts, by rate:    " + _listed({f"h{n}": float(x) for n, x in enumerate(found.hosts())}, top))
    lines.append("tiers, by buffer:  " + _listed(found.tiers(found.buffer), top))
    lines.append("buffers:           " + _listed(dict(zip(names, found.buffer.tolist(), strict=True)), top))
    if found.inert:
        lines.append(f"no effect here:    {', '.join(found.inert)} (gradient exactly zero)")
    return "\n".join(lines)


def _listed(values: dict[str, float], top: int) -> str:
    some = sorted((item for item in values.items() if abs(item[1]) > UNSEEN), key=lambda item: -abs(item[1]))[:top]
    return ", ".join(f"{name} {value:+.4f}" for name, value in some) or "none"


def inert_line(scenario: Scenario) -> str:
    """For `fabsim check --inert`: the keys on which the last completion does not depend."""
    _, _, slope = backward(scenario, "last_completion")
    found = inert(scenario, slope)
    return f"  {'no effect':<12} {', '.join(found) or 'none'}: their gradient of the last completion is exactly zero"
