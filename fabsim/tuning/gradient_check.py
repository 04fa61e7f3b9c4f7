"""The text of `fabsim tune --check`: the gradient by each parameter, four ways."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import Stopped
from fabsim.tables import align
from fabsim.tuning.tune import prepare

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.gradient_check import Slope

TOLERANCE = 1e-4


def slopes(scenario: Scenario, *, progress: bool = True) -> dict[str, Slope]:
    """A derivative of the objective by each parameter; in float64.

    Raises:
        InputError: as `prepare`; a parameter that nothing depends on.
    """
    import jax.numpy as jnp

    from fabsim.study.cases import value
    from fabsim.study.gradient_check import Raw, programs, slope
    from fabsim.study.objectives import SHARPNESS
    from fabsim.study.tune import refuse_inert

    task = prepare(scenario.change({"precision": "float64"}), progress=progress)
    parameters = task.parameters[0]
    raw = tuple(parameter.begin() for parameter in parameters)

    def smooth(raw: Raw, checkpoint: bool = True) -> Any:
        objective = replace(task.objective, checkpoint=checkpoint)
        return value(objective, task.plan, raw, task.batches, jnp.asarray(task.scales), jnp.asarray(SHARPNESS))[0]

    compiled = programs(smooth, lambda raw: smooth(raw, checkpoint=False))
    random = np.random.default_rng(scenario.seed)
    found = {one.name: slope(compiled, raw, place, random) for place, one in enumerate(parameters)}
    refuse_inert(parameters, np.array([abs(one.reverse) for one in found.values()]))
    return found


def check_gradients(scenario: Scenario, *, progress: bool = True) -> str:
    """A table. Raises Stopped, with the table, where a derivative is off by more than TOLERANCE."""
    from fabsim.study.gradient_check import TRIES

    found = slopes(scenario, progress=progress)
    rows: list[tuple[str, ...]] = [
        ("derivative by", "forward", "reverse", "without checkpoints", "differences", "apart")
    ]
    for name, one in found.items():
        kink = "" if one.tries <= TRIES else "  (at a kink)"
        exact = (f"{value:.7g}" for value in (one.forward, one.reverse, one.unsaved, one.difference))
        rows.append((name, *exact, f"{one.apart:.1e}{kink}"))
    lines = [align(rows)]
    lines.append("of the objective over its start, along a random direction, in float64, off the kinks")
    wrong = [name for name, one in found.items() if not one.apart <= TOLERANCE]
    if wrong:
        raise Stopped("\n".join([*lines, f"{', '.join(wrong)}: off by more than {TOLERANCE:g}"]))
    return "\n".join(lines)
