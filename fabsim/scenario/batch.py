"""Several scenarios at once: what they share is built once, and what has one shape runs as one program."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fabsim.scenario.compile.arrays import fixed_of, model_of, problem_of, remembering
from fabsim.scenario.compile.collectives import Collective, collectives
from fabsim.scenario.compile.network import Network
from fabsim.scenario.compile.queues import queues_of
from fabsim.scenario.compile.schedule import schedule
from fabsim.scenario.compile.zero_load import zero_load
from fabsim.scenario.parts import parts_of
from fabsim.topology.bill import Bill
from fabsim.typing import Float, Int

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Links, Model, Split
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.metrics import Facts
    from fabsim.study.outcomes import Outcomes

KEEP = 1e9
"""Bytes of networks that are kept for the next scenario."""


@dataclass(frozen=True)
class Shared:
    """What scenarios have in common that differ in their queues and transport only; `first` is one of them."""

    first: Scenario
    net: Network
    problem: Problem
    links: Links
    split: Split
    zero_load: Float
    collectives: list[Collective]

    @cached_property
    def bill(self) -> Bill:
        """What the fabric is made of."""
        return parts_of(self.first)[0]

    @cached_property
    def facts(self) -> Facts:
        """What is known before a run begins, but for prices."""
        from fabsim.study.metrics import facts

        groups = [(group.flows, group.volume) for group in self.collectives]
        return facts(zero_load=self.zero_load, groups=groups, payload=float(self.net.flows.size.sum()))

    @cached_property
    def priced_facts(self) -> Facts:
        """The same with prices."""
        return replace(self.facts, cost=np.float32(self.bill.cost), watts=np.float32(self.bill.watts))


@dataclass(frozen=True)
class Member:
    """A scenario ready to run in a batch. The leaves of its model are numpy arrays."""

    scenario: Scenario
    shared: Shared
    model: Model[Any]


class Compiler:
    """Compiles scenarios one after the other; networks are kept, those of the latest first."""

    def __init__(self, keep: float = KEEP) -> None:
        self._keep = keep
        self._size: dict[Hashable, float] = {}
        self._known: OrderedDict[Hashable, Shared] = OrderedDict()
        self._latest: tuple[Hashable, Shared] | None = None

    def compile(self, scenario: Scenario) -> Member:
        """Raises InputError for what contradicts itself."""
        shared = self._shared(scenario)
        net = replace(shared.net, queues=queues_of(scenario, shared.net.fabric, shared.net.baseline))
        shared = with_faults(shared, scenario)
        model = model_of(scenario, net, shared.links, shared.split, shared.problem.dt)
        problem = remembering(shared.problem, model)
        return Member(scenario, shared if problem is shared.problem else replace(shared, problem=problem), model)

    def _shared(self, scenario: Scenario) -> Shared:
        key = network_key(scenario)
        if self._latest is None or key != self._latest[0]:  # of the very same sections, which are not hashed then
            self._latest = key, self._found(key, scenario)
        return self._latest[1]

    def _found(self, key: Hashable, scenario: Scenario) -> Shared:
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        shared = build(scenario)
        self._known[key] = shared
        self._size[key] = _bytes(shared)
        while len(self._known) > 1 and sum(self._size.values()) > self._keep:
            self._size.pop(self._known.popitem(last=False)[0])
        return shared


def build(scenario: Scenario) -> Shared:
    """Fabric, flows, routes, problem and what follows from them. Raises InputError."""
    net = scenario.network()
    problem = problem_of(scenario, net)
    return Shared(
        scenario, net, problem, *fixed_of(scenario, net), zero_load(scenario, net), collectives(scenario, net)
    )


def with_faults(shared: Shared, scenario: Scenario) -> Shared:
    """The same with what happens on the way in this scenario."""
    if not scenario.faults and shared.problem.faults is None:
        return shared
    return replace(shared, problem=replace(shared.problem, faults=schedule(scenario, shared.net.fabric)))


def network_key(scenario: Scenario) -> Hashable:
    """Equal for scenarios with the same network and problem."""
    s = scenario
    classes = tuple(own.name for own in s.queue.classes)
    return (s.source.folder, s.fabric, s.traffic, classes, s.routing, s.packet, s.seed, s.precision, s.dt)


def run_all(
    members: Sequence[Member], names: Sequence[str], *, traces: Sequence[str] = (), watched: Int | None = None,
    bar: tqdm[Any] | None = None, **how: Any,
) -> Outcomes:  # fmt: skip
    """Figures and traces of each member, `until` and `every` as the first one has them; `watched` as in
    fabsim.study.outcomes.outcomes, `how` as in its How."""
    from fabsim.study.outcomes import How, outcomes

    first, problem = members[0].scenario, members[0].shared.problem
    priced = bool({"cost", "watts"} & set(names))
    return outcomes(
        [member.shared.problem for member in members],
        [member.model for member in members],
        [member.shared.priced_facts if priced else member.shared.facts for member in members],
        names,
        How(
            until=None if first.until == "done" else float(first.until),
            every=first.steps_of_frame(float(problem.dt)),
            **how,
        ),
        traces=traces,
        watched=watched,
        bar=bar,
    )


def _bytes(item: Any) -> float:
    """Of all arrays inside dataclasses."""
    if is_dataclass(item) and not isinstance(item, type):
        return sum(_bytes(getattr(item, field.name)) for field in fields(item))
    return float(getattr(item, "nbytes", 0))
