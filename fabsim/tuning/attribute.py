"""`fabsim attribute`: which links, tiers, hosts and buffers the objective depends on, and whether that holds true."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fabsim.errors import InputError, Stopped
from fabsim.scenario.keys.tune import OBJECTIVES
from fabsim.topology import Fabric
from fabsim.tuning.certificate import figures, seconds_of
from fabsim.tuning.member import Member
from fabsim.tuning.members import member
from fabsim.typing import Float, Int

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.objectives import Objective

CHANGE = 0.1
"""The change of a rate that is foretold and run."""
CHECKED = 5
"""Links whose foretold changes are really run, beside one of each tier."""
APART = 0.5
"""Part of the larger one by which foretold and run may differ before they are said to."""
SMALLEST = 1e-4
"""Changes of less than this part of the objective are not compared."""
LOST = "lost_bytes"
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

    @property
    def apart(self) -> bool:
        """Whether one of the changes was foretold wrong, by more than half."""
        pairs = ((self.faster, self.faster_run), (self.slower, self.slower_run))
        larger = [max(abs(told), abs(run), SMALLEST) for told, run in pairs]
        return any(abs(told - run) > APART * most for (told, run), most in zip(pairs, larger, strict=True))


@dataclass(frozen=True)
class Attribution:
    """Elasticities of an objective; -0.3: 1 % more of this, 0.3 % less of the objective.

    Attributes:
        objective: its name.
        value: true, SI units.
        lost: bytes that were lost and had to be sent again.
        fabric: whose links and buffers these are.
        capacity, latency, buffer: [L] by the rate, latency and buffer of each link.
        trials: of the links with the largest, and of one in each tier.
        inert: keys on which nothing depends.
    """

    objective: str
    value: float
    lost: float
    fabric: Fabric
    capacity: Float
    latency: Float
    buffer: Float
    trials: list[Trial]
    inert: list[str]

    @property
    def apart(self) -> list[int]:
        """Links of which runs contradict what is foretold."""
        return [trial.link for trial in self.trials if trial.apart]

    def tiers(self, values: Float) -> dict[str, float]:
        """Sums over the links from one tier to another."""
        return {name: float(values[links].sum()) for name, links in tiers(self.fabric).items()}

    def hosts(self) -> Float:
        """[hosts] sums over the links of each host, both ways, by their rate."""
        fabric, sums = self.fabric, np.zeros(self.fabric.hosts)
        for end in (fabric.src, fabric.dst):
            mine = end < fabric.hosts
            np.add.at(sums, end[mine], self.capacity[mine])
        return sums


def tiers(fabric: Fabric) -> dict[str, Int]:
    """The links from one tier to another, by name."""
    ends = np.stack([fabric.tier[fabric.src], fabric.tier[fabric.dst]], 1)
    pairs = np.unique(ends, axis=0).tolist()
    return {f"tier {tail} to {head}": np.flatnonzero((ends == (tail, head)).all(1)) for tail, head in pairs}


def attribute(
    scenario: Scenario, objective: str = "last_completion", *, checked: int = CHECKED, progress: bool = True
) -> Attribution:
    """One backward pass, and runs of the links with the largest elasticities and of one in each tier.

    Raises:
        InputError: no such objective, or one that is zero here.
        Stopped: the run does not end, or its gradient overflows.
    """
    with tqdm(total=1, unit="pass", desc="gradient", disable=None if progress else True, leave=False) as bar:
        one, found, slope = backward(stepped(scenario), objective)
        bar.update()
    capacity = np.asarray(slope.links.capacity, float)
    if not np.isfinite(capacity).all():
        wider = "; --precision float64 may do" if scenario.precision == "float32" else ""
        raise Stopped(f"the gradient of {objective} is not finite in {scenario.precision}{wider}")
    value = found[objective]
    links = to_run(one, capacity, checked)
    bar = tqdm(links, unit="link", desc="trials", disable=None if progress else True, leave=False)
    return Attribution(
        objective=objective,
        value=value,
        lost=found[LOST],
        fabric=one.net.fabric,
        capacity=capacity,
        latency=np.asarray(slope.links.latency, float),
        buffer=np.asarray(slope.queue.buffer, float).reshape(-1, len(capacity)).sum(0),  # of all classes of traffic
        trials=[trial(one, objective, value, link, float(capacity[link])) for link in bar],
        inert=inert(scenario, slope),
    )


def stepped(scenario: Scenario) -> Scenario:
    """The scenario with a step that is short enough for trials too: a faster link sends a packet in less time.

    Raises:
        InputError: the step that is given is longer than that.
    """
    from fabsim.engine.problem import STEP, first_links, longest_dt, path_latency

    net, packet = scenario.network(), scenario.packet.sizes
    rate = float(net.fabric.capacity[first_links(net.routes)].max())

    def longest_of(fabric: Fabric) -> float:
        latency, _, hops = path_latency(fabric, net.routes, packet, net.flows)
        return longest_dt(latency, hops, net.flows, packet, rate)

    longest = longest_of(net.fabric)
    needed = longest_of(replace(net.fabric, capacity=net.fabric.capacity * (1 + CHANGE)))
    given = scenario.dt != "auto"
    if (float(scenario.dt) if given else min(STEP, longest)) <= needed:
        return scenario
    fitting = f"{math.floor(needed * 1e11) / 100:g} ns"
    if given:
        text = f"is too long for links that are {100 * CHANGE:g} % faster, which are run here; {fitting} would do"
        raise InputError(scenario.source.sentence(("dt",), text))
    return scenario.change({"dt": fitting})


def to_run(one: Member, elasticity: Float, checked: int) -> list[int]:
    """The links with the largest elasticities, and of each tier that has none among them the first: of equal ones the
    busiest, so that a tier of which nothing is foretold is tried where most goes on."""
    order = np.lexsort((-seconds_of(one, one.model), -np.abs(elasticity)))
    largest = [int(link) for link in order[:checked] if abs(elasticity[link]) > UNSEEN]
    alive = one.net.fabric.capacity > 0
    for links in tiers(one.net.fabric).values():
        if not np.isin(largest, links).any():
            largest += [int(link) for link in order[np.isin(order, links) & alive[order]][:1]]
    return largest


def backward(scenario: Scenario, objective: str) -> tuple[Member, dict[str, float], Any]:
    """The scenario with its arrays, the true objective and the bytes that were lost, and the model of elasticities."""
    from fabsim.study.objectives import Objective

    if objective not in OBJECTIVES:
        raise InputError(f"--objective {objective}: there is no such objective; use {', '.join(OBJECTIVES)}")
    one = member(scenario, split=False)
    terms = Objective(((objective, 1.0),))
    found = figures(one, Objective(tuple((name, 1.0) for name in dict.fromkeys((objective, LOST)))))
    if found[objective] == 0:
        raise InputError(f"--objective {objective}: is zero in this scenario; there is nothing to explain")
    steps = math.ceil(found["last_completion"] / float(one.problem.dt)) + one.problem.ring
    terms = replace(terms, steps=steps, every=max(10, round(math.sqrt(steps))))
    return one, found, slope_of(one, terms, math.inf)


def slope_of(one: Member, objective: Objective, sharpness: float) -> Any:
    """The model of elasticities; of the true objective where the sharpness is infinite."""
    import jax.numpy as jnp

    from fabsim.study.attribute import elasticities

    entries = int(one.entry.max()) + 1
    entry = jnp.asarray(one.entry)
    return elasticities(one.problem, one.model, entry, objective=objective, entries=entries, sharpness=sharpness)[1]


def felt(one: Member, objective: Objective) -> list[str]:
    """The keys on which an objective depends, as smooth as a tuning has it."""
    from fabsim.study.objectives import SHARPNESS

    leaves = keys_of(one.scenario, slope_of(one, objective, SHARPNESS))
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
