"""From sections `transport`, `balancer` and `recovery` to the laws that they name, in SI units."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fabsim.scenario.keys.balancer import Mrc
from fabsim.scenario.keys.queue import Trim
from fabsim.scenario.keys.routing import ENTROPIES, Drawn
from fabsim.scenario.keys.transport import Mixed, Nscc
from fabsim.topology.baseline import Scope
from fabsim.units import Amount
from fabsim.workload.packet import Packet

if TYPE_CHECKING:
    from fabsim.scenario.compile.network import Network
    from fabsim.scenario.text.document import Document

TIMEOUT = 10
"""Base round trips until a silent loss is missed, where nothing else is said."""


def transport_law(scenario: Document, net: Network, real: Callable[[Any], Any]) -> Any:
    """The law, or the laws of the entries of the traffic. real: makes an array in the precision of the scenario."""
    section, packet = scenario.transport, scenario.packet.sizes
    if not isinstance(section, Mixed):
        return _one(section, net, packet, real, slice(None))
    from fabsim.models.mixed import Mixed as MixedLaw

    begins = (0, *net.ends[:-1])
    ranges = zip(section.laws, begins, net.ends, strict=True)
    return MixedLaw(tuple(_one(law, net, packet, real, slice(*flows)) for law, *flows in ranges), net.ends)


def misses(scenario: Document) -> bool:
    """Whether the balancer learns which path lost what it misses: to its flows a dead link loses all."""
    return getattr(_named(scenario.balancer), "misses", False)


def loses_in_silence(scenario: Document, loss: object) -> bool:
    """Whether ports or links may lose what nobody reports, so that senders need a recovery. loss: what links of the
    fabric lose, None where none does."""
    lossy = loss is not None or any(event.loss or misses(scenario) for event in scenario.faults)
    return lossy or not isinstance(scenario.queue, Trim)


def balancer_law(scenario: Document, silent: bool, real: Callable[[Any], Any]) -> Any:
    """The balancer; each of its fields is a key of its section, or follows from the routing. What it may do without is
    there for losses: without any that are `silent` it is not given that."""
    section, routing = scenario.balancer, scenario.routing
    drawn = routing.entropies if isinstance(routing, Drawn) else ENTROPIES
    follow = {"entropies": drawn, "backup": getattr(section, "entropies", None) or drawn}
    law = _named(section)

    def value(field: str) -> Any:
        given = getattr(section, field)
        return follow[field] if given is None else given

    needed = [field.name for field in dataclasses.fields(law) if silent or field.default is dataclasses.MISSING]
    return law(**{name: real(value(name)) for name in needed})


def recovery_law(scenario: Document, base: Scope, real: Callable[[Any], Any]) -> Any:
    """What the senders do about silent losses."""
    chosen = scenario.recovery
    own = scenario.balancer.detect if isinstance(scenario.balancer, Mrc) else TIMEOUT * base.rtt
    timeout = own if chosen.timeout == "auto" else float(chosen.timeout)
    return _named(chosen)(real(timeout), real(chosen.backoff), real(chosen.most))


def _named(section: Any) -> Any:
    """The class that a section names."""
    return _class(section.law)


@cache
def _class(law: str) -> Any:
    module, name = law.split(":")
    return getattr(import_module(module), name)


def _one(section: Any, net: Network, packet: Packet, real: Callable[[Any], Any], flows: slice) -> Any:
    """The law of some flows. Each of its fields is a key of its section, or follows from the fabric; so does what is
    `auto`."""
    law, scope = _named(section), net.scope(flows)
    follow = _follows(net, scope, flows) | (_of_nscc(net, scope, packet) if isinstance(section, Nscc) else {})

    def value(field: str) -> Any:
        given = getattr(section, field, "auto")
        if isinstance(given, Amount):
            return given.bytes(scope.nic_bdp)
        follows = follow[field] if given == "auto" else given
        return follows() if callable(follows) else follows

    return law(**{field.name: real(value(field.name)) for field in dataclasses.fields(law)})


def _follows(net: Network, base: Scope, flows: slice) -> dict[str, Any]:
    """What follows from the fabric, by the name of the field, in SI units; what is large only when it is asked for."""
    return {
        "network_rtt": base.rtt,
        "rate": base.nic,
        "first": base.nic,
        "base": 1.25 * base.rtt,
        "range": 5.0 * base.rtt,
        "hops": lambda: (((net.routes.path[flows] >= 0).sum(-1) - 1) * net.routes.weight[flows]).sum(-1),
    }


def _of_nscc(net: Network, base: Scope, packet: Packet) -> dict[str, Any]:
    """And what only NSCC has."""
    from fabsim.models.nscc import TARGET

    knows = float(net.fabric.site is not None)
    return {"target": TARGET * base.rtt, "payload": packet.mtu - packet.header, "knows_rtt": knows}
