"""Commands that read what was written, a run or a sweep, as text: `show`, `diff` and `export`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from fabsim.errors import InputError
from fabsim.options import at_option, case_option, chosen_cases, chosen_part


@click.command()
@click.argument("result", metavar="R.h5|DIR")
@click.option("--links", default=10, show_default=True, type=click.IntRange(min=0), help="Busiest links to list.")
@case_option
@click.option("--pivot", "axes", metavar="ROWS,COLUMNS", help="Of a sweep: one figure over two axes.")
@click.option("--metric", metavar="NAME", help="The figure of --pivot; the first of the table, if not given.")
@at_option
def show(
    result: str, links: int, case: str | None, axes: str | None, metric: str | None, chosen: Sequence[str]
) -> None:
    """Print what a result file or a sweep holds: of a run completions, totals, busiest links; of a sweep its points.

    A sweep may be unfinished: its table has what is there.

    \b
    Examples:
      fabsim show my.h5 --links 20
      fabsim show first.h5 --case ECMP
      fabsim show buffers
      fabsim show buffers --pivot queue.buffer,transport.window --metric completion_p99
      fabsim show buffers --at transport.window='1 BDP'
    """
    from fabsim import datasets, results, tables

    if not datasets.is_sweep(result):
        if axes or metric or chosen:
            raise InputError(f"{result}: is a run; --pivot, --metric and --at are for sweeps")
        click.echo(tables.show(chosen_cases(results.read(result), case, result), busiest=links))
        return
    if case is not None:
        raise InputError(f"--case {case}: {result} is a sweep, which has points; --at KEY=VALUE chooses of them")
    from fabsim.sweeps.pivot import pivot
    from fabsim.sweeps.progress import progress
    from fabsim.sweeps.table import as_text

    data = chosen_part(datasets.open(result), chosen)
    if metric and not axes:
        raise InputError(f"--metric {metric}: goes with --pivot ROWS,COLUMNS")
    click.echo(pivot(data, *_pair(axes), metric) if axes else as_text(data))
    unfinished = progress(result)
    if unfinished:
        click.echo(unfinished)


@click.command()
@click.argument("first", metavar="A.h5")
@click.argument("second", metavar="B.h5")
@click.option("--case", "cases", multiple=True, metavar="NAME", help="The case; given twice, that of A and that of B.")
@click.option("--flows", default=10, show_default=True, type=click.IntRange(min=0), help="Flows to list.")
@click.option("--links", default=10, show_default=True, type=click.IntRange(min=0), help="Links to list.")
def diff(first: str, second: str, cases: Sequence[str], flows: int, links: int) -> None:
    """Print two results side by side: what differs, and by how much.

    \b
    Examples:
      fabsim diff before.h5 after.h5
      fabsim diff first.h5 first.h5 --case ECMP --case spray
    """
    from fabsim import diff as comparison
    from fabsim import results

    if len(cases) > 2:
        raise InputError(f"--case: a case of each file, given {len(cases)}; give one or two")
    found = comparison.pairs(results.read(first), results.read(second), (first, second), cases)
    click.echo("\n\n\n".join(comparison.diff(one, other, flows, links) for one, other in found))


@click.command()
@click.argument("result", metavar="R.h5|DIR")
@click.option(
    "--table", type=click.Choice(["summary", "flows", "collectives", "links", "classes", "series", "seeds"]),
    help="Of a run: what to write as CSV; flows, if not given.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Of a run: everything but the series, as JSON.")
@click.option("--out", metavar="FILE", help="A file; standard output, if not given.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def export(result: str, table: Any, as_json: bool, out: str | None, force: bool) -> None:
    """Write a result file as CSV or JSON, or a sweep as CSV (a row for each point), in SI units.

    \b
    Examples:
      fabsim export my.h5 --table links > links.csv
      fabsim export my.h5 --json --out my.json
      fabsim export buffers --out buffers.csv
    """
    from fabsim import datasets, results, store
    from fabsim import export as exports

    if datasets.is_sweep(result):
        if table or as_json:
            raise InputError(f"{result}: is a sweep, which is written as one CSV table; leave out --table and --json")
        from fabsim.sweeps.rows import as_csv

        text = as_csv(datasets.open(result))
    else:
        found = results.read(result)
        text = exports.as_json(found) if as_json else exports.as_csv(found, table or "flows")
    if out is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    store.publish(out, text.encode(), force)
    click.echo(f"written: {out}")


def _pair(axes: str) -> tuple[str, str]:
    """The two axes of --pivot."""
    names = [name.strip() for name in axes.split(",")]
    if len(names) != 2:
        raise InputError(f"--pivot {axes}: give two axes, like --pivot queue.buffer,transport.window")
    return names[0], names[1]
