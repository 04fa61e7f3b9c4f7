"""A tuned scenario as a scenario: what the tuner found, said again in the language of scenarios."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.routing import Routes
from fabsim.scenario.compile.files import FILES
from fabsim.scenario.compile.queues import NEVER
from fabsim.scenario.guide.reference import keys_of
from fabsim.scenario.text.override import override
from fabsim.store import publish
from fabsim.topology import Fabric, find_links, link_names
from fabsim.tuning.folder import SPLIT, TUNED
from fabsim.tuning.group_names import group_of, pattern, start_place
from fabsim.tuning.member import Member
from fabsim.typing import Float, Int

if TYPE_CHECKING:
    from fabsim.models.model import Model
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.parameters import Parameter


def write_tuned(
    scenario: Scenario, base: Member, parameters: Sequence[Parameter], raw: Sequence[Any], folder: Path
) -> Path:
    """Write `tuned.yaml` into a folder, and the split beside it. `fabsim run` takes it."""
    from fabsim.models.granular import ENDLESS, GranularQueue
    from fabsim.scenario.scenario import validated
    from fabsim.study.parameters import Levels, Shares, put_all

    _, model = put_all(tuple(parameters), (base.problem, base.model), tuple(raw))
    changes: dict[str, Any] = {}
    degraded = list(scenario.source.data["fabric"].get("degraded", []))
    ports = list(scenario.source.data.get("queue", {}).get("links", []))
    for parameter, numbers in zip(parameters, raw, strict=True):
        if isinstance(parameter, Shares):
            changes["routing"] = {"kind": "split", "weights": SPLIT}
            if isinstance(model.queue, GranularQueue):
                rounds = float(model.queue.turn)
                changes["queue.granular"] = True if rounds >= ENDLESS else round(rounds)
            weight = np.asarray(model.split.weight, float)
            publish(folder / SPLIT, split_table(base.net.fabric, Routes(base.net.routes.path, weight)), force=True)
            continue
        assert isinstance(parameter, Levels)
        values = np.asarray(parameter.values(numbers), float)
        section, _, name = parameter.name.partition(".")
        if base.scenario.queue.classes and section == "queue":
            changes |= _classes(base, group_of(parameter), model)
        elif parameter.name == "queue.buffer":
            degraded += by_link(
                base.net.fabric, group_of(parameter), np.asarray(model.queue.buffer, float), "buffer", "B"
            )
        elif section == "queue" and (parameter.groups > 1 or base.scenario.queue.links):
            level = np.asarray(getattr(model.queue, name), float)
            unit = _unit(base.scenario, parameter.name)
            ports += by_link(base.net.fabric, group_of(parameter), level, name, unit)
        elif parameter.name == "links.capacity":
            speed = base.net.fabric.speed
            rate = np.asarray(model.links.capacity, float) / np.where(speed > 0, speed, 1.0)
            degraded += by_link(base.net.fabric, group_of(parameter), rate, "rate", "B/s")
        elif parameter.name == "traffic.start":
            changes |= _starts(base, group_of(parameter), values)
        else:
            changes[parameter.name] = _written(base.scenario, parameter.name, values[0])
    if len(degraded) > len(scenario.source.data["fabric"].get("degraded", [])):
        changes["fabric.degraded"] = degraded
    if len(ports) > len(base.scenario.queue.links):
        changes["queue.links"] = ports
    whole = {key: value for key, value in scenario.source.data.items() if key not in ("tune", "sweep", "packets")}
    found = _elsewhere(scenario, whole, folder)
    text = validated(override(replace(scenario.source, data=found), changes)).resolved()
    publish(folder / TUNED, text.encode(), force=True)
    return folder / TUNED


def split_table(fabric: Fabric, routes: Routes) -> bytes:
    """CSV flow_id,link,pkts: the share of each flow on each link, as `routing: {kind: split}` reads it. In a Clos that
    says all of a split; where paths part and meet again it says the loads."""
    names = link_names(fabric)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("flow_id", "link", "pkts"))
    for flow, (path, weight) in enumerate(zip(routes.path, routes.weight, strict=True), start=1):
        used = path >= 0
        share = np.bincount(path[used], np.broadcast_to(weight[:, None], path.shape)[used])
        table.writerows((flow, names[link], f"{share[link]:.9g}") for link in np.flatnonzero(share))
    return text.getvalue().encode()


def by_link(fabric: Fabric, group: Int, value: Float, key: str, unit: str) -> list[dict[str, Any]]:
    """Entries of `fabric.degraded` or `queue.links` that give each link of a group its value, by pattern where names
    allow."""
    names = link_names(fabric)
    entries = []
    for number in range(int(group.max()) + 1):
        links = np.flatnonzero(group == number)
        common = float(np.median(value[links]))
        for kind in sorted({pattern(names[link]) for link in links}):
            mine = np.array([link for link in links if pattern(names[link]) == kind])
            whole = np.array_equal(find_links(fabric, kind), mine)
            if whole:
                entries.append({"link": kind, key: _quantity(common, unit)})
            entries += [
                {"link": names[link], key: _quantity(float(value[link]), unit)}
                for link in mine if not whole or abs(value[link] / common - 1) > 1e-6
            ]  # fmt: skip
    return entries


def _classes(base: Member, group: Int, model: Model[Any]) -> dict[str, str]:
    """Queues of classes. A buffer of its own moves thresholds that are not given, so all three are."""
    speed, count = base.net.fabric.speed, len(base.scenario.queue.classes)
    found = {}
    for name in ("buffer", "ecn_low", "ecn_high"):
        if not hasattr(base.scenario.queue, "buffer") and name == "buffer":
            continue
        values = np.asarray(getattr(model.queue, name), float).reshape(count, -1)
        for number, (row, own) in enumerate(zip(values, group.reshape(count, -1), strict=True)):
            ports = np.flatnonzero((own >= 0) & (row < 1e-3 * NEVER))  # those that mark
            found[f"queue.classes.{number}.{name}"] = _quantity(float(np.median(row[ports] / speed[ports])), "B")
    return found


def _starts(base: Member, group: Int, values: Float) -> dict[str, str]:
    """Starts of traffic entries, or of listed flows."""
    tuned = sorted(set(group.tolist()) - {-1})
    return {f"{start_place(base, number)}.start": f"{values[number]:.9g} s" for number in tuned}


def _written(scenario: Scenario, path: str, value: float) -> Any:
    """A value as its key has it."""
    return _quantity(value, _unit(scenario, path))


def _quantity(value: float, unit: str) -> Any:
    return f"{value:.9g} {unit}" if unit else float(f"{value:.9g}")


def _unit(scenario: Scenario, path: str) -> str:
    """The unit that a key of a section is written in; "" for a plain number."""
    section, _, name = path.partition(".")
    kind = next(key.kind for key in keys_of(type(getattr(scenario, section))) if key.name == name)
    return "B" if kind.startswith(("an amount", "a size")) else "s" if kind.startswith("a time") else ""


def _elsewhere(scenario: Scenario, data: Any, folder: Path, key: str = "") -> Any:
    """The same values for a scenario in another folder: files that it names are found from there."""
    if isinstance(data, Mapping):
        return {inner: _elsewhere(scenario, value, folder, str(inner)) for inner, value in data.items()}
    if isinstance(data, list):
        return [_elsewhere(scenario, value, folder, key) for value in data]
    if isinstance(data, str) and key in FILES and scenario.file(data).is_file():
        return os.path.relpath(scenario.file(data), folder)
    return data
