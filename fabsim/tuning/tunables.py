"""From what `tune: parameters:` says to what the study tunes; what cannot be tuned is refused, with what can.

What a parameter stands for is what the scenario language can say again, so that a tuned scenario is a scenario.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fabsim.errors import InputError
from fabsim.scenario.guide.reference import find
from fabsim.scenario.keys.queue import said_of_links
from fabsim.scenario.keys.tune import Tuned
from fabsim.tuning.levels import as_in, capacity, gain, start_times
from fabsim.tuning.member import OTHERS, Member, Refuse, own
from fabsim.tuning.ports import of_ports, queue
from fabsim.typing import Int

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario
    from fabsim.study.parameters import Parameter, Shares

SPRAYS = ("all", "wcmp", "drawn", "switch_spray", "split")
"""Kinds of routing whose paths are all shortest ones: shares over these are what a tuned scenario can say."""


def parameters(scenario: Scenario, base: Member, members: Sequence[Member]) -> list[tuple[Parameter, ...]]:
    """What is tuned, in each member; bounds, budgets and starts are those of `base`, where nothing fails.

    Raises InputError, a sentence for each fault, with its place.
    """
    assert scenario.tune is not None
    faults: list[str] = []
    rows: list[Sequence[Parameter]] = []
    given = [entry.key for entry in scenario.tune.changes]
    for number, entry in enumerate(scenario.tune.changes):

        def refuse(key: str, text: str, number: int = number) -> InputError:
            return InputError(scenario.source.sentence(("tune", "parameters", number, key), text))

        try:
            if entry.key in given[:number]:
                raise refuse("key", f"{entry.key} is tuned already; name each key once")
            rows.append(_parameter(entry, base, members, given, refuse))
        except InputError as error:
            faults += error.sentences
    if faults:
        raise InputError(faults)
    return list(zip(*rows, strict=True))


def _parameter(
    entry: Tuned, base: Member, members: Sequence[Member], given: Sequence[str], refuse: Refuse
) -> Sequence[Parameter]:
    section, _, name = entry.key.partition(".")
    if entry.cost is not None and entry.key != "links.capacity":
        raise refuse("cost", f"{entry.key} has no price; give total, or tune links.capacity")
    if entry.key == "split.weight":
        return _shares(entry, members, refuse)
    if section == "queue" and name in ("buffer", *said_of_links(base.scenario.queue)):
        return as_in(members, queue(entry, name, base, given, refuse), of_ports(name))
    if entry.key == "links.capacity":
        return as_in(members, capacity(entry, base, refuse), lambda member: member.net.fabric.capacity)
    if entry.key == "traffic.start":
        return [start_times(entry, member, refuse) for member in members]
    if section == "transport":
        return [gain(entry, name, base, refuse)] * len(members)
    raise refuse("key", _why_not(entry.key))


def _why_not(key: str) -> str:
    """Why a key of a scenario is none that can be tuned."""
    try:
        smooth = find(key)[0].smooth
    except InputError:
        return f"there is nothing to tune by the name {key}; tune {OTHERS}"
    if smooth in ("jumps", "choice"):
        instead = {"routing": "split.weight", "fabric": "links.capacity", "queue": "queue.buffer"}
        how = "counts or draws, so that results jump" if smooth == "jumps" else "is a choice"
        return f"{key} {how} and there is no gradient; tune {instead.get(key.split('.')[0], OTHERS)} instead"
    return f"{key} is not tuned by that name; tune {OTHERS}"


def _shares(entry: Tuned, members: Sequence[Member], refuse: Refuse) -> list[Shares]:
    import jax.numpy as jnp

    from fabsim.study.parameters import Shares

    per = own(entry, ("flow", "leaf_pair", "tier"), refuse)
    for name in ("low", "high", "total"):
        if getattr(entry, name) is not None:
            raise refuse(name, "shares of a flow are from 0 to 1 and sum to 1 as it is; leave it out")
    kind = members[0].scenario.routing.kind
    if kind not in SPRAYS:
        raise refuse(
            "key", f"split.weight has no gradient under routing: {{kind: {kind}}}, which picks paths by itself; "
            "routing: {kind: all} leaves shares to tune",
        )  # fmt: skip
    if all(((member.net.routes.weight > 0).sum(1) < 2).all() for member in members):
        raise refuse("key", "every flow has a single path, so that its share is 1; tune links.capacity instead")
    if per == "flow" and any(_ends(member) != _ends(members[0]) for member in members):
        raise refuse("per", "the flows are drawn anew in each member, so that none has a split; use leaf_pair or tier")
    rows = [_rows(per, member) for member in members]
    found, group = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    parts = np.split(group.reshape(-1), np.cumsum([len(row) for row in rows])[:-1])
    return [
        Shares(entry.key, len(found), jnp.asarray(part, jnp.int32), jnp.asarray(member.net.routes.weight > 0))
        for part, member in zip(parts, members, strict=True)
    ]


def _ends(member: Member) -> list[Any]:
    return [member.net.flows.src.tolist(), member.net.flows.dst.tolist()]


def _rows(per: str, member: Member) -> Int:
    """[F, ...] what flows of one split have in common: their number, their edge switches, or their number of links."""
    fabric, path = member.net.fabric, member.net.routes.path
    if per == "flow":
        return np.arange(len(path))[:, None]
    if per == "tier":
        return (path >= 0).sum(2).max(1)[:, None]
    first = np.take_along_axis(path, (path < 0).sum(2)[:, :, None], 2)[:, :, 0]
    return np.concatenate([fabric.dst[first], fabric.src[path[:, :, -1]]], 1)
