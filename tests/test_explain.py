"""The language of scenarios explains itself: every key says all there is to say, and editors can check it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import pytest
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from fabsim.cli import main
from fabsim.errors import InputError
from fabsim.scenario.guide.explain import explain
from fabsim.scenario.guide.json_schema import json_schema
from fabsim.scenario.guide.reference import Key, all_keys, find, keys_of
from fabsim.scenario.keys.fields import Section
from fabsim.scenario.keys.schema import Sections

CONFIGS = Path(__file__).parents[1] / "configs"
SCENARIOS = sorted(file for file in CONFIGS.rglob("*.yaml") if "\nfabric:" in file.read_text())
SECTIONS = sorted(
    {section for key in all_keys() for section in key.inside.values()} | {Sections},
    key=lambda section: section.__name__,
)
KINDS = sorted(
    {(key.name, kind, section) for key in all_keys() for kind, section in key.inside.items() if kind},
    key=lambda item: item[:2],
)


def read(text: str) -> Any:
    """YAML as plain data."""
    return YAML(typ="safe", pure=True).load(text)


def lacking(key: Key) -> list[str]:
    """What the declaration of a key does not say."""
    needed = {"means": key.meaning, "type": key.kind, "example": key.example}
    if not key.inside:
        needed["smooth"] = key.smooth or ""
        needed["default, or absent"] = "given" if key.required else key.default or key.absent
    if key.default:
        needed["source (of the default)"] = key.source
    return [name for name, text in needed.items() if not text]


def test_every_key_says_all_there_is_to_say() -> None:
    incomplete = {key.dotted: missing for key in all_keys() if (missing := lacking(key))}
    assert not incomplete, "\n".join(f"{key}: like(...) lacks {', '.join(what)}" for key, what in incomplete.items())


def test_quantities_have_units_and_bounds() -> None:
    for key in all_keys():
        if key.kind.startswith(("a rate", "a time", "a latency", "a size", "an amount")):
            assert key.unit, key.dotted
            assert key.bounds, key.dotted


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_defaults_and_examples_can_be_read(section: type[Section]) -> None:
    assert section.__doc__
    hints = get_type_hints(section, include_extras=True)
    for key in keys_of(section):
        if "..." in key.example:
            continue
        kind = TypeAdapter(hints[key.name])
        kind.validate_python(read(key.example), context={})
        if key.default:
            default = section.model_fields[key.name].get_default(call_default_factory=True)
            assert kind.validate_python(read(key.default), context={}) == default, key.name


def test_laws_have_sources_and_equations() -> None:
    laws = [(kind, section) for name, kind, section in KINDS if name in ("transport", "queue", "balancer")]
    assert {"window", "ideal", "trim", "reps"} <= {kind for kind, _ in laws}
    for kind, section in laws:
        assert section.origin, kind
        module, name = section.law.split(":")
        assert getattr(import_module(module), name).__doc__, kind


def test_the_tree_has_every_key_and_kind() -> None:
    text = explain()
    for key in all_keys():
        assert f"{key.name} " in text
    for _, kind, _ in KINDS:
        assert f"kind: {kind} " in text
    assert max(map(len, text.splitlines())) <= 120


def test_every_key_is_found_and_explained() -> None:
    for key in all_keys():
        assert key in find(key.dotted)
        assert key in find(key.written)
        assert key.name in explain(key.dotted)


def test_one_key() -> None:
    text = explain("fabric.switch_latency")
    assert text.startswith("fabric.switch_latency (kind: ")
    for line in (
        "type      a latency",
        "unit      seconds, like us or ms; or metres of fibre, like km (4.9 us each)",
        "bounds    not negative",
        "default   0 s",
        "source    ours",
        "example   switch_latency: 500 ns",
        "results   smooth almost everywhere",
    ):
        assert f"  {line}" in text
    assert "at least 1\n" in explain("fabric.leaf_spine.uplinks")
    assert "default   auto: 0.2 of the buffer" in explain("queue.ecn_low")
    assert "more than 0, at most 1" in explain("transport.ideal.share")


def test_a_section_lists_its_kinds_with_their_sources() -> None:
    text = explain("transport")
    for name, kind, section in KINDS:
        if name == "transport":
            assert f"kind: {kind}\n" in text
            assert section.origin[:40] in text


def test_a_law_has_its_equations() -> None:
    assert "pytree" not in explain("transport.ideal")
    assert "max-min fair shares" in explain("transport.ideal")
    assert "selective repeat" in explain("transport.window")


def test_a_section_of_several_places_is_told_once() -> None:
    lines = explain("degraded").splitlines()
    places = [key.dotted for key in find("degraded")]
    assert len(places) > 10
    assert lines[: len(places)] == places
    assert len([line for line in lines if line.split()[0] == "speed"]) == 1
    ports = {tuple(key.inside.values()) for key in find("links") if key.inside}  # of queues, which are not alike
    assert len(ports) > 1
    assert explain("links").count("a list, each a section") == len(ports)


def test_a_kind_that_two_sections_have_is_asked_for() -> None:
    with pytest.raises(InputError, match=r"did you mean balancer\.ideal or transport\.ideal\?"):
        explain("ideal")


@pytest.mark.parametrize(
    ("wrong", "near"), [("buffr", "buffer"), ("transport.windo", "transport.window"), ("fabric.leavs", "fabric.leaves")]
)
def test_an_unknown_key_gives_the_nearest(wrong: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", wrong]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"{wrong}: there is no such key; did you mean {near}")
    assert shown.err.count("\n") == 1
    with pytest.raises(InputError, match="lists them all"):
        explain("zzzzzz")


def test_explain_and_schema_do_not_load_jax() -> None:
    code = "import sys, fabsim.cli as c; c.main(['explain']); c.main(['--schema']); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    """A validator for the schema as it is printed."""
    jsonschema.Draft202012Validator.check_schema(json_schema())
    return jsonschema.Draft202012Validator(json_schema())


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_every_config_fits_the_schema(file: Path, schema: jsonschema.Draft202012Validator) -> None:
    assert not [error.message for error in schema.iter_errors(read(file.read_text()))]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("leaves: 8", "leafs: 8"),
        ("leaves: 8", "leaves: 0"),
        ("leaves: 8", "leaves: eight"),
        ("rate: 400 Gbps", "rate: 400"),
        ("kind: leaf_spine", "kind: leafspine"),
        ("seed: 1", "sed: 1"),
        ("window: 1.5 BDP", "window: 1.5"),
    ],
)
def test_what_the_schema_refuses(old: str, new: str, schema: jsonschema.Draft202012Validator) -> None:
    text = (CONFIGS / "first_flight.yaml").read_text()
    assert old in text
    assert not schema.is_valid(read(text.replace(old, new)))


def test_the_schema_tells_editors_what_explain_tells(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--schema"]) == 0
    printed = read(capsys.readouterr().out)
    assert printed == json_schema()
    uplinks = printed["$defs"]["LeafSpine"]["properties"]["uplinks"]
    assert (uplinks["default"], uplinks["examples"], uplinks["minimum"]) == (1, [1], 1)
    assert uplinks["description"] == "cables from each leaf to each spine"
    assert printed["properties"]["packet"]["$ref"] == "#/$defs/PacketSection"
    assert printed["$defs"]["PacketSection"]["properties"]["header"]["default"] == "64 B"
