"""What may stand under `tune`: what changes, within which bounds and budget, what is made small, and how."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from fabsim.scenario.keys.fields import ALMOST, Count, Fraction, Many, Section, Seed, Text, Written, like
from fabsim.units import UnitError, shown

OBJECTIVES = (
    "last_completion",
    "p99_completion",
    "mean_completion",
    "collective_time",
    "peak_queue",
    "lost_bytes",
    "utilisation",
)
"""Names of fabsim.study.objectives.TERMS, which this file does not import: that would import JAX."""


def _weights(value: Any) -> tuple[tuple[str, float], ...]:
    """One objective, or several with weights."""
    if isinstance(value, tuple):
        return value
    given = {value: 1.0} if isinstance(value, str) else value
    if not isinstance(given, dict) or not given:
        raise UnitError(f"not an objective, given {shown(value)}; write it like last_completion")
    for name, weight in given.items():
        if name not in OBJECTIVES:
            raise UnitError(
                f"there is no objective {shown(name)}; use {', '.join(OBJECTIVES[:-1])} or {OBJECTIVES[-1]}"
            )
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e9:
            raise UnitError(f"the weight of {name} must be a number above 0, given {shown(weight)}; write it like 0.1")
    return tuple((name, float(weight)) for name, weight in given.items())


def _written(value: tuple[tuple[str, float], ...]) -> Any:
    return value[0][0] if len(value) == 1 else dict(value)


_NAMES = {"enum": list(OBJECTIVES)}
_SUM = {"type": "object", "propertyNames": _NAMES, "additionalProperties": {"type": "number", "exclusiveMinimum": 0}}
Weights = Annotated[
    tuple[tuple[str, float], ...],
    BeforeValidator(_weights),
    PlainSerializer(_written),
    Written(f"one of {', '.join(OBJECTIVES)}; or several with weights", "", "", {"anyOf": [_NAMES, _SUM]}),
]
Value = Annotated[
    float | str,
    Written("a value of the key", "that of the key", "", {"type": ["number", "string"]}),
]
Positive = Annotated[float, Field(gt=0.0)]
Part = Annotated[float, Field(gt=0.0, le=1.0)]


class Tuned(Section):
    """One thing that may change. Bounds and budgets are kept by construction, at every step."""

    key: Text = like(
        "split.weight",
        means="what changes: split.weight (shares of the paths), queue.buffer, queue.ecn_low, queue.ecn_high and what "
        "else queue.links may say, links.capacity (between switches), traffic.start, or a number of the transport "
        "(transport.window)",
    )
    per: Literal["flow", "leaf_pair", "tier", "link", "class", "entry", "all"] | None = like(
        "tier",
        None,
        means="what has a value of its own: each flow, pair of leaves, tier, link, class or entry of traffic, or "
        "all have one; of a group slow ports and those of queue.links move along, by the same factor",
        absent="flow for split.weight, class for queues of classes, tier for buffers and capacities, entry for starts, "
        "else all",
    )
    low: Value | None = like(
        "20 kB", None, means="smallest value", absent="a packet, 1 % of a capacity, else 0", smooth=ALMOST
    )
    high: Value | None = like(
        "2 BDP", None, means="largest value", absent="none, or what the budget leaves", smooth=ALMOST
    )
    total: Value | None = like(
        "4 MB",
        None,
        means="sum over all links that is shared out, or now: as much as there is",
        absent="no total",
        smooth=ALMOST,
    )
    cost: Positive | Literal["now"] | None = like(
        "1.2e6",
        None,
        means="for links.capacity: what ends, ports and fibre may cost by the price list, in proportion to the rate; "
        "or now: as much as they do",
        absent="no budget",
        smooth=ALMOST,
    )


class Failures(Section):
    """Cables that are drawn to be slow or dead, in each sample others, as `count` of `fabric.degraded` draws them."""

    samples: Count = like("8", 8, means="draws, each a fabric of its own", source="ours: enough for a mean")
    cables: Count = like("1", 1, means="cables that fail in each", source="ours: one at a time")
    speed: Fraction = like("0.25", 0.25, means="the part of its rate that a failed cable keeps; 0 is dead",
                           source="ours: one lane of four", smooth=ALMOST)  # fmt: skip
    among: Text | None = like(
        '"leaf*->spine*"', None, means="which links between switches may fail, by name", absent="all of them"
    )
    seed: Seed | None = like("1", None, means="seed of the draws", absent="the scenario's seed")


class Over(Section):
    """What one and the same tuning must be good for: cases of the scenario, failures, draws of the traffic."""

    cases: bool = like("true", False, means="all `cases` of the scenario", source="ours: the scenario without them")
    failures: Failures | None = like("{samples: 8, cables: 1, speed: 0.25}", None, absent="the fabric as it is")
    seeds: Count = like("4", 1, means="seeds of whatever is drawn (seed, seed + 1, ...)", source="ours: one")
    measure: Literal["mean", "worst", "cvar"] = like(
        "cvar", "mean", means="what counts of them all: the mean, the worst, or the mean of the worst `share`",
        source="Rockafellar and Uryasev, J. Risk 2(3), 2000 (cvar)",
    )  # fmt: skip
    share: Part = like("0.25", 0.25, means="for cvar: the worst part that is averaged", source="ours", smooth="choice")


class Tune(Section):
    """What to better by gradient descent."""

    parameters: Annotated[Many[Tuned], Field(min_length=1)] | None = like(
        "[{key: queue.buffer, per: tier, total: now}]",
        None,
        means="what may change, within which bounds and budget",
        absent="[{key: split.weight}]: the share of each flow on each path",
    )
    objective: Weights = like(
        "last_completion",
        (("last_completion", 1.0),),
        means="what is made small; of several each counts by its value at the start times its weight",
        source="ours: everybody waits for the last byte",
        smooth="choice",
    )
    steps: Count = like("60", 60, means="steps of the optimiser, at most", source="ours: enough for our examples")
    optimiser: Text = like(
        "adam",
        "adam",
        means="rule of descent, by its name in optax; lbfgs searches along a line",
        source="Kingma and Ba, arXiv:1412.6980",
    )
    learning_rate: Positive = like(
        "0.1",
        0.1,
        means="length of a step, on logarithms of shares and of places between bounds",
        source="ours: enough for our examples",
        smooth="smooth",
    )
    schedule: Literal["constant", "cosine", "exponential"] = like(
        "cosine",
        "cosine",
        means="how the learning rate goes on: to 0 as a cosine, or to a hundredth",
        source="Loshchilov and Hutter, arXiv:1608.03983",
    )
    restarts: Annotated[int, Field(ge=0)] = like(
        "3", 0, means="further descents, from points scattered around the first", source="ours: none"
    )
    tolerance: Annotated[float, Field(ge=0.0)] = like(
        "1e-4",
        0.0,
        means="stop when the best figure has not improved by this part in `patience` steps; 0: never",
        source="ours: all steps are done",
        smooth="choice",
    )
    patience: Count = like("20", 20, means="steps without improvement before the end", source="ours")
    over: Over | None = like("{cases: true}", None, absent="the scenario as it is")

    @property
    def changes(self) -> tuple[Tuned, ...]:
        """What may change, as given or by default."""
        return self.parameters or (Tuned(key="split.weight"),)
