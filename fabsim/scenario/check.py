"""The text of `fabsim check`: what a scenario amounts to before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.scenario.compile.arrays import assemble
from fabsim.scenario.compile.classes import class_lines
from fabsim.scenario.compile.network import Network
from fabsim.scenario.compile.ports import moved_along
from fabsim.scenario.compile.schedule import event_lines
from fabsim.scenario.derived import Line, derived, step
from fabsim.scenario.inert import inert
from fabsim.scenario.length import frame_bytes, least_frames, least_steps, routed_seconds
from fabsim.scenario.packets import packet_times
from fabsim.scenario.parts import part_lines
from fabsim.scenario.site_lines import site_lines
from fabsim.scenario.validity import outside
from fabsim.topology.wiring import INSIDE
from fabsim.units import show_rate, show_size, show_time

if TYPE_CHECKING:
    from fabsim.engine.problem import Problem
    from fabsim.models.model import Model
    from fabsim.scenario.scenario import Scenario


def report(scenario: Scenario) -> str:
    """Sizes, derived defaults, steps and memory of a scenario and of each of its cases, and once what each fabric is
    made of. Raises InputError."""
    packet_times(scenario)  # for its refusals
    priced: list[object] = []
    parts = [f"{scenario.source.name}: {scenario.name}: no faults found"]
    for case, variant in scenario.variants.items():
        if scenario.cases:
            parts.append(f"\ncase {case}")
        lines = _lines(variant, variant.network())
        whole = (variant.fabric.model_copy(update={"degraded": ()}), variant.prices)
        if whole not in priced:
            priced.append(whole)
            lines += part_lines(variant)
        parts += [f"  {key:<12} {text}" for key, text in lines]
    parts += [f"  {'tune':<12} {text}" for text in moved_along(scenario)]
    return "\n".join(parts)


def _lines(scenario: Scenario, net: Network) -> list[Line]:
    problem, model = assemble(scenario, net)
    lines = [*_fabric(scenario, net), *site_lines(net), *_traffic(scenario, net), *derived(scenario, net, model)]
    lines += [*class_lines(scenario, net), *event_lines(scenario, net.fabric)]
    lines += [("no effect", text) for text in inert(scenario, net, model)]
    lines += [("dt", step(scenario, net, float(problem.dt))), *_cost(scenario, net, problem, model)]
    return [*lines, *(("warning", text) for text in outside(scenario, net))]


def _fabric(scenario: Scenario, net: Network) -> list[Line]:
    fabric = net.fabric
    nic = (fabric.src < fabric.hosts) & (fabric.tier[fabric.dst] == 1)
    rates = sorted({float(rate) for rate in fabric.capacity[fabric.speed >= 1]})
    slow = int(((fabric.speed > 0) & (fabric.speed < 1)).sum())
    dead = int((fabric.capacity <= 0).sum())
    switches = len(fabric.names) - fabric.hosts
    inner = int((fabric.tier == INSIDE).sum())
    of_those = f" ({inner} of them inside servers)" if inner else ""
    state = f"{slow} degraded, {dead} dead" if slow or dead else "all healthy"
    size = f"{fabric.hosts} hosts, {switches} switches{of_those}, {fabric.links} directed links"
    lines = [
        ("fabric", f"{scenario.fabric.kind}: {size}, {state}"),
        ("rates", ", ".join(show_rate(rate) for rate in rates)),
    ]
    leaf_down = float(fabric.capacity[nic].sum())
    leaf_up = float(fabric.capacity[(fabric.tier[fabric.src] == 1) & (fabric.tier[fabric.dst] == 2)].sum())
    return [*lines, ("leaves", f"{leaf_down / leaf_up:.3g} to 1 down to up")] if leaf_up else lines


def _traffic(scenario: Scenario, net: Network) -> list[Line]:
    flows, routes = net.flows, net.routes
    waiting = int((flows.trigger >= 0).sum())
    coupled = int((flows.leader >= 0).sum())
    used = (routes.weight > 0).sum(axis=1)
    links = (routes.path >= 0).sum(axis=2)
    more = f", {waiting} wait for others" if waiting else ""
    more += f", {coupled} coupled" if coupled else ""
    paths = f"{_range(used)} of {routes.path.shape[1]} paths a flow, {_range(links)} links long"
    return [
        ("flows", f"{flows.count}, {show_size(float(flows.size.sum()))} of payload{more}"),
        (
            "routing",
            f"{scenario.routing.kind}: {paths}",
        ),
        ("busiest link", _busiest(scenario, net)),
    ]


def _range(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"{low}" if low == high else f"{low} to {high}"


def _busiest(scenario: Scenario, net: Network) -> str:
    """The link with the most seconds of traffic, if all bytes stay on the paths that they are given."""
    seconds = routed_seconds(scenario, net)
    link = int(seconds.argmax())
    return f"{net.fabric.link_name(link)}: {show_time(float(seconds[link]))} of traffic at line rate, as routed"


def _cost(scenario: Scenario, net: Network, problem: Problem, model: Model[Any]) -> list[Line]:
    """Number of steps and memory, from the shapes that the engine would allocate."""
    import jax

    from fabsim.engine.run import begin

    dt = float(problem.dt)
    known = "at least " if scenario.until == "done" else ""
    steps, frames = least_steps(scenario, net, dt), least_frames(scenario, net, dt)
    every, kept = scenario.steps_of_frame(dt), frame_bytes(scenario, net, dt)
    state = _bytes(jax.eval_shape(begin, problem, model)) + _bytes((problem, model))
    return [
        ("steps", f"{known}{steps:,}, {known}{frames:,} frames of {every} steps in the result"),
        ("memory", f"{show_size(float(state))} for arrays and state, {known}{show_size(kept)} for the frames"),
    ]


def _bytes(tree: object) -> int:
    """Bytes of all arrays in a tree."""
    import jax

    return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
