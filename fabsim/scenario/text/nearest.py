"""The right word that is nearest to a wrong one: a key, or a kind."""

from __future__ import annotations

import re
from difflib import get_close_matches

from pydantic import BaseModel

from fabsim.scenario.keys.schema import kinds
from fabsim.scenario.text.source import KeyPath

_SYNONYMS = {
    **dict.fromkeys(("bandwidth", "bitrate", "linkspeed"), "rate"),
    **dict.fromkeys(("delay", "propagation"), "latency"),
    **dict.fromkeys(("horizon", "end"), "until"),
    **dict.fromkeys(("workload", "flows"), "traffic"),
    **dict.fromkeys(("topology", "network"), "fabric"),
    **dict.fromkeys(("congestion_control", "cc"), "transport"),
    **dict.fromkeys(("target", "destination", "sink"), "dst"),
    **dict.fromkeys(("ecn_kmin", "kmin", "min_threshold"), "ecn_low"),
    **dict.fromkeys(("ecn_kmax", "kmax", "max_threshold"), "ecn_high"),
    "bytes": "size",
    "timestep": "dt",
    "load_balancing": "routing",
    "cwnd": "window",
    "limit": "buffer",
    "type": "kind",
    "dest": "dst",
    "source": "src",
    "nodes": "hosts",
    "paths": "entropies",
}
"""What others call our keys."""


def nearest(key: str, section: type[BaseModel] | None) -> str:
    """The right key that is nearest to a wrong one, or all of them."""
    names = list(section.model_fields) if section else []
    aliases = {alias: name for alias, name in _SYNONYMS.items() if name in names}
    near = get_close_matches(key, [*names, *aliases], 1, 0.6)
    return f"did you mean {aliases.get(near[0], near[0])!r}?" if near else f"the keys here are {', '.join(names)}"


def known_kinds(path: KeyPath, tag: object = None, expected_tags: str = "", **_: object) -> str:
    """The kinds that may stand there, the nearest first where one is near."""
    names = tuple(re.findall(r"'(.+?)'", expected_tags)) or kinds(str(path[0]))
    near = get_close_matches(str(tag), names, 1, 0.6) if tag is not None else []
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}use kind: {', '.join(names[:-1])} or {names[-1]}"
