"""Commands about the language of scenarios: `explain`, `new` and `--schema`."""

from __future__ import annotations

import re
from pathlib import Path

import click

SCHEMA = "Print the JSON Schema of a scenario, for editors, and exit."


def print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """The callback of --schema."""
    if not wanted or context.resilient_parsing:
        return
    from fabsim.scenario.guide.json_schema import as_text

    click.echo(as_text())
    context.exit()


@click.command()
@click.argument("key", required=False)
def explain(key: str | None) -> None:
    """Say what may stand in a scenario: all keys, or all about one key, section or kind.

    \b
    Examples:
      fabsim explain                      every key, with its default
      fabsim explain transport            the laws, with their sources
      fabsim explain transport.nscc       one law, with its equations
      fabsim explain queue.buffer         meaning, unit, default, bounds, source, smooth or not
    """
    from fabsim.scenario.guide.explain import explain as text

    click.echo(text(key))


@click.command()
@click.argument("name")
@click.option("--fabric", metavar="KIND", help="Kind of fabric; leaf_spine, if not given (see fabsim explain fabric).")
@click.option("--out", metavar="FILE", help="Where it goes; NAME.yaml in this folder, if not given.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def new(name: str, fabric: str | None, out: str | None, force: bool) -> None:
    """Write a commented scenario that runs as it is.

    \b
    Examples:
      fabsim new 'my first'
      fabsim new tree --fabric fat_tree --out configs/tree.yaml
    """
    from fabsim.scenario.guide.new import commented
    from fabsim.store import publish

    file = Path(out) if out else Path(f"{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_') or 'scenario'}.yaml")
    publish(file, commented(name, fabric).encode(), force)
    click.echo(f"scenario: {file}")
