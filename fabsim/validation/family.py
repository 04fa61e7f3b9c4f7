"""What cases have in common: the lines of the summary, and which of them differ in the balancer alone."""

from __future__ import annotations

import numpy as np

from fabsim.validation.case import AT_SWITCHES, HASHED, LISTENING, Case

LAWS = {"const": "fixed window", "nscc": "NSCC", "rccc": "receiver credit", "roce": "RoCE over pauses"}

FAR = 20e-6
"""Seconds of a link between sites: more than 4 km."""

BALANCING = {"load_balancing_algo", "paths", "strat", "end"}
"""Options that say how a flow is spread, and what changes nothing."""


def family(case: Case) -> str:
    """Law, traffic, and, where several paths matter, how flows are spread and whether the fabric is whole."""
    if int(case.row.get("flows") or 0) == 1:
        return "a lone flow"
    law = LAWS.get(case.options.congestion_control, case.options.congestion_control)
    flows = case.matrix.flows
    if (flows.trigger >= 0).any():
        return f"{law}, collectives"
    if len(set(flows.dst)) == 1:
        return f"{law}, incasts"
    return f"{law}, {spread(case)}{fabric(case)}"


def spread(case: Case) -> str:
    """How flows are spread over paths."""
    if case.given is not None:
        return "measured paths" if case.options.entropies == 1 else "measured splits"
    if case.options.balancer in AT_SWITCHES:
        return "switches spray"
    if case.options.balancer in LISTENING:
        return "sprays that listen"
    return "drawn sprays" if case.options.balancer in HASHED else case.options.balancer


def fabric(case: Case) -> str:
    """Empty for one with full bisection, and no slow or long link."""
    if case.fabric.latency.max() > FAR:
        return ", long links"
    up = case.fabric.src < case.fabric.hosts
    hosts, tier = case.fabric.capacity[up].sum(), case.fabric.tier
    least = min(case.fabric.capacity[tier[case.fabric.src] == level].sum() for level in set(tier) - {0})
    if not np.isclose(case.fabric.speed, 1.0).all():
        return ", slow links"
    return ", oversubscribed" if least < 0.99 * hosts else ""


def network(case: Case) -> str:
    """Topology, matrix and options but those of the balancer."""
    options = sorted(
        f"{name} {' '.join(words)}" for name, words in case.options.values.items() if name not in BALANCING
    )
    return "; ".join([case.row["topo"], case.row["cm"], *options])
