"""Paths that the fabric does not have, and senders that choose where there is nothing to choose."""

from __future__ import annotations

from collections.abc import Iterator

from fabsim.scenario.keys.balancer import Mrc, Oblivious
from fabsim.scenario.keys.direct import Dragonfly, GraphMl
from fabsim.scenario.keys.routing import ENTROPIES, Drawn, Ecmp, Explicit, SwitchSpray, Valiant
from fabsim.scenario.keys.schema import Sections
from fabsim.scenario.text.source import Fault
from fabsim.units import show_time


def routing(scenario: Sections) -> Iterator[Fault]:
    """Valiant paths need groups, and as many others as are asked for."""
    chosen, fabric = scenario.routing, scenario.fabric
    if not isinstance(chosen, Valiant) or isinstance(fabric, GraphMl):
        return
    if not isinstance(fabric, Dragonfly):
        text = f"valiant paths go through groups, which a {fabric.kind} does not have; give a dragonfly, or kind: drawn"
        yield ("routing", "kind"), text
    elif fabric.groups < 3:
        text = f"valiant paths need a third group, the fabric has {fabric.groups}; give kind: all, or more groups"
        yield ("routing", "kind"), text
    elif chosen.groups is not None and chosen.groups > fabric.groups - 2:
        text = (
            f"two groups have {fabric.groups - 2} others between them, given {chosen.groups}; give no more than these"
        )
        yield ("routing", "groups"), text


def balancer(scenario: Sections) -> Iterator[Fault]:
    """A sender that chooses needs several paths, and switches that leave the choice to it."""
    kind = scenario.balancer.kind
    if isinstance(scenario.balancer, Oblivious):
        return
    if isinstance(scenario.balancer, Mrc):
        yield from _mrc(scenario, scenario.balancer)
    if isinstance(scenario.routing, Ecmp | Explicit):
        text = f"{kind} moves bytes between paths, and routing: {{kind: {scenario.routing.kind}}} has one a flow"
        yield ("balancer", "kind"), f"{text}; give routing: {{kind: drawn}}"
    elif isinstance(scenario.routing, SwitchSpray):
        text = f"{kind} chooses paths, and under routing: {{kind: switch_spray}} the switches choose"
        yield ("balancer", "kind"), f"{text}; give routing: {{kind: drawn}}"


def _mrc(scenario: Sections, mrc: Mrc) -> Iterator[Fault]:
    """What MRC has in a way of its own: values, and the time after which a loss is missed."""
    routing = scenario.routing
    drawn = routing.entropies if isinstance(routing, Drawn) else ENTROPIES
    values = drawn if mrc.entropies is None else mrc.entropies
    if mrc.min_active > values:
        text = f"more values than the {values:g} that are active are never retired: {mrc.min_active:g}"
        text += f"; give at most {values:g}, or more entropies"
        yield ("balancer", "min_active"), text
    if scenario.recovery.timeout != "auto":
        given = show_time(scenario.recovery.timeout)
        text = f"mrc misses a loss by its own detection time, given {given}; give balancer.detect instead"
        yield ("recovery", "timeout"), text
