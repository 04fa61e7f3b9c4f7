"""The first page keeps its word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = TEXT) -> list[str]:
    """Code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("title", "command"), [("Run it", "./dev run"), ("Test it", "./dev test")])
def test_the_two_commands_stand_alone(title: str, command: str) -> None:
    section = TEXT.split(f"\n## {title}\n")[1]
    assert blocks("sh", section)[0].strip() == command


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    monkeypatch.chdir(ROOT)
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert re.fullmatch(r"last: \d+\.\d us; 1 % more on \S+->\S+ saves \d\.\d\d us\n", printed)


def test_the_scenario_is_a_scenario() -> None:
    from ruamel.yaml import YAML

    import fabsim

    (text,) = blocks("yaml")
    scenario = fabsim.load(YAML(typ="safe", pure=True).load(text))
    assert scenario.network().flows.count == 128


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target
