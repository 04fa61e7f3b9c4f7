"""Commands that draw what was written, a run or a sweep: `plot` and `report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabsim.errors import InputError
from fabsim.options import (
    at_option,
    case_option,
    chosen_cases,
    chosen_part,
    picture_name,
    picture_place,
    plain_apart,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OF_RUNS = ("overview", "completions", "time", "map")
OF_ONE = ("time", "map")
"""Kinds that draw a single case."""
OF_SWEEPS = ("curves", "heat", "pareto", "share", "time")


@click.command()
@click.argument("result", metavar="R.h5|DIR")
@click.option(
    "--kind",
    type=click.Choice(tuple(dict.fromkeys(OF_RUNS + OF_SWEEPS))),
    help="Of a run: overview (if not given), completions (CDF), time (queues and utilisation), map (all links). Of a "
    "sweep: curves, heat, pareto, share (of points within a value), time (series of links); if not given, what suits "
    "its axes.",
)
@case_option
@click.option("--link", "links", multiple=True, metavar="NAME", help="Links to draw over time.")
@click.option("--metric", metavar="NAME", help="Of a sweep: the figure to draw.")
@click.option("--x", metavar="AXIS", help="Of a sweep: the horizontal axis; for pareto a figure (cost, if kept).")
@click.option("--by", metavar="AXIS", help="Of a sweep: a line for each value; for heat the vertical axis.")
@at_option
@click.option("--out", metavar="P.png", help="Where it goes (.png, .svg, .pdf).")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def plot(result: str, out: str | None, force: bool, chosen: Sequence[str], **given: Any) -> None:
    """Draw a result file or a sweep.

    \b
    Examples:
      fabsim plot my.h5
      fabsim plot my.h5 --kind time --link 'leaf0->spine3' --out queues.svg
      fabsim plot buffers
      fabsim plot buffers --metric completion_p99 --x queue.buffer --by transport.window
      fabsim plot buffers --kind heat --at seed=1
      fabsim plot buffers --kind time --metric series_queue --link 'leaf0->spine3'
    """
    from fabsim import datasets, plots

    sweep = datasets.is_sweep(result)
    _refuse_others(result, sweep, given, chosen)
    if sweep:
        data = chosen_part(datasets.open(result), chosen)
        figure = plots.plot(data, given["kind"], **{name: given[name] for name in ("metric", "x", "by", "links")})
        name = picture_name(result, given["kind"], given["metric"])
    else:
        name, figure = _of_run(result, given["kind"] or "overview", given["case"], given["links"])
    place = picture_place(out, name, force)
    plots.save(figure, place)
    click.echo(f"picture: {place}")


@click.command()
@click.argument("result", metavar="R.h5|DIR")
@click.option("--out", default="report.html", show_default=True, metavar="FILE.html", help="Where it goes.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def report(result: str, out: str, force: bool) -> None:
    """Write a result file or a sweep as one HTML page that needs no network: tables, pictures to zoom into, the
    scenario, versions, and how to run it again.

    \b
    Examples:
      fabsim report my.h5
      fabsim report buffers --out buffers.html
    """
    from fabsim import report as pages
    from fabsim import store

    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{out}: a report ends in .html")
    store.check_target(out, force)
    store.publish(out, pages.page(result).encode(), force)
    click.echo(f"report: {out}")


def _refuse_others(result: str, sweep: bool, given: dict[str, Any], chosen: Sequence[str]) -> None:
    """Raises InputError for an option of sweeps with a run, and the reverse."""
    what, kinds = ("a sweep", OF_SWEEPS) if sweep else ("a run", OF_RUNS)
    if given["kind"] is not None and given["kind"] not in kinds:
        raise InputError(f"--kind {given['kind']}: {result} is {what}, which has {', '.join(kinds)}")
    wrong = ("case",) if sweep else ("metric", "x", "by")
    option = next((name for name in wrong if given[name]), "at" if chosen and not sweep else None)
    if option is not None:
        raise InputError(f"--{option.removesuffix('s')}: {result} is {what}, for which there is no such option")


def _of_run(result: str, kind: str, case: str | None, links: Sequence[str]) -> tuple[str, Figure]:
    """Name and picture of a result file."""
    from fabsim import plots, results

    found = results.read(result)
    drawn = chosen_cases(found, case, result)
    files = plain_apart(one.name for one in found)
    if kind in OF_ONE and len(drawn) > 1:
        click.echo(f"case {drawn[0].name}, the first of {', '.join(files)}; --case NAME draws another")
        drawn = drawn[:1]
    match kind:
        case "overview":
            figure = plots.overview(drawn)
        case "completions":
            figure = plots.completion_cdf(drawn)
        case "time":
            figure = plots.over_time(drawn[0], list(links) or None)
        case _:
            figure = plots.heat_map(drawn[0])
    return picture_name(result, files[drawn[0].name] if len(drawn) < len(found) else None, kind), figure
