"""Scenarios: what loads, what is refused and how, overrides, cases, and what is compiled from them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

import fabsim
from fabsim.errors import InputError, InputWarning
from fabsim.options import load_scenario
from fabsim.scenario.text.written import yaml_text
from fabsim.sweeps.design import design

CONFIGS = Path(__file__).parents[1] / "configs"
GOOD = """\
name: small
seed: 1
fabric:
  kind: leaf_spine
  leaves: 2
  spines: 2
  hosts_per_leaf: 4
  rate: 400 Gbps
  latency: 1 us
routing: {kind: ecmp}
traffic:
  - {kind: permutation, size: 64 KiB}
queue: {kind: trim}
transport: {kind: window, window: 1.5 BDP}
"""
FLOWS = "  - {kind: permutation, size: 64 KiB}"
QUEUE = "queue: {kind: trim}"
WINDOW = "window: 1.5 BDP"


def write(folder: Path, text: str) -> Path:
    file = folder / "s.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def refusal(file: Path, **overrides: Any) -> list[str]:
    """Lines of the refusal, without the folder."""
    with pytest.raises(InputError) as error:
        fabsim.load(file, **overrides).network()
    assert all("\n" not in line for line in error.value.sentences)
    return [line.replace(f"{file.parent}/", "") for line in error.value.sentences]


BAD = {
    # name: (text to replace, replacement, line:column, key, what the sentence must say)
    "typo in a top key": ("seed: 1", "sede: 1", "2:1", "sede", "did you mean 'seed'"),
    "typo in a key": ("  latency: 1 us", "  latency: 1 us\n  switch_latnecy: 1 us", "10:3", "fabric.switch_latnecy",
                      "did you mean 'switch_latency'"),
    "a switch's word": ("seed: 1", "queue: {kind: trim, ecn_kmin: 80 kB}", "2:21", "queue.ecn_kmin", "mean 'ecn_low'"),
    "another tool's word": ("  rate: 400 Gbps", "  rate: 400 Gbps\n  bandwidth: 3", "9:3", "fabric.bandwidth",
                            "given 3; did you mean 'rate'"),
    "no near key": ("seed: 1", "zzz: 1", "2:1", "zzz", "the keys here are name, seed"),
    "missing key": ("  leaves: 2\n", "", "3:1", "fabric.leaves", "missing; add it like 'leaves: 8'"),
    "missing section": ("traffic:\n" + FLOWS, "", "1:1", "traffic", "missing; add it like"),
    "bare number": ("rate: 400 Gbps", "rate: 400", "8:3", "fabric.rate", "400 has no unit; write it like '400 Gbps'"),
    "wrong dimension": ("rate: 400 Gbps", "rate: 400 ms", "8:3", "fabric.rate", "'400 ms' is a time"),
    "unknown unit": ("rate: 400 Gbps", "rate: 400 Gbp", "8:3", "fabric.rate", "unknown unit 'Gbp'"),
    "zero rate": ("rate: 400 Gbps", "rate: 0 Gbps", "8:3", "fabric.rate", "must be more than 0"),
    "negative time": ("latency: 1 us", "latency: -1 us", "9:3", "fabric.latency", "must not be negative: '-1 us'"),
    "slip of a unit": ("latency: 1 us", "latency: 3 s", "9:3", "fabric.latency", "more than 1 s: '3 s'; write it"),
    "not a number": ("latency: 1 us", "latency: .nan", "9:3", "fabric.latency", "nan has no unit"),
    "infinite": ("latency: 1 us", "latency: inf us", "9:3", "fabric.latency", "not a finite number"),
    "decimal comma": ("latency: 1 us", "latency: '1,5 us'", "9:3", "fabric.latency", "'1,5 us' cannot be read"),
    "fraction of a leaf": ("leaves: 2", "leaves: 2.5", "5:3", "fabric.leaves", "not a whole number, given 2.5"),
    "quoted count": ("leaves: 2", "leaves: '2'", "5:3", "fabric.leaves", "not a whole number, given '2'"),
    "true as a count": ("leaves: 2", "leaves: true", "5:3", "fabric.leaves", "not a whole number, given true"),
    "zero leaves": ("leaves: 2", "leaves: 0", "5:3", "fabric.leaves", "must be at least 1, given 0"),
    "empty value": ("leaves: 2", "leaves:", "5:3", "fabric.leaves", "given nothing; write it like 8"),
    "unknown kind": ("kind: ecmp", "kind: ecpm", "10:1", "routing", "no kind 'ecpm'; did you mean 'ecmp'"),
    "missing kind": ("{kind: ecmp}", "{polarised: true}", "10:1", "routing", "use kind: ecmp, all, wcmp, drawn"),
    "key of another kind": ("{kind: ecmp}", "{kind: ecmp, entropies: 3}", "10:23", "routing.entropies", "unknown key"),
    "word for a switch": ("{kind: ecmp}", "{kind: ecmp, polarised: on}", "10:23", "routing.polarised",
                          "not true or false, given 'on'; write it like false"),
    "wrong choice": ("seed: 1", "precision: float16", "2:1", "precision", "use 'float32' or 'float64'"),
    "negative seed": ("seed: 1", "seed: -1", "2:1", "seed", "must be at least 0, given -1"),
    "bad until": ("seed: 1", "until: never", "2:1", "until", "or 'done'"),
    "bad dt": ("seed: 1", "dt: 1", "2:1", "dt", "1 has no unit; write it like '10 us' or '2 ms', or 'auto'"),
    "no packet": ("seed: 1", "packet:", "2:1", "packet", "not a section with keys, given nothing"),
    "header above mtu": ("seed: 1", "packet: {mtu: 64 B}", "2:1", "packet.header", "no room beside a header of 64 B"),
    "window in the wrong unit": (WINDOW, "window: 1.5 MTU", "14:27", "transport.window", "unknown unit 'MTU'"),
    "window of zero": (WINDOW, "window: 0 BDP", "14:27", "transport.window", "never sends"),
    "buffer of zero": (QUEUE, "queue: {kind: trim, buffer: 0 B}", "13:21", "queue.buffer", "passes nothing"),
    "thresholds crossed": (QUEUE, "queue: {kind: trim, ecn_low: 2 BDP, ecn_high: 1 BDP}", "13:21", "queue.ecn_low",
                           "above ecn_high (1 BDP), given 2 BDP"),
    "thresholds crossed once derived": (QUEUE, "queue: {kind: trim, ecn_low: 9 MB}", "13:21", "queue.ecn_low",
                                        "above ecn_high"),
    "more uplinks than ports": ("  leaves: 2", "  leaves: 2\n  ports: 5", "6:3", "fabric.ports",
                                "a leaf needs 6 ports (4 hosts + 2 uplinks), given 5; give at least 6"),
    "degraded nothing": ("  leaves: 2", "  leaves: 2\n  degraded: [{link: spine9, speed: 0.5}]", "6:3",
                         "fabric.degraded", 'named "spine9"'),
    "degraded without a change": ("  leaves: 2", "  leaves: 2\n  degraded: [{link: spine0}]", "6:14",
                                  "fabric.degraded.0", "nothing changes"),
    "speed above one": ("  leaves: 2", "  leaves: 2\n  degraded: [{link: spine0, speed: 2}]", "6:29",
                        "fabric.degraded.0.speed", "must be at most 1, given 2"),
    "no route": ("  leaves: 2", "  leaves: 2\n  degraded: [{link: 'leaf0->spine*', speed: 0}]", "11:1", "routing",
                 "host"),
    "traffic without a list": (FLOWS, "  kind: permutation", "11:1", "traffic", "not a list"),
    "empty traffic": ("traffic:\n" + FLOWS, "traffic: []", "11:1", "traffic", "must not be empty"),
    "flow to itself": (FLOWS, "  - {kind: flows, list: [{src: 1, dst: 1, size: 1 MB}]}", "12:26", "traffic.0.list.0",
                       "host 1 would send to itself"),
    "host not there": (FLOWS, "  - {kind: flows, list: [{src: 1, dst: 8, size: 1 MB}]}", "12:35",
                       "traffic.0.list.0.dst", "there is no host 8; hosts are 0 to 7"),
    "waits for itself": (FLOWS, "  - {kind: flows, list: [{src: 1, dst: 2, size: 1 MB, after: 0}]}", "12:55",
                         "traffic.0.list.0.after", "waits for itself"),
    "waits for nobody": (FLOWS, "  - {kind: flows, list: [{src: 1, dst: 2, size: 1 MB, after: 4}]}", "12:55",
                         "traffic.0.list.0.after", "flow 4, which is not there"),
    "wait in a circle": (FLOWS, "  - {kind: flows, list: [{src: 1, dst: 2, size: 1 B, after: 1}, "
                         "{src: 1, dst: 2, size: 1 B, after: 0}]}", "12:54", "traffic.0.list.0.after", "for ever"),
    "flows from nowhere": (FLOWS, "  - {kind: flows, file: no.csv}", "12:19", "traffic.0.file", "there is no file"),
    "odd ratio": ("leaf_spine\n  leaves: 2\n  spines: 2\n  hosts_per_leaf: 4", "fat_tree\n  k: 4\n"
                                   "  oversubscription: {leaf: 3}", "6:22", "oversubscription.leaf", "divides 2"),
    "neither file nor list": (FLOWS, "  - {kind: flows}", "12:5", "traffic.0", "give either a file or a list"),
    "too many senders": (FLOWS, "  - {kind: incast, size: 1 MB, senders: 8}", "12:32", "traffic.0.senders",
                         "given 8; give at most 7"),
    "receiver sends": (FLOWS, "  - {kind: incast, size: 1 MB, senders: [0, 1]}", "12:32", "traffic.0.senders",
                       "host 0 would send to itself"),
    "odd senders": (FLOWS, "  - {kind: incast, size: 1 MB, senders: all}", "12:32", "traffic.0.senders",
                    "neither a number of hosts nor a list of hosts"),
    "shift to itself": (FLOWS, "  - {kind: shift, size: 1 MB, by: 8}", "12:31", "traffic.0.by", "to itself"),
    "ranks and groups": (FLOWS, "  - {kind: ring, size: 1 MB, ranks: 4, groups: [[0, 1]]}", "12:30",
                         "traffic.0.ranks", "groups say this already, given 4"),
    "no groups": (FLOWS, "  - {kind: ring, size: 1 MB, groups: []}", "12:30", "traffic.0.groups", "must not be empty"),
    "ring too large": (FLOWS, "  - {kind: ring, size: 1 MB, ranks: 9}", "12:30", "traffic.0.ranks",
                       "2 to 8 ranks, given 9"),
    "ring with a host twice": (FLOWS, "  - {kind: ring, size: 1 MB, groups: [[0, 1, 0]]}", "12:39",
                               "traffic.0.groups.0", "different hosts, given [0, 1, 0]"),
    "start without a unit": (FLOWS, "  - {kind: htsim, file: a.cm}", "12:5", "traffic.0.start_unit", "missing"),
    "packets of no case": ("seed: 1", "packets: {other: a.csv}", "2:11", "packets.other", "there is no case 'other'"),
    "bad case": ("seed: 1", "cases: {a: {routing.knd: all}}", "2:13", "routing.knd", "did you mean 'kind'"),
    "case that is no section": ("seed: 1", "cases: {a: 3}", "2:9", "cases.a",
                                "not a section with keys, given 3; write it like {ECMP: {routing.kind: ecmp}}"),
    "bad sweep key": ("seed: 1", "sweep: {grid: {queue.bufer: [1 kB]}}", "2:30", "queue.bufer", "mean 'buffer'"),
    "bad sweep value": ("seed: 1", "sweep: {grid: {queue.buffer: [1 kB, 1 us]}}", "2:37", "queue.buffer", "is a time"),
    "grid in sections": ("seed: 1", "sweep: {grid: {queue: {buffer: [1 kB, 2 kB]}}}", "2:16", "sweep.grid.queue",
                         "are dotted, given {'buffer': ['1 kB', '2 kB']}; write grid: {queue.buffer: [1 kB, 2 kB]}"),
    "empty sweep": ("seed: 1", "sweep: {grid: {}}", "2:9", "sweep.grid", "must not be empty"),
    "too many points": ("seed: 1", "sweep: {grid: {queue.buffer: [1 kB, 2 kB]}, seeds: 6000000}", "2:1", "sweep",
                        "12,000,000 points are too many, given [2, 1, 6000000] along its axes; give at most"),
    "range that is a number": ("seed: 1", "sweep: {sample: {count: 2, ranges: {queue.buffer: 3}}}", "2:37",
                               "sweep.sample.ranges.queue.buffer", "write it like {queue.buffer: {low: 100 kB"),
    "low that is a list": ("seed: 1", "sweep: {sample: {count: 2, ranges: {queue.buffer: {low: [1], high: 2}}}}",
                           "2:52", "low", "neither a whole number nor a number nor text, given [1]; write it like 100"),
    "none of two types": (QUEUE, "queue: {kind: trim, granular: {a: 1}}", "13:21", "queue.granular: neither true",
                          "true or false nor a whole number nor 'auto', given {'a': 1}; write it like true"),
    "more than memory": ("  leaves: 2", "  leaves: 1000000000000", "3:1", "fabric", "6e+12 cables need about 1200 TB"),
    "longer than any": ("latency: 1 us", "latency: 1e30 s", "9:3", "fabric.latency", "more than 1 s: '1e30 s'"),
    "no memory": (QUEUE, "queue: {kind: shared, memory: 0 B}", "13:23", "queue.memory", "a switch without memory"),
    "entropies of 16 bits": ("{kind: ecmp}", "{kind: drawn, entropies: 70000}", "10:24", "routing.entropies",
                             "must be at most 65536, given 70000"),
    "flows in a folder": (FLOWS, "  - {kind: flows, file: .}", "12:19", "traffic.0.file", "is a folder; name a file"),
    "fraction of a step": ("seed: 1", "tune: {steps: 1.5}", "2:8", "tune.steps", "not a whole number, given 1.5"),
    "duplicate key": ("seed: 1", "name: two", "2:1", "name", "duplicate key; first given at 1:1"),
    "tag": ("seed: 1", "seed: !!python/name:os.system x", "2:7", "seed", "not supported"),
    "key that is a list": ("seed: 1", "? [1]\n: 2", "2:3", "", "a key must be a word"),
    "endless alias": ("seed: 1", "packet: &a {mtu: *a}", "2:9", "packet.mtu", "no end"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_each_refusal_is_one_line_with_place_key_value_and_remedy(case: str, tmp_path: Path) -> None:
    old, new, place, key, says = BAD[case]
    assert old in GOOD
    lines = refusal(write(tmp_path, GOOD.replace(old, new)))
    mine = [line for line in lines if line.startswith(f"s.yaml:{place}: ")]
    assert mine, lines
    assert key in mine[0]
    assert says in mine[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "s.yaml:1:1: the file is empty"),
        ("# nothing\n", "s.yaml:1:1: the file is empty"),
        ("- 1\n", "s.yaml:1:1: a scenario is a mapping"),
        ("a: [1\n", "s.yaml:2:1: not valid YAML"),
        ("a:\n\t- b\n", "s.yaml:2:1: not valid YAML"),
        ("a: 1\n---\nb: 2\n", "s.yaml:2:1: not valid YAML"),
        ("a: *b\n", "s.yaml:1:4: not valid YAML"),
    ],
)
def test_what_is_no_scenario_at_all(text: str, says: str, tmp_path: Path) -> None:
    assert refusal(write(tmp_path, text))[0].startswith(says)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert refusal(tmp_path / "t.yaml") == [f"t.yaml: there is no such file; {tmp_path} has s.yaml"]
    assert "is a folder" in refusal(tmp_path)[0]
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in refusal(tmp_path / "b.yaml")[0]


def test_what_python_gives_in_place_of_a_scenario() -> None:
    others: list[Any] = [[1], None, 3, b"s.yaml"]
    for wrong in others:
        with pytest.raises(InputError, match=r"^load: .* given; the path of a YAML file, or a dict of its keys"):
            fabsim.load(wrong)
    verbs: list[Any] = [fabsim.run, fabsim.sweep, fabsim.tune]
    for verb in verbs:
        for wrong in ("s.yaml", {"fabric": {}}, None):
            with pytest.raises(InputError, match=rf"^{verb.__name__}: .* load it first: fabsim.{verb.__name__}\("):
                verb(wrong)


def test_what_python_gives_in_place_of_overrides(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    others: list[Any] = [[1], "seed=1", {1: 2}, 0]
    for wrong in others:
        for take in (fabsim.load(file).change, lambda wrong: fabsim.load(file, wrong)):
            with pytest.raises(InputError, match=r"^overrides: .* given; values by dotted key"):
                take(wrong)
    nothing: Any = None
    with pytest.raises(InputError, match=r"^overrides: nothing given"):
        fabsim.load(file).change(nothing)
    assert fabsim.load(file, None).seed == 1


def test_all_errors_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = GOOD.replace("seed: 1", "seed: x\nname: b").replace("leaves: 2", "leaves: x").replace("64 KiB", "64")
    lines = refusal(write(tmp_path, text), transport__window="3", queue__limit=4)
    assert [re.split(r": ", line)[0] for line in lines] == [
        "s.yaml:2:1", "s.yaml:3:1", "s.yaml:6:3", "s.yaml:13:25", "queue.limit", "transport.window",
    ]  # fmt: skip


def test_an_override_through_a_value_or_past_a_list(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    assert refusal(file, dt__x=1)[0].startswith("dt: not a time: {'x': 1} has no unit")
    assert "is a list of 1" in refusal(file, traffic__3__size="1 MB")[0]
    assert "holds 1, not a section" in refusal(file, seed__x=1)[0]


def test_overrides(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    scenario = fabsim.load(file, {"transport.window": "2 BDP"}, traffic__0__size="1 MB", seed=7, dt="500 ns")
    assert scenario.seed == 7
    assert scenario.dt == pytest.approx(500e-9)
    assert scenario.traffic[0].model_dump()["size"] == "1 MB"
    assert scenario.change({"seed": 8}).seed == 8
    assert scenario.change({"seed": 8}).transport == scenario.transport


def test_numbers_and_arrays_of_numpy_are_values(tmp_path: Path) -> None:
    incast = {"kind": "incast", "senders": np.array([1, 2]), "receiver": np.int64(0), "size": "200 kB"}
    alike = {"kind": "incast", "senders": [1, 2], "receiver": 0, "size": "200 kB"}
    file = write(tmp_path, GOOD)
    scenario = fabsim.load(file, {"traffic": (incast,), "seed": np.int64(4)})
    assert scenario.resolved() == fabsim.load(file, {"traffic": [alike], "seed": 4}).resolved()
    given = YAML(typ="safe").load(file)
    assert fabsim.load(given | {"seed": np.int32(4), "traffic": [incast]}).resolved() == scenario.resolved()
    assert scenario.change({"traffic.0.senders": jnp.array([3, 1])}).resolved() == (
        scenario.change({"traffic.0.senders": [3, 1]}).resolved()
    )
    assert scenario.change({"routing.kind": np.str_("all")}).routing.kind == "all"
    assert scenario.change({"queue.ecn_max": np.float32(0.25)}).resolved() == (
        scenario.change({"queue.ecn_max": 0.25}).resolved()
    )
    assert "seed: not a whole number, given 1.5" in refusal(file, seed=np.float32(1.5))[0]
    incast["senders"][0] = 3
    assert scenario.source.data["traffic"][0]["senders"] == [1, 2]


def test_what_is_wrong_with_an_override_begins_with_its_key(tmp_path: Path) -> None:
    """Of the command line it begins with the option, see test_cli."""
    scenario = fabsim.load(write(tmp_path, GOOD))
    for take in (scenario.change, lambda values: fabsim.load(tmp_path / "s.yaml", values)):
        for values, told in (
            ({"seed": "x"}, "seed: not a whole number, given 'x'"),
            ({"seed.x": 1}, "seed.x: 'seed' holds 1, not a section"),
            ({"queue": {"kind": "trim", "buffr": 1}}, "queue.buffr: unknown key"),
            ({"routing.kind": "all", "routing.polarised": True}, "routing.polarised: unknown key"),
            ({"cases": {"a": {"seed": "x"}}}, "cases.a: seed: not a whole number"),
            ({"sweep": {"grid": {"seed": [1, "x"]}}}, "sweep.grid: seed: not a whole number"),
        ):
            with pytest.raises(InputError) as refused:
                take(values)
            assert [line for line in refused.value.sentences if line.startswith(told)], refused.value.sentences
    cases = write(tmp_path, GOOD + "cases: {a: {seed: 2}}\n")
    with pytest.warns(InputWarning, match=r"^seed: case 'a' has a value of its own"):
        fabsim.load(cases, seed=3)


def test_another_kind_leaves_the_keys_of_the_old_one_behind(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD.replace("{kind: ecmp}", "{kind: ecmp, polarised: true, seed: 4}"))
    routing = fabsim.load(file, routing__kind="drawn", routing__entropies=16).routing
    assert routing.model_dump() == {"kind": "drawn", "entropies": 16, "seed": 4}
    assert "unknown key" in refusal(file, routing__kind="all", routing__polarised=True)[0]


def test_cases_are_scenarios_of_their_own(tmp_path: Path) -> None:
    text = GOOD + "cases:\n  one: {routing.kind: ecmp}\n  two: {routing.kind: drawn, transport.window: 1 BDP}\n"
    variants = fabsim.load(write(tmp_path, text)).variants
    assert list(variants) == ["one", "two"]
    assert [variant.name for variant in variants.values()] == ["one", "two"]
    assert [variant.routing.kind for variant in variants.values()] == ["ecmp", "drawn"]
    assert not variants["one"].cases


def test_a_scenario_from_a_dict() -> None:
    data = YAML(typ="safe", pure=True).load(GOOD)
    assert fabsim.load(data).fabric.kind == "leaf_spine"
    with pytest.raises(InputError, match=r"^<dict>: fabric.leaves: not a whole number, given 'x'"):
        fabsim.load({**data, "fabric": {**data["fabric"], "leaves": "x"}})


def test_a_loaded_scenario_does_not_change(tmp_path: Path) -> None:
    scenario = fabsim.load(write(tmp_path, GOOD))
    with pytest.raises(ValueError, match="frozen"):
        scenario.seed = 3  # type: ignore[misc]


ALL_CONFIGS = sorted(file for file in CONFIGS.rglob("*.yaml") if file.stem != "prices")


@pytest.mark.parametrize("file", ALL_CONFIGS, ids=lambda file: file.stem)
def test_the_resolved_text_loads_to_the_same_scenario(file: Path) -> None:
    scenario = fabsim.load(file)
    again = fabsim.load(YAML(typ="safe", pure=True).load(scenario.resolved()))
    assert again.model_dump() == scenario.model_dump()


@pytest.mark.parametrize("given", [{}, {"transport": {"kind": "dctcp"}}])
def test_the_resolved_text_of_a_sweep_over_kinds_loads_too(given: dict[str, Any]) -> None:
    """dctcp's `largest` is a size, and nscc's a number."""
    sweep = {"grid": {"transport.kind": ["dctcp", "nscc"], "fabric.kind": ["leaf_spine"]}, "seeds": 2}
    scenario = fabsim.load({**YAML(typ="safe", pure=True).load(GOOD), **given, "sweep": sweep})
    again = fabsim.load(YAML(typ="safe", pure=True).load(scenario.resolved()))
    assert again.model_dump() == scenario.model_dump()
    points = [design(one).scenario(one.single(), 2).resolved() for one in (scenario, again)]
    assert points[0] == points[1]


LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
WORDS = st.sampled_from(
    ["1 us", "no", "Null", "1e5", "0x10", "2001-01-01", "- a", "a: b", "a #b", "leaf*->spine0", " ", "~"]
)
DATA = st.recursive(LEAF | WORDS, lambda x: st.lists(x) | st.dictionaries(st.text() | WORDS, x), max_leaves=12)


@given(st.dictionaries(st.text(min_size=1) | WORDS, DATA))
def test_any_data_is_written_as_yaml_that_reads_back(data: dict[str, Any]) -> None:
    text = yaml_text(data)
    assert (YAML(typ="safe", pure=True).load(text) or {}) == data


@pytest.mark.parametrize("changes", [
    {"transport.window": "2 BDP"}, {"queue.buffer": "100 kB", "queue.ecn_low": "10 kB"}, {"seed": 4, "dt": "500 ns"},
    {"queue": {"kind": "pfc"}}, {"queue.kind": "tail_drop", "recovery.kind": "go_back_n"}, {"fabric.spines": 4},
    {"transport.kind": "dctcp"}, {"traffic.0.size": "1 MB"}, {"balancer.kind": "reps", "routing.kind": "all"},
    {"faults": [{"link": "leaf0<->spine1", "at": "20 us", "speed": 0}]},
    {"fabric.degraded": [{"link": "spine0", "speed": 0.5}]},
])  # fmt: skip
def test_a_change_is_what_a_whole_scenario_would_be(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Only the sections that change are read again; the rest stays the very same."""
    scenario = fabsim.load(write(tmp_path, GOOD))
    changed = scenario.change(changes)
    whole = fabsim.load(tmp_path / "s.yaml", changes)
    assert changed == whole
    assert changed.source == whole.source
    assert changed.model_fields_set == whole.model_fields_set
    assert changed.variants["small"].resolved() == whole.variants["small"].resolved() == changed.resolved()
    if not any(key.startswith(("fabric", "transport.kind")) for key in changes):  # the former law had a window
        assert changed.fabric is scenario.fabric


@pytest.mark.parametrize("changes", [
    {"transport.window": "2"}, {"queue.ecn_low": "2 MB", "queue.ecn_high": "1 MB"}, {"transport.kind": "no"},
    {"nothing": 1}, {"transport": 3}, {"traffic.4.size": "1 MB"}, {"traffic": []}, {"packet.header": "9 kB"},
    {"fabric.hosts_per_leaf": 0, "queue.buffer": "-1 B"}, {"sweep": {"grid": {"queue.buffer": ["1 us"]}}},
    {"cases": {"a": {"seed": -1}}},
])  # fmt: skip
def test_a_change_is_refused_as_a_whole_scenario_would_be(tmp_path: Path, changes: dict[str, Any]) -> None:
    scenario = fabsim.load(write(tmp_path, GOOD))
    with pytest.raises(InputError) as whole:
        fabsim.load(tmp_path / "s.yaml", changes)
    with pytest.raises(InputError) as found:
        scenario.change(changes)
    assert found.value.sentences == whole.value.sentences


@pytest.mark.parametrize("file", ALL_CONFIGS, ids=lambda file: file.stem)
def test_every_config_builds_its_network(file: Path) -> None:
    for variant in fabsim.load(file).variants.values():
        net = variant.network()
        assert net.flows.count > 0
        np.testing.assert_allclose(net.routes.weight.sum(axis=1), 1.0)


def test_a_ring_is_of_all_hosts_where_nothing_is_said(tmp_path: Path) -> None:
    net = fabsim.load(write(tmp_path, GOOD.replace(FLOWS, "  - {kind: ring, size: 1 MB}"))).network()
    assert sorted(net.flows.src.tolist()) == list(range(8))
    assert ((net.flows.src + 1) % 8 == net.flows.dst).all()


def test_the_same_seed_gives_the_same_network(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    first, again, other = (fabsim.load(file, seed=seed).network() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.flows.dst, again.flows.dst)
    np.testing.assert_array_equal(first.routes.path, again.routes.path)
    assert (first.flows.dst != other.flows.dst).any()


def test_defaults_are_those_of_the_packet_simulator() -> None:
    """Base RTT, product, buffer and thresholds as uet-htsim prints them for the same fabric."""
    net = fabsim.load(CONFIGS / "first_flight.yaml").network()
    assert net.baseline.rtt == pytest.approx(8.33712e-6)
    assert net.baseline.bdp == pytest.approx(416_856)
    assert set(net.queues.buffer) == {419_150}
    assert set(net.queues.ecn_low) == {87_150}
    assert set(net.queues.ecn_high) == {336_150}


def test_problem_and_model(tmp_path: Path) -> None:
    scenario = fabsim.load(write(tmp_path, GOOD))
    problem, model = scenario.compile()
    assert problem.flows == 8
    assert float(model.transport.window) == pytest.approx(1.5 * scenario.network().baseline.bdp, rel=1e-6)
    assert model.queue.buffer.dtype == model.links.capacity.dtype == np.float32


def test_run_gives_a_result(tmp_path: Path) -> None:
    result = fabsim.run(fabsim.load(write(tmp_path, GOOD)), progress=False)
    assert np.isfinite(result.completion).all()
    assert (result.completion >= result.zero_load * (1 - 1e-3)).all()
    assert "kind: leaf_spine" in result.scenario


def test_a_grid_on_the_command_line_is_written_as_the_refusal_says(tmp_path: Path) -> None:
    """`--set` splits at dots, so that a key below the grid becomes a section; lists of sections by label are none."""
    file = str(write(tmp_path, GOOD))
    with pytest.raises(InputError, match=r"^--set sweep\.grid\.queue\.buffer: sweep\.grid\.queue: ") as refused:
        load_scenario(file, ["sweep.grid.queue.buffer=[100 kB, 200 kB]"], None, None)
    (advice,) = re.findall(r"--set '(.*)'", str(refused.value))
    found = load_scenario(file, [advice], None, None).sweep
    assert found is not None
    assert found.grid == {"queue.buffer": ("100 kB", "200 kB")}
    one = [{"kind": "permutation", "size": "1 MB"}]
    labelled = fabsim.load(file, {"sweep": {"grid": {"traffic": {"one": one, "two": one * 2}}}})
    assert labelled.sweep is not None
