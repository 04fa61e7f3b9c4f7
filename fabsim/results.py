"""What a run leaves: a table of flows, a table of links, series over time, and how it came about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabsim.busiest import busiest
from fabsim.errors import InputError
from fabsim.store import Sheet, Variable, decode, encode, publish
from fabsim.typing import Float, Int


def column(dims: str, units: str, meaning: str) -> Any:
    """A field that is a variable of the file; its name there is the name of the field."""
    return field(metadata={"dims": tuple(dims.split()), "units": units, "meaning": meaning})


@dataclass(frozen=True)
class Ensemble:
    """Headline figures of one scenario under several seeds.

    Attributes:
        seeds: [S].
        figures: [S] each, by name, with unit and meaning; NaN where a seed did not end.
    """

    seeds: Int
    figures: dict[str, Variable]

    def spread(self, name: str) -> tuple[float, float, float]:
        """5th percentile, median and 95th percentile of a figure, over the seeds that ended; NaN where none did."""
        values = self.figures[name].values
        ended = values[np.isfinite(values)]
        low, middle, high = np.quantile(ended, [0.05, 0.5, 0.95]) if len(ended) else [np.nan] * 3
        return float(low), float(middle), float(high)


@dataclass(frozen=True)
class Result:
    """One run. Axes: flow, traffic (its entries), group (collectives), link, classes (of traffic), time (frames) and
    watched (links whose series are kept).

    Each array field is a variable of the result file, under the same name. Infinite times are flows that did not end.

    Attributes:
        name: of the scenario, or of the case.
        scenario: the resolved scenario, as YAML text; it gives the same run again.
        versions: of fabsim and what it stands on.
        sharing: the rule by which a port is shared, in words.
        steps, dt, wall_s: number of steps, their length (s), and seconds the run took.
        ensemble: figures over several seeds, where the scenario asks for them; all else is of the first of them.
    """

    name: str
    scenario: str
    seed: int
    versions: dict[str, str]
    sharing: str
    steps: int
    dt: float
    wall_s: float

    src: Int = column("flow", "", "sending host")
    dst: Int = column("flow", "", "receiving host")
    size: Float = column("flow", "B", "payload")
    start: Float = column("flow", "s", "time the flow may first send")
    completion: Float = column("flow", "s", "time the last byte is at the receiver")
    sender_completion: Float = column("flow", "s", "time the sender knows that all has arrived")
    mean_rate: Float = column("flow", "B/s", "payload over the time from start to completion")
    retransmitted: Float = column("flow", "B", "bytes that had to be sent again")
    zero_load: Float = column(
        "flow", "s", "shortest completion time alone on its paths; NaN where it was not worked out"
    )
    traffic_class: Int = column("flow", "", "class of traffic, by its number")
    entry: Int = column("flow", "", "entry of the traffic that the flow comes from, by its number")
    entries: NDArray = column("traffic", "", "entries of the traffic, by number and kind")

    link: NDArray = column("link", "", "tail->head")
    tail_tier: Int = column("link", "", "tier of the tail: 0 hosts, 1 leaves, 2 spines, 3 cores, 5 borders")
    head_tier: Int = column("link", "", "tier of the head")
    tail: Int = column("link", "", "node at the tail")
    head: Int = column("link", "", "node at the head")
    capacity: Float = column("link", "B/s", "line rate")
    buffer: Float = column("link", "B", "output queue; NaN where it is unlimited or derived")
    sent: Float = column("link", "B", "bytes of data that left")
    headers: Float = column("link", "B", "bytes of headers of trimmed packets, and of acknowledgements, that left")
    utilisation: Float = column("link", "1", "data and headers over what the line rate could have carried")
    queue_mean: Float = column("link", "B", "mean queue until the last frame")
    queue_peak: Float = column("link", "B", "largest queue")
    marked: Float = column("link", "B", "bytes marked with ECN")
    dropped: Float = column("link", "B", "bytes dropped, trimmed or lost on the link")
    paused: Float = column("link", "s", "time for which the link had to be silent, since its head asked for it (PFC)")

    collectives: NDArray = column("group", "", "place in the traffic, kind and ranks of each collective")
    collective_start: Float = column("group", "s", "when its first flow started")
    collective_time: Float = column("group", "s", "from then to its last byte; infinite where that did not come")
    busbw: Float = column("group", "B/s", "its bus bandwidth, as nccl-tests has it")

    classes: NDArray = column("classes", "", "classes of traffic; one named all, where none is declared")
    class_sent: Float = column("classes link", "B", "bytes of data that left, by class")
    class_utilisation: Float = column("classes link", "1", "data over what the link could have carried, by class")
    class_queue_mean: Float = column("classes link", "B", "mean queue until the last frame, by class")
    class_queue_peak: Float = column("classes link", "B", "largest queue, by class")
    class_marked: Float = column("classes link", "B", "bytes marked with ECN, by class")
    class_dropped: Float = column("classes link", "B", "bytes dropped, trimmed or lost on the link, by class")

    time: Float = column("time", "s", "end of each frame")
    total_sent: Float = column("time", "B", "bytes of data into receivers")
    total_queue: Float = column("time", "B", "mean bytes waiting in switches")
    total_marked: Float = column("time", "B", "bytes marked, all links")
    total_dropped: Float = column("time", "B", "bytes dropped or trimmed, all links")
    watched: NDArray = column("watched", "", "links whose series are kept")
    series_sent: Float = column("time watched", "B", "bytes of data that left, by frame")
    series_utilisation: Float = column("time watched", "1", "data and headers over line rate, by frame")
    series_queue: Float = column("time watched", "B", "mean queue, by frame")
    series_peak: Float = column("time watched", "B", "largest queue, by frame")
    series_marked: Float = column("time watched", "B", "bytes marked, by frame")
    series_dropped: Float = column("time watched", "B", "bytes dropped or trimmed, by frame")

    ensemble: Ensemble | None = None

    @property
    def duration(self) -> Float:
        """[F] s from the start of a flow to its completion at the receiver; infinite where it did not end."""
        return duration(self.start, self.completion)

    @property
    def slowdown(self) -> Float:
        """[F] completion time over the shortest that the flow could have alone on its paths, however split, with all
        its bytes at hand: those of a ring come from others, so that it is large there. NaN where it was not worked
        out."""
        return self.duration / self.zero_load

    @property
    def busiest(self) -> Int:
        """[L] numbers of the links, the busiest first; see fabsim.busiest."""
        return busiest(self.tail_tier, self.capacity, self.utilisation, self.queue_peak, self.sent)

    @property
    def busiest_watched(self) -> Int:
        """Places among the watched links, the busiest first."""
        places = {name: place for place, name in enumerate(self.watched.tolist())}
        return np.array([places[name] for name in self.link[self.busiest].tolist() if name in places], np.int64)

    @property
    def last(self) -> float:
        """s, time of the last completion; NaN where no flow has ended."""
        ended = self.completion[np.isfinite(self.completion)]
        return float(ended.max()) if len(ended) else float("nan")


def duration(start: Float, completion: Float) -> Float:
    """[F] s between the two; infinite where a flow did not end, or never started."""
    return np.subtract(completion, start, out=np.full(len(start), np.inf), where=np.isfinite(completion))


COLUMNS = tuple(item for item in fields(Result) if item.metadata)
_ENSEMBLE = "ensemble_"
"""Begins the names of the variables of an ensemble in a file."""
OTHERS = {
    "sweep": "is of a sweep, not of a run; fabsim show, plot, report and export read it",
    "tuning": "is of a tuning, not of a run; fabsim.open reads it in Python, and the tuned.yaml beside it runs",
}
"""Files of another kind, and what reads them."""
_FACTS = ("name", "seed", "sharing", "steps", "dt", "wall_s")


def write(results: Result | Sequence[Result], path: str | Path, force: bool = False) -> None:
    """Writes a run, or the cases of one scenario, as one file: whole or not at all.

    Raises:
        InputError: the file exists and `force` is off, or its folder is missing.
        OSError: the disk is full or cannot be written; nothing is left behind.
    """
    cases = [results] if isinstance(results, Result) else list(results)
    if len(cases) == 1:
        sheets = {"": _sheet(cases[0])}
    else:
        root = Sheet({}, {"cases": json.dumps([case.name for case in cases])})
        sheets = {"": root} | {f"case{number}": _sheet(case) for number, case in enumerate(cases)}
    publish(path, encode(sheets), force)


def read(path: str | Path) -> list[Result]:
    """The runs of a result file: one, or one for each case.

    Raises:
        InputError: no such file, not a result file, or that of a sweep or a tuning.
    """
    sheets = decode(path)
    kind = sheets[""].attributes.get("kind")
    if kind in OTHERS:
        raise InputError(f"{path}: {OTHERS[kind]}")
    cases = [
        sheet for name, sheet in sorted(sheets.items(), key=lambda item: (len(item[0]), item[0])) if sheet.variables
    ]
    try:
        return [_result(sheet) for sheet in cases]
    except KeyError as error:
        raise InputError(f"{path}: not a result file of this version of fabsim ({error} is missing)") from None


def _sheet(result: Result) -> Sheet:
    """A run as variables and attributes. The scenario is a variable: attributes end at 64 KiB."""
    variables = {
        item.name: Variable(
            item.metadata["dims"],
            np.asarray(getattr(result, item.name)),
            item.metadata["units"],
            item.metadata["meaning"],
        )
        for item in COLUMNS
    }
    text = Variable((), np.array(result.scenario, dtype=object), long_name="resolved scenario, YAML")
    facts = {name: getattr(result, name) for name in _FACTS} | {"versions": json.dumps(result.versions)}
    if result.ensemble is not None:
        variables["seed"] = Variable(("seed",), np.asarray(result.ensemble.seeds), "", "seeds of the ensemble")
        variables |= {_ENSEMBLE + name: figure for name, figure in result.ensemble.figures.items()}
    return Sheet(variables | {"scenario": text}, facts)


def _result(sheet: Sheet) -> Result:
    """The reverse of `_sheet`."""
    facts: dict[str, Any] = {name: sheet.attributes[name] for name in _FACTS}
    for name, kind in (("seed", int), ("steps", int), ("dt", float), ("wall_s", float)):
        facts[name] = kind(facts[name])
    facts["versions"] = json.loads(str(sheet.attributes["versions"]))
    facts["scenario"] = str(sheet.variables["scenario"].values.item())
    facts |= {item.name: sheet.variables[item.name].values for item in COLUMNS}
    if "seed" in sheet.variables:
        figures = {
            name.removeprefix(_ENSEMBLE): figure
            for name, figure in sheet.variables.items()
            if name.startswith(_ENSEMBLE)
        }
        facts["ensemble"] = Ensemble(sheet.variables["seed"].values, figures)
    return Result(**facts)
