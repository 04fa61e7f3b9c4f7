"""Values of cases and sweeps, tried on the scenario before any of them is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from fabsim.errors import InputError
from fabsim.scenario.text.source import Source, joined
from fabsim.units import shown

if TYPE_CHECKING:
    from fabsim.scenario.scenario import Scenario

Values = dict[str, tuple[Any, str]]
"""What keys become, and where each value stands."""
Axis = list[Values]
"""One dimension of a sweep: the values at each place along it."""
PEERS = 8
"""Places along the other axes that are tried with a value that cannot stand alone; besides, its own and the last."""


def case(source: Source, name: str) -> Values:
    """The overrides of a case."""
    values = source.data["cases"][name]
    own = {key: (value, joined(source.place(("cases", name, key)), f"cases.{name}")) for key, value in values.items()}
    return {"name": (name, source.place(("cases", name))), **own}


def changed(scenario: Scenario, values: Values) -> Scenario:
    """The scenario with some values. Raises InputError, with their places."""
    given = {key: value for key, (value, _) in values.items()}
    return scenario.change(given, {key: place for key, (_, place) in values.items()})


def said_by_cases(scenario: Scenario, places: Mapping[str, str]) -> list[str]:
    """A sentence for each overridden key and each case that sets it too. places: of the keys, "--set seed"."""
    return [
        f"{place}: case {name!r} has a value of its own, which holds there"
        for key, place in places.items()
        for name, values in scenario.cases.items()
        if any(_meet(key, own) for own in values)
    ]


def _meet(one: str, other: str) -> bool:
    """Whether two dotted keys are one, or one leads to the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def case_faults(scenario: Scenario) -> list[str]:
    """What is wrong with the cases."""
    source = scenario.source
    single = scenario.single() if scenario.cases else scenario
    return [line for name in scenario.cases for line in _faults(single, case(source, name))]


def sweep_faults(scenario: Scenario) -> list[str]:
    """What is wrong with the values of a sweep."""
    if scenario.sweep is None:
        return []
    if below := list(_keys_below(scenario.source)):
        return below
    single, choices, bounds = scenario.single(), _choices(scenario.source), _bounds(scenario.source)
    axes = [*choices, *bounds]
    lines: list[str] = []
    for number, axis in enumerate(axes):
        places = (_refused(single, axes, number, place) for place in range(len(axis)))
        found = [faults for faults in places if faults]
        told = found if number < len(choices) else found[:1]  # the other bound says the same
        lines += chain.from_iterable(told)
    return lines


def _keys_below(source: Source) -> Iterator[str]:
    """A sentence for each section of a grid or a zip that has lists by key, {queue: {buffer: [1, 2]}}, where a dotted
    key is meant. By label stand whole sections; of a key without a dot these may be lists of entries, never of values.
    """
    for where in ("grid", "zip"):
        for name, values in ((source.data.get("sweep") or {}).get(where) or {}).items():
            lists = {key: own for key, own in values.items() if _is_of_values(own)} if isinstance(values, dict) else {}
            if lists and "." not in name:
                meant = ", ".join(f"{name}.{key}: [{', '.join(map(str, own))}]" for key, own in lists.items())
                text = f"the keys here are dotted, given {shown(values)}; write {where}: {{{meant}}}"
                whole = f"--set 'sweep.{where}={{{meant}}}'"
                yield source.sentence(("sweep", where, name), f"{text}, or {whole}, which splits no key at its dots")


def _is_of_values(given: Any) -> bool:
    return isinstance(given, list) and any(not isinstance(one, dict) for one in given)


def _choices(source: Source) -> list[Axis]:
    """The axes of a grid, and the one of a zip: its values go together."""
    section = source.data.get("sweep") or {}

    def axis(where: str, key: str, values: Any) -> Axis:
        labelled = values.items() if isinstance(values, dict) else enumerate(values)
        place = f"sweep.{where}"
        return [{key: (value, joined(source.place(("sweep", where, key, at)), place))} for at, value in labelled]

    grid = [axis("grid", key, values) for key, values in (section.get("grid") or {}).items()]
    zipped = [axis("zip", key, values) for key, values in (section.get("zip") or {}).items()]
    return [*grid, *([[_merged(peers) for peers in zip(*zipped, strict=True)]] if zipped else [])]


def _bounds(source: Source) -> list[Axis]:
    """Both bounds of each range of a sample."""
    sample = (source.data.get("sweep") or {}).get("sample") or {}
    where = ("sweep", "sample", "ranges")

    def place(key: str, bound: str) -> str:
        return joined(source.place((*where, key, bound)), ".".join(where))

    ranges = (sample.get("ranges") or {}).items()
    return [[{key: (span[bound], place(key, bound))} for bound in ("low", "high")] for key, span in ranges]


def _refused(single: Scenario, axes: list[Axis], number: int, place: int) -> list[str]:
    """What is wrong with the values at a place of an axis: nothing where they can stand alone, or with some values of
    the other axes. Which points cannot be built then is for the plan of the sweep to tell."""
    found = _faults(single, axes[number][place])
    goes = found and any(not _faults(single, values) for values in _together(axes, number, place))
    return [] if goes else found


def _together(axes: list[Axis], number: int, place: int) -> Iterator[Values]:
    """The values at a place of one axis with some of those of all others, in the order of the axes."""
    longest = max((len(axis) for at, axis in enumerate(axes) if at != number), default=0)
    if not longest:
        return
    for peer in dict.fromkeys((place, *range(min(PEERS, longest)), longest - 1)):
        peers = [min(peer, len(axis) - 1) for axis in axes]
        yield _merged(axis[place if at == number else peers[at]] for at, axis in enumerate(axes))


def _merged(parts: Iterable[Values]) -> Values:
    return {key: value for part in parts for key, value in part.items()}


def _faults(scenario: Scenario, values: Values) -> list[str]:
    try:
        changed(scenario, values)
    except InputError as error:
        return error.sentences
    return []
