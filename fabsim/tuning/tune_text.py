"""What `fabsim tune` prints and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import InputError
from fabsim.store import Sheet, Variable, encode, publish
from fabsim.tables import align
from fabsim.topology import link_names
from fabsim.tuning.certificate import Tuning
from fabsim.tuning.folder import FILES, JOURNAL, PICTURES, RESULT
from fabsim.tuning.group_names import group_name
from fabsim.tuning.tuned import write_tuned
from fabsim.typing import Float
from fabsim.units import show_rate, show_size, show_time

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

FEW = 12
"""Levels of a parameter that are listed one by one."""
LITTLE = 1e-3
"""A part of the objective that is not worth the tuning."""
WITHIN = 0.01
"""How near to the optimum of the linear program counts as reached."""


def as_text(tuning: Tuning) -> str:
    """Rows with their certificate, what changed, and how fast."""
    return "\n".join([*_rows(tuning), *_changes(tuning), *tuning.along, *_course(tuning)])


def _rows(tuning: Tuning) -> list[str]:
    from fabsim.study.objectives import FACTOR, TERMS

    names = [name for name in tuning.rows[0].terms if name != "utilisation"]
    head = ["", "busiest link us", "above optimum"]
    head += [part for name in names for part in (f"{name} {TERMS[name].unit}", "against start")]
    table = [head]
    start = tuning.rows[0].terms
    for row in tuning.rows:
        cells = [row.name, f"{row.busy * 1e6:.3f}", f"{100 * (row.busy / tuning.optimum - 1):+.2f} %"]
        for name in names:
            known = name in row.terms
            cells.append(f"{row.terms[name] * FACTOR[TERMS[name].unit]:.3f}" if known else "")
            cells.append(f"{100 * (row.terms[name] / start[name] - 1):+.2f} %" if known and start[name] else "")
        table.append(cells)
    proof = f"no split of the paths given is below {tuning.optimum * 1e6:.3f} us (linear program and its dual)"
    if tuning.count > 1:
        proof = f"over {tuning.count} scenarios; {proof}, each scenario with a split of its own"
    return [align(table), proof]


def _changes(tuning: Tuning) -> list[str]:
    lines = []
    for name, (before, after) in tuning.levels.items():
        if before.ndim == 2:
            moved = float(0.5 * np.abs(after - before).sum(1).max())
            lines.append(
                f"{name}: {len(before)} splits; the one that changed most moved {100 * moved:.1f} % of its bytes"
            )
        elif len(before) > FEW:
            low, high = (_level(tuning, name, int(number)) for number in (after.argmin(), after.argmax()))
            lines.append(f"{name}: {len(before)} values, from {low} to {high}")
        else:
            pairs = (f"{_shown(name, value)} -> {_level(tuning, name, number)}" for number, value in enumerate(before))
            lines.append(f"{name}: {', '.join(pairs)}")
    return lines


def _level(tuning: Tuning, name: str, number: int) -> str:
    """A tuned level, and what it is of."""
    from fabsim.study.parameters import Levels

    levels = next(one for one in tuning.parameters if one.name == name)
    assert isinstance(levels, Levels)
    place = group_name(tuning.base, levels, number)
    return _shown(name, tuning.levels[name][1][number]) + f" ({place})" * bool(place)


def _course(tuning: Tuning) -> list[str]:
    history = tuning.tuned.history
    steps = len(history) - 1
    descents = f" x {history.shape[1]} descents" if history.shape[1] > 1 else ""
    best = int(np.unravel_index(history.argmin(), history.shape)[0])
    lines = [f"{steps} steps{descents} in {tuning.seconds:.1f} s; best at step {best}"]
    if history.min() > (1 - LITTLE) * history[0, 0]:
        below = f"less than {100 * LITTLE:g} % below its start"
        lines.append(f"the objective is {below}: it hardly depends on what is tuned")
    names = [name for name, _ in tuning.objective.weights]
    if "utilisation" in names:
        busy = tuning.tuned.terms[:, :, names.index("utilisation")].min(1)
        near = np.flatnonzero(busy <= tuning.optimum * (1 + WITHIN))
        if len(near):
            lines.append(f"within {100 * WITHIN:g} % of the optimum from step {near[0]} on")
    return lines


def _shown(name: str, value: float) -> str:
    """A value of a key, as people write it."""
    if name.startswith("queue.") or name == "transport.window":
        return show_size(value)
    if name == "links.capacity":
        return show_rate(value)
    return show_time(value) if name in ("traffic.start", "transport.target") else f"{value:.4g}"


def refuse_to_replace(folder: Path, force: bool) -> None:
    """Refuses a folder in which files would be replaced that are no tuning's to go on from.

    Raises:
        InputError: files of these names without a journal, while `force` is off.
    """
    there = [name for name in FILES if (folder / name).exists()]
    if there and not force and not (folder / JOURNAL).exists():
        text = f"has {', '.join(there)}, and no journal of a tuning"
        raise InputError(f"{folder}: {text}; give --force to replace what is there, or name another folder")


def write(scenario: Scenario, tuning: Tuning, folder: Path) -> list[Path]:
    """The result, the tuned scenario and two pictures, into a folder."""
    from fabsim import plots

    result, pictures = folder / RESULT, [folder / name for name in PICTURES]
    publish(result, encode({"": sheet(scenario, tuning)}), force=True)
    tuned = write_tuned(scenario, tuning.base, tuning.parameters, tuning.tuned.raw, folder)
    names = [name for name, _ in tuning.objective.weights]
    plots.save(plots.descent(tuning.tuned.history, tuning.tuned.smooth, " + ".join(names)), pictures[0])
    plots.save(
        plots.before_after(tuning.busy * 1e6, "line-rate time of the link (us)", tuning.optimum * 1e6), pictures[1]
    )
    return [result, tuned, *pictures]


def sheet(scenario: Scenario, tuning: Tuning) -> Sheet:
    """History, values before and after, rows, and the load of each link, as variables."""
    history = ("step", "descent")
    variables = {
        "objective": Variable(history, tuning.tuned.history, "1", "true objective, each term over its start, weighted"),
        "descended": Variable(history, tuning.tuned.smooth, "1", "smooth objective"),
        "row": Variable(("row",), np.array([row.name for row in tuning.rows])),
        "busiest": Variable(("row",), np.array([row.busy for row in tuning.rows]), "s", "busiest link at line rate"),
        "link": Variable(("link",), np.array(link_names(tuning.base.net.fabric))),
        "busy_before": Variable(("link",), tuning.busy[0], "s", "line-rate time at the start"),
        "busy_after": Variable(("link",), tuning.busy[1], "s", "line-rate time as tuned"),
    }
    for name in tuning.rows[0].terms:
        values: Float = np.array([row.terms.get(name, np.nan) for row in tuning.rows])
        variables[name] = Variable(("row",), values, "B" if name in ("peak_queue", "lost_bytes") else "s")
    for name, pair in tuning.levels.items():
        plain = name.replace(".", "_")
        dims = (f"{plain}_group", f"{plain}_lane")[: pair[0].ndim]
        variables |= {f"{plain}_{when}": Variable(dims, x) for when, x in zip(("before", "after"), pair, strict=True)}
    about = {"kind": "tuning", "name": tuning.name, "seed": scenario.seed}
    return Sheet(variables, about | {"scenario": scenario.resolved(), "optimum": tuning.optimum})
