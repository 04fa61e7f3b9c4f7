"""From a section `transport` to the law that it names, with its parameters in SI units."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fabsim.scenario.transport_keys import Nscc, Transport
from fabsim.units import Amount
from fabsim.workload.packet import Packet

if TYPE_CHECKING:
    from fabsim.scenario.compile import Network


def transport_law(section: Transport, net: Network, packet: Packet, real: Callable[[Any], Any]) -> Any:
    """The law. Each of its fields is a key of the section, or follows from the fabric; so does what is `auto`.

    real: makes an array in the precision of the scenario.
    """
    module, name = section.law.split(":")
    law = getattr(import_module(module), name)
    follow = follows(net) | (_of_nscc(net, packet) if isinstance(section, Nscc) else {})

    def value(field: str) -> Any:
        given = getattr(section, field, "auto")
        if isinstance(given, Amount):
            return given.bytes(net.baseline.nic_bdp)
        return follow[field] if given == "auto" else given

    return law(**{field.name: real(value(field.name)) for field in dataclasses.fields(law)})


def follows(net: Network) -> dict[str, Any]:
    """What follows from the fabric, by the name of the field, in SI units."""
    base, routes = net.baseline, net.routes
    return {
        "network_rtt": base.rtt,
        "rate": base.nic,
        "base": 1.25 * base.rtt,
        "range": 5.0 * base.rtt,
        "first": base.nic,
        "hops": (((routes.path >= 0).sum(-1) - 1) * routes.weight).sum(-1),
    }


def _of_nscc(net: Network, packet: Packet) -> dict[str, float]:
    """And what only NSCC has."""
    from fabsim.models.nscc import COALESCE, TARGET

    return {"target": TARGET * net.baseline.rtt, "payload": packet.mtu - packet.header, "coalesce": COALESCE}
