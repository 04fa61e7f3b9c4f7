"""All shards as one table over the axes of the design, and as an xarray Dataset."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.collect import versions
from fabsim.store import Sheet, Variable
from fabsim.study.catalogue import TRACE_AXES, metric
from fabsim.study.series import laid
from fabsim.sweeps.design import Design
from fabsim.sweeps.work import POINT
from fabsim.swept import NOT_RUN

if TYPE_CHECKING:
    import xarray

    from fabsim.scenario.scenario import Scenario


def whole(scenario: Scenario, resolved: str, design: Design, sheets: Iterable[Sheet]) -> Sheet:
    """Shards put together; NaN, and the reason NOT_RUN, where one is missing."""
    names = [axis.name for axis in design.axes]
    variables = coordinates(design)
    figures = {name: np.full(design.count, np.nan) for name in metrics_of(scenario)}
    reason = np.full(design.count, NOT_RUN, dtype=object)
    traces: dict[str, Any] = {}
    for sheet in sheets:
        points = sheet.variables[POINT].values
        reason[points] = sheet.variables["reason"].values
        for name, variable in sheet.variables.items():
            if name in figures:
                figures[name][points] = variable.values
            elif name in TRACE_AXES:
                traces[name] = laid(traces.get(name), points, variable.values, design.count)
            elif name in ("time", "watched") and len(variable.values) >= len(variables.get(name, variable).values):
                variables[name] = variable
    for name, values in figures.items():
        about = metric(name)
        assert about is not None
        variables[name] = Variable(tuple(names), values.reshape(design.shape), about.unit, about.meaning)
    failed = (reason != "").reshape(design.shape)
    variables["failed"] = Variable(tuple(names), failed.astype(np.int8), "", "1 where there are no figures, else 0")
    variables["reason"] = Variable(tuple(names), reason.reshape(design.shape), "", "why; empty where there are figures")
    for name, values in traces.items():
        axes, about = TRACE_AXES[name]
        shape = (*design.shape, *values.shape[1:])
        variables[name] = Variable((*names, *axes), values.reshape(shape), about.unit, about.meaning)
    text = Variable((), np.array(resolved, dtype=object), long_name="resolved scenario, YAML")
    attributes = {
        "kind": "sweep",
        "name": scenario.name,
        "seed": scenario.seed,
        "versions": json.dumps(versions()),
        "coordinates_of": json.dumps([key for axis in design.axes for key in axis.labels]),
    }
    return Sheet(variables | {"scenario": text}, attributes)


def metrics_of(scenario: Scenario) -> tuple[str, ...]:
    """What is kept of each run: what is asked for, or else all that the traffic of the file has."""
    from fabsim.scenario.keys.traffic import AllToAll, Ring
    from fabsim.study.catalogue import METRICS, OF_COLLECTIVES

    together = any(isinstance(entry, Ring | AllToAll) for entry in scenario.traffic)
    asked = None if scenario.sweep is None else scenario.sweep.metrics
    return asked or (*METRICS, *(OF_COLLECTIVES if together else ()))


def coordinates(design: Design) -> dict[str, Variable]:
    """The values of each key along its axis."""
    found = {}
    for axis in design.axes:
        for key in axis.labels:
            values, unit = axis.coordinate(key)
            found[key] = Variable((axis.name,), values, unit)
    return found


def dataset(sheet: Sheet) -> xarray.Dataset:
    """As xarray has it: what `fabsim.open` gives for its file."""
    import xarray

    data = {
        name: (v.dims, v.values, {"units": v.units, "long_name": v.long_name}) for name, v in sheet.variables.items()
    }
    found = xarray.Dataset(data, attrs=dict(sheet.attributes))
    return found.set_coords(json.loads(str(sheet.attributes["coordinates_of"])))
