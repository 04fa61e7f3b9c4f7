"""What `fabsim check` says of defaults that follow from the fabric: round trips, queues, senders, the step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.scenario.compile.network import Network
from fabsim.scenario.guide.reference import keys_of
from fabsim.scenario.keys.queue import Pfc, Shared
from fabsim.scenario.keys.transport import Window
from fabsim.typing import Float
from fabsim.units import show_rate, show_time

if TYPE_CHECKING:
    from fabsim.models.model import Model
    from fabsim.scenario.scenario import Scenario
    from fabsim.topology.baseline import Baseline

Line = tuple[str, str]


def derived(scenario: Scenario, net: Network, model: Model[Any]) -> list[Line]:
    """All of it but the step."""
    base = net.baseline
    return [
        ("base RTT", f"{base.rtt * 1e6:.6g} us, over the longest route of {base.links} links"),
        ("BDP", f"{base.bdp:,.0f} B at {show_rate(base.rate)}"),
        *_servers(base.inside),
        *_queues(scenario, net, model),
        *_senders(scenario, net, model),
    ]


def step(scenario: Scenario, net: Network, dt: float) -> str:
    """The step, and what it follows from where it is finer than usual."""
    from fabsim.engine.problem import STEP, path_latency

    if scenario.dt != "auto":
        return show_time(dt)
    if dt >= STEP * (1 - 1e-6):
        return f"{show_time(dt)} (derived)"
    latency, _, hops = path_latency(net.fabric, net.routes, scenario.packet.sizes, net.flows)
    flow = int((latency / hops).min(1).argmin())
    lane = int((latency / hops)[flow].argmin())
    if latency[flow, lane] / hops[flow, lane] > dt * (1 + 1e-6):
        return f"{show_time(dt)} (derived: a grain of a coupled flow takes no longer)"
    ends = f"h{net.flows.src[flow]} to h{net.flows.dst[flow]}"
    return (
        f"{show_time(dt)} (derived: {ends} are {show_time(latency[flow, lane])} apart, over {hops[flow, lane]} links)"
    )


def _servers(inside: Baseline | None) -> list[Line]:
    """What flows inside servers know."""
    if inside is None:
        return []
    return [("in servers", f"base RTT {inside.rtt * 1e6:.6g} us, BDP {inside.bdp:,.0f} B at {show_rate(inside.rate)}")]


def _queues(scenario: Scenario, net: Network, model: Model[Any]) -> list[Line]:
    """Buffers, thresholds, and what a kind of queue has of its own."""
    queues, healthy, switch = net.queues, net.fabric.speed >= 1, net.fabric.src >= net.fabric.hosts

    def span(values: Float) -> str:
        return _span(values[healthy])

    slow = "" if healthy.all() else "; slow links in proportion to their speed"
    none = np.isnan(queues.buffer).all()
    lines = [
        ("buffers", "no bound for a single port" if none else f"{span(queues.buffer)} a port{slow}"),
        ("ECN", f"from {span(queues.ecn_low)} to {span(queues.ecn_high)}"),
    ]
    law: Any = model.queue
    links = net.fabric.links
    if isinstance(scenario.queue, Pfc):
        ingress = (net.fabric.dst >= net.fabric.hosts) & (net.fabric.capacity > 0)
        xoff, xon, headroom, delay = (
            np.asarray(getattr(law, key), float)[:links][ingress] for key in ("xoff", "xon", "headroom", "delay")
        )
        after = show_time(float(delay.min())) + (f" to {show_time(float(delay.max()))}" if np.ptp(delay) else "")
        text = (
            f"a link pauses at {_span(xoff)}, goes on at {_span(xon)}, each {after} later; headroom {_span(headroom)}"
        )
        lines.append(("pauses", text))
    if isinstance(scenario.queue, Shared):
        memory = np.asarray(law.memory, float)[:links][switch]
        lines.append(("shared", f"{_span(memory)} a switch"))
    return lines


def _senders(scenario: Scenario, net: Network, model: Model[Any]) -> list[Line]:
    """The window, and what of the transport and of recovery is `auto`."""
    lines = []
    if isinstance(scenario.transport, Window):
        window = scenario.transport.window
        size = _span(np.atleast_1d(window.bytes(net.scope().nic_bdp)))
        lines.append(("window", f"{window} = {size}" if window.relative else str(window)))
    for section in ("transport", "recovery"):
        chosen, law = getattr(scenario, section), getattr(model, section)
        told = [
            f"{key.name} {_value(key.kind, np.asarray(getattr(law, key.name), float))}"
            for key in keys_of(type(chosen))
            if law is not None and getattr(chosen, key.name) == "auto" and key.kind.startswith(("a time", "a rate"))
        ]
        if told:
            lines.append((section, f"{chosen.kind}: {', '.join(told)}"))
    return lines


def _value(kind: str, values: Float) -> str:
    """A number of a law, or the range of those of its flows."""
    show = show_time if kind.startswith("a time") else show_rate
    low, high = float(values.min()), float(values.max())
    return show(low) if low == high else f"{show(low)} to {show(high)}"


def _span(values: Float) -> str:
    """Bytes, from the least to the most."""
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=0.0))
    return f"{high:,.0f} B" if low == high else f"{low:,.0f} to {high:,.0f} B"
