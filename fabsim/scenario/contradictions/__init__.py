"""Keys that are each right and together are not: checked before anything is built. A file a section."""

from __future__ import annotations

from fabsim.scenario.contradictions.fabric import fabric
from fabsim.scenario.contradictions.faults import faults
from fabsim.scenario.contradictions.many import packets, sweep
from fabsim.scenario.contradictions.packet import packet
from fabsim.scenario.contradictions.queue import classes, queue
from fabsim.scenario.contradictions.routing import balancer, routing
from fabsim.scenario.contradictions.traffic import traffic_faults
from fabsim.scenario.contradictions.transport import transport
from fabsim.scenario.keys.counts import host_count
from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.text.source import Fault


def contradictions(scenario: Sections) -> list[Fault]:
    """Paths and sentences of everything that contradicts something else."""
    rules = (packet, fabric, routing, balancer, queue, classes, transport, faults, packets, sweep)
    found = [fault for rule in rules for fault in rule(scenario)]
    hosts = host_count(scenario)
    if hosts is not None and not found:
        found += traffic_faults(scenario, hosts)
    return found
