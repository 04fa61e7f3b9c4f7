"""The text of `fabsim tune --check`: the gradient by each parameter, three ways, with and without checkpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fabsim.errors import Stopped
from fabsim.scenario.tune import prepare

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.gradient_check import Slope

TOLERANCE = 1e-4


def slopes(scenario: Scenario, *, progress: bool = True) -> dict[tuple[str, bool], Slope]:
    """A derivative of the objective by each parameter, by name and by whether checkpoints are used; in float64.

    Raises:
        InputError: as `prepare`; a parameter that nothing depends on.
    """
    import jax
    import jax.numpy as jnp

    from fabsim.study.gradient_check import programs, slope
    from fabsim.study.objectives import SHARPNESS
    from fabsim.study.tune import refuse_inert, value

    task = prepare(scenario.change({"precision": "float64"}), progress=progress)
    parameters = task.parameters[0]
    raw = tuple(parameter.begin() for parameter in parameters)
    found: dict[tuple[str, bool], Slope] = {}
    for checkpoint in (True, False):
        objective = replace(task.objective, checkpoint=checkpoint)

        def smooth(raw: tuple[jax.Array, ...]) -> jax.Array:
            scales, sharpness = jnp.asarray(task.scales), jnp.asarray(SHARPNESS)
            return value(objective, task.plan, raw, task.batches, scales, sharpness)[0]  # noqa: B023

        compiled = programs(smooth)
        random = np.random.default_rng(scenario.seed)
        for place, parameter in enumerate(parameters):
            found[parameter.name, checkpoint] = slope(compiled, raw, place, random)
    felt = np.array([abs(found[parameter.name, True].reverse) for parameter in parameters])
    refuse_inert(parameters, felt)
    return found


def check_gradients(scenario: Scenario, *, progress: bool = True) -> str:
    """A table. Raises Stopped, with the table, where a derivative is off by more than TOLERANCE."""
    found = slopes(scenario, progress=progress)
    rows = [("derivative by", "checkpoints", "forward", "reverse", "differences", "apart")]
    for (name, checkpoint), one in found.items():
        kink = "" if np.isfinite(one.difference) and one.tries <= 8 else "  (at a kink)"
        figures = (f"{one.forward:.7g}", f"{one.reverse:.7g}", f"{one.difference:.7g}", f"{one.apart:.1e}{kink}")
        rows.append((name, "yes" if checkpoint else "no", *figures))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    lines.append("of the objective over its start, along a random direction, in float64, off the kinks")
    wrong = sorted({name for (name, _), one in found.items() if not one.apart <= TOLERANCE})
    if wrong:
        raise Stopped("\n".join([*lines, f"{', '.join(wrong)}: off by more than {TOLERANCE:g}"]))
    return "\n".join(lines)
