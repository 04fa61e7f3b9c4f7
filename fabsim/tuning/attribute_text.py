"""What `fabsim attribute` prints: who costs what, beside what was really run, and where these two part."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from fabsim.tables import align
from fabsim.topology import link_names
from fabsim.tuning.attribute import CHANGE, UNSEEN, Attribution, Trial, backward, inert, tiers
from fabsim.units import show_size

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

HEAD = ("", "elasticity", "10 % faster: foretold", "run", "10 % slower: foretold", "run")
SMOOTHER = {"last_completion": "mean_completion", "p99_completion": "mean_completion", "peak_queue": "lost_bytes"}
"""Objectives that change less by jumps than another."""


def as_text(found: Attribution, top: int = 10) -> str:
    """Top links with what was really run, one more of each tier, then tiers, hosts and buffers."""
    from fabsim.study.objectives import FACTOR, TERMS

    unit = TERMS[found.objective].unit
    names, doubtful = link_names(found.fabric), _doubtful(found)
    hosts, buffers = enumerate(found.hosts()), zip(names, found.buffer.tolist(), strict=True)
    lines = [f"{found.objective}: {found.value * FACTOR[unit]:.3f} {unit}", align(_rows(found, names, top))]
    lines += [_apart(found)] if found.apart else []
    lines.append("tiers, by rate:    " + _listed(found.tiers(found.capacity), top, doubtful))
    lines.append("hosts, by rate:    " + _listed({f"h{n}": float(x) for n, x in hosts}, top, doubtful))
    lines.append("tiers, by buffer:  " + _listed(found.tiers(found.buffer), top, doubtful))
    lines.append("buffers:           " + _listed(dict(buffers), top, doubtful))
    if found.inert:
        lines.append(f"no effect here:    {', '.join(found.inert)} (gradient exactly zero)")
    return "\n".join(lines)


def _doubtful(found: Attribution) -> set[str]:
    """Names of the links of which runs contradict what is foretold, and of their tiers and hosts."""
    fabric, names = found.fabric, link_names(found.fabric)
    ends = {int(end[link]) for link in found.apart for end in (fabric.src, fabric.dst)}
    groups = {name for name, links in tiers(fabric).items() if np.isin(found.apart, links).any()}
    return {names[link] for link in found.apart} | groups | {f"h{end}" for end in ends if end < fabric.hosts}


def _rows(found: Attribution, names: list[str], top: int) -> list[tuple[str, ...]]:
    """The table. Behind the largest stand the links of tiers that have none among them."""
    order = np.argsort(-np.abs(found.capacity), kind="stable")[:top].tolist()
    largest = [link for link in order if abs(found.capacity[link]) > UNSEEN]
    trials = {trial.link: trial for trial in found.trials}
    tier = {int(link): name for name, links in tiers(found.fabric).items() for link in links}
    rows: list[tuple[str, ...]] = [HEAD]
    shown = {tier.get(link) for link in largest}
    for link in [*largest, *(link for link in trials if tier.get(link) not in shown)]:
        name = names[link] if link in largest else f"{names[link]} ({tier[link]})"
        rows.append((name, f"{found.capacity[link]:+.4f}", *_run(trials.get(link))))
    return rows


def _run(trial: Trial | None) -> tuple[str, ...]:
    """Foretold and run, with an asterisk where they part."""
    if trial is None:
        return ("",) * 4
    told = (trial.faster, trial.faster_run, trial.slower, trial.slower_run)
    return (*(f"{100 * x:+.2f} %" for x in told), "*" * trial.apart)


def _apart(found: Attribution) -> str:
    """Why what was run is not what was foretold."""
    text = f"* foretold and run differ by more than half: a gradient is of small changes, {100 * CHANGE:g} % is not one"
    if found.lost:
        text += f"; {show_size(found.lost)} are lost and sent again, and {found.objective} jumps with the rounds that"
        text += " this takes"
    else:
        text += "; another link or another flow becomes the one that counts"
    smoother = SMOOTHER.get(found.objective)
    text += f"; --objective {smoother} is smoother" if smoother else ""
    below = "* in a list below: a link of it is marked above, and the whole was not run"
    return f"{text}\n{below}; `fabsim sweep` over a rate or buffer runs it"


def _listed(values: dict[str, float], top: int, doubtful: set[str]) -> str:
    """The largest, with an asterisk where a link of it is doubtful."""
    some = sorted((item for item in values.items() if abs(item[1]) > UNSEEN), key=lambda item: -abs(item[1]))[:top]
    return ", ".join(f"{name} {value:+.4f}{'*' * (name in doubtful)}" for name, value in some) or "none"


def inert_lines(scenarios: Collection[Scenario], *, progress: bool = True) -> list[str]:
    """For `fabsim check --inert`, of each case: the keys on which the last completion does not depend. `progress`: a
    bar on stderr, where that is a terminal."""
    bar = tqdm(scenarios, unit="case", desc="gradient", disable=None if progress else True, leave=False)
    return [_inert_line(scenario) for scenario in bar]


def _inert_line(scenario: Scenario) -> str:
    _, _, slope = backward(scenario, "last_completion")
    found = inert(scenario, slope)
    return f"  {'no effect':<12} {', '.join(found) or 'none'}: their gradient of the last completion is exactly zero"
