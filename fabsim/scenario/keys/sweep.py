"""What may stand under `sweep`: which values are tried, how they are combined, and what is kept of each run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fabsim.scenario.keys.fields import ALMOST, Count, Many, Section, Seed, Text, like
from fabsim.study.catalogue import TraceName, metric, series_of, unknown_metric
from fabsim.units import UnitError, quantity, shown


def _choices(value: Any) -> Any:
    """A list of values, or values by label."""
    if isinstance(value, list | tuple):
        return tuple(value)
    if isinstance(value, dict) and all(isinstance(label, str) for label in value):
        return value
    raise UnitError(f"neither a list of values nor values by label, given {shown(value)}; write it like [1 BDP, 2 BDP]")


def _metric(name: str) -> str:
    if metric(name) is None:
        raise UnitError(unknown_metric(name))
    return name


Choices = Annotated[
    tuple[Any, ...] | dict[str, Any],
    BeforeValidator(_choices, json_schema_input_type=list[Any] | dict[str, Any]),
    Field(min_length=1),
]
Axes = Annotated[dict[str, Choices], Field(min_length=1)]
MetricName = Annotated[str, AfterValidator(_metric)]


class Range(Section):
    """Numbers between two bounds, which are whole numbers, plain numbers, or quantities of one unit."""

    low: int | float | str = like("100 kB", means="smallest value", smooth=ALMOST)
    high: int | float | str = like("1 MB", means="largest value", smooth=ALMOST)
    log: bool = like(
        "true", False, means="even in the logarithm: as many values from 1 to 2 as from 2 to 4", source="ours"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Range:
        """Bounds of one kind, the lower one first. Raises what pydantic turns into a sentence."""
        (low, unit), (high, other) = quantity(self.low), quantity(self.high)
        if unit != other:
            raise UnitError(f"{shown(self.low)} and {shown(self.high)} have different units; give both in the same")
        if not low < high:
            raise UnitError(f"low {shown(self.low)} is not below high {shown(self.high)}; give the smaller one first")
        if self.log and low <= 0:
            raise UnitError(f"a logarithmic range begins above 0, given {shown(self.low)}; give a low above 0")
        return self


class Sample(Section):
    """Points drawn at random from ranges of several keys at once."""

    count: Count = like("100", means="points that are drawn")
    ranges: Annotated[dict[str, Range], Field(min_length=1)] = like(
        "{queue.buffer: {low: 100 kB, high: 1 MB, log: true}}", means="bounds of each key"
    )
    method: Literal["random", "latin_hypercube", "sobol"] = like(
        "sobol",
        "sobol",
        means="independent draws, a Latin hypercube, or a scrambled Sobol sequence",
        source="Sobol, USSR Comput. Math. Math. Phys. 7, 1967; McKay, Beckman, Conover, Technometrics 21(2), 1979",
    )
    seed: Seed | None = like("1", None, means="seed of the draw", absent="the scenario's seed")


class Sweep(Section):
    """Values to try. `grid`, `zip`, `sample` and `seeds` are combined: each point of one with each point of the others.

    Values stand in a list, or by label ({small: {kind: leaf_spine, ...}, large: {...}}), which whole sections need.
    """

    grid: Axes | None = like(
        "{transport.window: [1 BDP, 2 BDP]}",
        None,
        means="values by key; every combination of them is run",
        absent="no grid",
    )
    zip: Axes | None = like(
        "{fabric.spines: [8, 16], fabric.rate: [800 Gbps, 400 Gbps]}",
        None,
        means="values by key that go together: the first of each, the second of each, ...",
        absent="no zip",
    )
    sample: Sample | None = like("{count: 100, ranges: {...}}", None)
    seeds: Count | None = like("4", None, means="seeds of each point", absent="the scenario's `seeds`")
    metrics: Annotated[Many[MetricName], Field(min_length=1)] | None = like(
        "[last_completion, completion_p99.9, queue_peak]",
        None,
        means="figures that are kept of each run; completion_pX is the X-th percentile",
        absent="completion times, slowdowns and totals",
    )
    traces: Many[TraceName] = like(
        "[completion, series_queue]",
        (),
        means="arrays that are kept of each run: by flow, or (series_...) over time for the links of `watch`",
        source="ours: none, they are large",
    )
    watch: Many[Text] = like(
        '["leaf0->spine*"]',
        (),
        means="links whose series are kept in frames of `every`, by name; a series is NaN where a fabric lacks the "
        "link, and after the frame of the last completion",
        source="ours: none",
    )
    batch: Count | None = like(
        "64", None, means="runs that are one program and one file", absent="as many as memory and device like"
    )

    @model_validator(mode="after")
    def _something_to_vary(self) -> Sweep:
        """At least one axis, keys that are varied once, and zipped values that are equally many."""
        axes = [self.grid or {}, self.zip or {}, self.sample.ranges if self.sample else {}]
        if not any(axes) and self.seeds is None:
            raise UnitError("nothing is varied; give a grid, a zip, a sample or seeds")
        keys = [key for axis in axes for key in axis]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise UnitError(f"{twice} is varied twice; take it out of grid, zip or sample")
        lengths = {key: len(values) for key, values in (self.zip or {}).items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{number} of {key}" for key, number in lengths.items())
            raise UnitError(f"zipped values must be equally many, given {told}")
        return self

    @model_validator(mode="after")
    def _series_of_links(self) -> Sweep:
        """Series and the links that they are of go together."""
        series = series_of(self.traces)
        if series and not self.watch:
            raise UnitError(f'{series[0]} is kept of links; name them, like watch: ["leaf0->spine*"]')
        if self.watch and not series:
            raise UnitError("nothing is kept of the links of `watch`; give traces: [series_queue], or leave it out")
        return self
