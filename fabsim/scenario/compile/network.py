"""Fabric, flows, routes and what follows from them, as numpy arrays.

Where a room below refuses its input, the sentence gets the place of the key that it speaks of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from fabsim.errors import InputError
from fabsim.routing import Routes
from fabsim.scenario.compile.build import build_flows, build_routes
from fabsim.scenario.compile.fabrics import build_fabric
from fabsim.scenario.compile.memory import refuse_too_large
from fabsim.scenario.compile.queues import queues_of
from fabsim.scenario.contradictions.traffic import traffic_faults
from fabsim.scenario.keys.routing import Explicit, Valiant
from fabsim.scenario.text.document import Document
from fabsim.scenario.text.source import KeyPath, PlacedError
from fabsim.topology import Change, Fabric, degrade
from fabsim.topology.baseline import Baseline, Queues, Scope, baseline
from fabsim.typing import Int
from fabsim.workload import Flows, check, merge


@dataclass(frozen=True)
class Network:
    """A scenario as numpy arrays: what the engine builds its problem from, and the figures derived on the way.

    `entry` [F] is the entry of `traffic` that each flow comes from.
    """

    fabric: Fabric
    flows: Flows
    entry: Int
    routes: Routes
    baseline: Baseline
    queues: Queues

    def scope(self, flows: slice = slice(None)) -> Scope:
        """What the senders of some flows know of the network."""
        return self.baseline.of_flows(self.fabric, self.flows.src[flows], self.flows.dst[flows])

    @property
    def ends(self) -> tuple[int, ...]:
        """For each entry of the traffic, the flow behind its last."""
        return tuple(int(end) for end in np.searchsorted(self.entry, np.unique(self.entry), side="right"))


def network(scenario: Document) -> Network:
    """Fabric, flows, routes and derived figures. Raises InputError with the place of each fault."""
    fabric = _fabric(scenario)
    flows, entry = _flows(scenario, fabric)
    with placed(scenario, ("routing",)):
        width = 8 if scenario.precision == "float64" else 4
        lanes = {"ecmp": getattr(scenario.routing, "queue_pairs", 1), "explicit": 1}.get(scenario.routing.kind)
        refuse_too_large(fabric, flows, lanes, width)
        routes = build_routes(scenario, fabric, flows)
    base = baseline(fabric, scenario.packet.mtu, scenario.packet.header, _detours(scenario, routes))
    return Network(fabric, flows, entry, routes, base, queues_of(scenario, fabric, base))


def _detours(scenario: Document, routes: Routes) -> Int | None:
    """[F K, H] the paths of a routing that takes others than the shortest."""
    detours = isinstance(scenario.routing, Explicit | Valiant)
    return routes.path.reshape(-1, routes.path.shape[2]) if detours else None


def _fabric(scenario: Document) -> Fabric:
    with placed(scenario, ("fabric",)):
        fabric = build_fabric(scenario)
    with placed(scenario, ("fabric", "degraded")):
        return degrade(fabric, [Change(**vars(change)) for change in scenario.fabric.degraded], scenario.seed)


def _flows(scenario: Document, fabric: Fabric) -> tuple[Flows, Int]:
    """All flows, and the entry that each comes from."""
    faults = traffic_faults(scenario, fabric.hosts)
    if faults:
        raise InputError([scenario.source.sentence(path, text) for path, text in faults])
    parts = []
    for number, entry in enumerate(scenario.traffic):
        with placed(scenario, ("traffic", number)):
            seed = getattr(entry, "seed", None)
            own = scenario.seed + number if seed is None else seed
            parts.append(build_flows(scenario, number, fabric.hosts, own))
    with placed(scenario, ("traffic",)):
        flows = check(merge(parts), fabric.hosts)
    if not flows.count:
        raise InputError(scenario.source.sentence(("traffic",), "there is no flow; a run needs at least one"))
    return flows, np.repeat(np.arange(len(parts)), [part.count for part in parts])


@contextmanager
def placed(scenario: Document, path: KeyPath) -> Iterator[None]:
    """Give the sentences of a room below the place and key they speak of, unless they have a place already."""
    try:
        yield
    except PlacedError:
        raise
    except InputError as error:
        lines = [scenario.source.sentence(path, text.removeprefix(f"{path[-1]}: ")) for text in error.sentences]
        raise InputError(lines) from None
