"""Keys and faults that change nothing in this scenario: said by `fabsim check`, and warned of by a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.scenario.compile.ports import INGRESS
from fabsim.scenario.compile.queues import port_law, queues_of
from fabsim.scenario.compile.schedule import befallen
from fabsim.scenario.keys.balancer import Mrc, Oblivious
from fabsim.scenario.keys.queue import said_of_links
from fabsim.topology import find_links
from fabsim.typing import Int

if TYPE_CHECKING:
    from fabsim.models.model import Model
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.scenario import Scenario

FOR_LOSSES = ("loss", "freeze", "explore")
"""Keys of balancers for what a timeout brings on."""
SAME = 1e-6
"""Relative difference of two levels that are one."""


def inert(scenario: Scenario, net: Network, model: Model[Any]) -> list[str]:
    """A sentence for each reason."""
    found = [*_marks(scenario, model), *_ports(scenario, net), *_react(scenario), *_recovery(scenario, model)]
    return [*found, *_balancer(scenario, net, model), *_faults(scenario, net)]


def _marks(scenario: Scenario, model: Model[Any]) -> Iterator[str]:
    """Thresholds under a transport that does not look at marks."""
    queue = scenario.queue
    if model.transport.signals or model.balancer is not None:
        return
    given = [key for key in ("ecn_low", "ecn_high") if getattr(queue, key) != "auto"]
    given += [key for key in ("ecn_at", "ecn_last_hop") if getattr(queue, key) != type(queue).model_fields[key].default]
    given += [
        f"links.{number}.{key}"
        for number, entry in enumerate(queue.links)
        for key in ("ecn_low", "ecn_high") if getattr(entry, key) is not None
    ]  # fmt: skip
    if given:
        keys = ", ".join(f"queue.{key}" for key in given)
        yield f"{keys}: the transport ({scenario.transport.kind}) does not react to marks"


def _ports(scenario: Scenario, net: Network) -> Iterator[str]:
    """Entries of `queue.links` that leave each of their ports as it is without them."""
    entries = scenario.queue.links
    if not entries:
        return
    plain = scenario.change({"queue.links": []})
    law = port_law(plain, replace(net, queues=queues_of(plain, net.fabric, net.baseline)), 0.0, np.asarray)
    own = port_law(scenario, net, 0.0, np.asarray)
    for key in said_of_links(scenario.queue):
        common, found = getattr(law, key), getattr(own, key)
        later: Int = np.zeros(0, int)
        said = [number for number, entry in enumerate(entries) if getattr(entry, key) is not None]
        for number in reversed(said):
            entry = entries[number]
            links = find_links(net.fabric, entry.link)
            mine = np.setdiff1d(links, later)
            later = np.union1d(later, links)
            switch = net.fabric.dst if key in INGRESS else net.fabric.src
            where = f"queue.links.{number}.{key}: "
            if not len(mine):
                yield f"{where}later entries say otherwise for every port of {entry.link}"
            elif (switch[mine] < net.fabric.hosts).all():
                yield f"{where}{entry.link} are ports of hosts, which have no such queue"
            elif np.allclose(found[mine], common[mine], rtol=SAME, atol=0.0):
                yield f"{where}{entry.link} have {getattr(entry, key)} without it, or make nothing of it"


def _react(scenario: Scenario) -> Iterator[str]:
    if scenario.react == type(scenario).model_fields["react"].default:
        return
    if not scenario.faults:
        yield "react: there are no faults on the way"
    elif isinstance(scenario.balancer, Mrc):
        yield "react: mrc finds out by itself, by its own losses, probes and ports"


def _recovery(scenario: Scenario, model: Model[Any]) -> Iterator[str]:
    if model.recovery is None and scenario.recovery != type(scenario).model_fields["recovery"].default:
        yield f"recovery: a queue of kind {scenario.queue.kind} and links without loss lose nothing in silence"


def _balancer(scenario: Scenario, net: Network, model: Model[Any]) -> Iterator[str]:
    """A balancer that has nothing to choose from, or nothing to miss."""
    section = scenario.balancer
    if not isinstance(section, Oblivious) and ((net.routes.weight > 0).sum(1) < 2).all():
        yield f"balancer: {section.kind} moves bytes between paths, and every flow has a single one"
        return
    fields = type(section).model_fields
    given = [key for key in FOR_LOSSES if key in fields and getattr(section, key) != fields[key].default]
    if given and model.recovery is None:
        yield f"{', '.join(f'balancer.{key}' for key in given)}: nothing is lost in silence, and no timeout comes"


def _faults(scenario: Scenario, net: Network) -> Iterator[str]:
    """Faults of links none of which carries a byte: other draws of an ensemble may use them."""
    if not scenario.faults:
        return
    carries = np.zeros(net.fabric.links + 1, bool)  # the last one for the -1 of shorter paths
    carries[net.routes.path[net.routes.weight > 0]] = True
    draws = f" in the first of {scenario.seeds} draws" if scenario.seeds > 1 else ""
    for number, links in enumerate(befallen(scenario, net.fabric)):
        if not carries[links].any():
            yield f"faults.{number}: no flow is routed over {scenario.faults[number].link}{draws}"
