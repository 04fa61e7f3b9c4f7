"""Several scenarios at once: compiled one by one, run as one program where their shapes agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tqdm import tqdm

from fabsim.errors import InputError
from fabsim.scenario.compile import Network, assemble
from fabsim.scenario.memory import available, needed
from fabsim.scenario.zero_load import zero_load
from fabsim.typing import Float
from fabsim.units import show_size

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario


def networks(members: Sequence[Scenario], *, progress: bool) -> list[Network]:
    """The network of each. Raises InputError."""
    bar = tqdm(members, unit="scenario", desc="compile", disable=None if progress else True, leave=False)
    return [member.network() for member in bar]


def figures(members: Sequence[Scenario], nets: Sequence[Network], *, progress: bool) -> dict[str, Float]:
    """The figures of each, by name; see fabsim.study.sweep.METRICS.

    Raises:
        InputError: all at once do not fit into memory.
        Stopped: every one failed.
    """
    from fabsim.study.sweep import sweep

    _refuse_too_many(members, nets)
    problems, models = zip(*(assemble(member, net) for member, net in zip(members, nets, strict=True)), strict=True)
    first = members[0]
    return sweep(
        problems,
        models,
        zero_load=[zero_load(member, net) for member, net in zip(members, nets, strict=True)],
        until=None if first.until == "done" else float(first.until),
        every=max(1, round(first.every / float(problems[0].dt))),
        progress=progress,
    )


def _refuse_too_many(members: Sequence[Scenario], nets: Sequence[Network]) -> None:
    width = 8 if members[0].precision == "float64" else 4
    single = members[0].routing.kind in ("ecmp", "explicit")
    need = len(members) * needed(nets[0].fabric, nets[0].flows, single, width)
    have = available()
    if need > have:
        text = f"{len(members)} scenarios at once need about {show_size(need)} of memory, and {show_size(have)} is free"
        raise InputError(f"{text}; fewer seeds or values would do")
