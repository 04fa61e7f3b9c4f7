"""The command line: one function a command, thin over the public API.

JAX is imported inside the commands that need it, so that --help and mistakes cost nothing. Exit codes: see guard.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fabsim.errors import InputError, Stopped
from fabsim.gradients import attribute, tune
from fabsim.guard import guarded
from fabsim.language import SCHEMA, explain, new, print_schema
from fabsim.options import device_option, load_scenario, picture_place, scenario_options, use_device

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(package_name="fabsim")
@click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=print_schema, help=SCHEMA)
def cli() -> None:
    """A wind tunnel for AI-training networks: a fluid simulator of GPU fabrics.

    \b
    Examples:
      fabsim new 'my first'                       write a commented scenario
      fabsim explain transport                    what may stand in it
      fabsim check configs/first_flight.yaml      what it amounts to, and every fault in it
      fabsim run configs/first_flight.yaml        run it; a table, and a picture
      fabsim run my.yaml --set transport.window='1 BDP' --out my.h5
      fabsim show my.h5
    """


@cli.command()
@scenario_options
@click.option("--out", metavar="R.h5", help="Write everything to one result file.")
@click.option("--force", is_flag=True, help="Replace a result file that exists.")
@click.option("--plot", metavar="P.png", help="Where the picture of completions goes (.png, .svg, .pdf).")
@click.option("--no-plot", is_flag=True, help="Draw nothing.")
@click.option("--watch", default=32, show_default=True, type=click.IntRange(min=0), help="Links whose series to keep.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def run(out: str | None, force: bool, plot: str | None, no_plot: bool, watch: int, quiet: bool, **given: Any) -> None:
    """Run a scenario, or each of its cases, and print completion times.

    \b
    Examples:
      fabsim run configs/first_flight.yaml
      fabsim run my.yaml --set seeds=20           median and 5 to 95 % of 20 draws
      fabsim run configs/incast.yaml --set queue.buffer='200 kB' --out incast.h5
    """
    scenario = _scenario(given)
    from fabsim import plots, results, store, tables
    from fabsim.scenario.packets import packet_times
    from fabsim.scenario.run import run as run_one

    if out is not None:
        store.check_target(out, force)
    picture = None if no_plot else picture_place(plot, scenario.name)
    if picture is not None:
        store.check_target(picture, True)
    packets = packet_times(scenario)
    done = [_named(run_one, variant, progress=not quiet, watch=watch) for variant in scenario.variants.values()]
    click.echo(tables.summary(done, packets))
    if out is not None:
        results.write(done, out, force)
        click.echo(f"result: {out}")
    if picture is not None:
        plots.save(plots.overview(done, packets), picture)
        click.echo(f"picture: {picture}")


@cli.command()
@scenario_options
@click.option(
    "--inert", is_flag=True, help="Run it too, and name the keys on which its last completion does not depend."
)
def check(inert: bool, **given: Any) -> None:
    """Find every fault in a scenario; print sizes, derived defaults and memory.

    \b
    Examples:
      fabsim check configs/first_flight.yaml
      fabsim check my.yaml --set fabric.spines=8
    """
    scenario = _scenario(given)
    from fabsim.scenario.check import report

    click.echo(report(scenario))
    if inert:
        from fabsim.scenario.attribute import inert_line

        click.echo("\n".join(inert_line(variant) for variant in scenario.variants.values()))


@cli.command()
@click.argument("result", metavar="R.h5")
@click.option("--links", default=10, show_default=True, type=click.IntRange(min=0), help="Busiest links to list.")
def show(result: str, links: int) -> None:
    """Print what a result file holds: completions, totals, busiest links.

    \b
    Example:
      fabsim show my.h5 --links 20
    """
    from fabsim import results, tables

    click.echo(tables.show(results.read(result), busiest=links))


cli.add_command(explain)
cli.add_command(new)


@cli.command()
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


@cli.command()
@click.argument("result", metavar="R.h5")
@click.option(
    "--kind",
    type=click.Choice(["overview", "completions", "time", "map"]),
    default="overview",
    show_default=True,
    help="One page; completion CDF; queues and utilisation over time; heat map of the links by tier.",
)
@click.option("--case", help="The case to draw (for time and map); the first, if not given.")
@click.option("--link", "links", multiple=True, metavar="NAME", help="Links to draw over time.")
@click.option("--out", metavar="P.png", help="Where it goes (.png, .svg, .pdf).")
def plot(result: str, kind: str, case: str | None, links: Sequence[str], out: str | None) -> None:
    """Draw a result file.

    \b
    Examples:
      fabsim plot my.h5
      fabsim plot my.h5 --kind time --link 'leaf0->spine3' --out queues.svg
    """
    from fabsim import plots, results

    found = results.read(result)
    names = [one.name for one in found]
    if case is not None and case not in names:
        raise InputError(f"--case {case}: there is no such case in {result}; use {', '.join(names)}")
    one = found[names.index(case)] if case is not None else found[0]
    match kind:
        case "overview":
            figure = plots.overview(found)
        case "completions":
            figure = plots.completion_cdf(found)
        case "time":
            figure = plots.over_time(one, list(links) or None)
        case _:
            figure = plots.heat_map(one)
    place = picture_place(out, f"{one.name} {kind}")
    plots.save(figure, place)
    click.echo(f"picture: {place}")


@cli.command()
@click.argument("result", metavar="R.h5")
@click.option(
    "--table", type=click.Choice(["summary", "flows", "links", "series", "seeds"]), default="flows", show_default=True,
    help="What to write as CSV.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Everything but the series, as JSON.")
@click.option("--out", metavar="FILE", help="A file; standard output, if not given.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def export(result: str, table: Any, as_json: bool, out: str | None, force: bool) -> None:
    """Write a result file as CSV or JSON, in SI units.

    \b
    Examples:
      fabsim export my.h5 --table links > links.csv
      fabsim export my.h5 --json --out my.json
    """
    from fabsim import results, store, tables

    found = results.read(result)
    text = tables.as_json(found) if as_json else tables.as_csv(found, table)
    if out is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    store.publish(out, text.encode(), force)
    click.echo(f"written: {out}")


@cli.command()
@scenario_options
@click.option("--out", metavar="S.h5", help="Write all metrics to one file, which xarray reads as a Dataset.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def sweep(out: str | None, force: bool, quiet: bool, **given: Any) -> None:
    """Run every combination of the values in the `sweep` section, as one program.

    \b
    Examples:
      fabsim sweep configs/sweeps/first.yaml --out sweep.h5
      fabsim sweep configs/sweeps/first.yaml --set sweep.seeds=8
    """
    scenario = _scenario(given)
    from fabsim import store
    from fabsim.scenario.sweep import as_text
    from fabsim.scenario.sweep import sweep as run_sweep

    if out is not None:
        store.check_target(out, force)
    found = run_sweep(scenario, progress=not quiet)
    click.echo(as_text(found))
    if out is not None:
        found.write(out, force)
        click.echo(f"result: {out}")


cli.add_command(tune)
cli.add_command(attribute)


@cli.command()
@click.argument("folder", metavar="DIR")
@click.option("--cases", "pattern", default="*", show_default=True, metavar="GLOB", help="Cases whose names fit.")
@click.option("--csv", "table", metavar="OUT.csv", help="Write the table with all columns.")
@device_option
def validate(folder: str, pattern: str, table: str | None, device: str | None) -> None:
    """Compare with packets: run every case of a directory of packet-level results.

    \b
    Examples:
      fabsim validate results/
      fabsim validate results/ --cases 'perm_*_const' --csv table.csv
    """
    use_device(device)
    from fabsim import store, validation

    if table is not None:
        store.check_target(table, True)
    rows = list(validation.validate(Path(folder), pattern))
    click.echo(validation.as_text(rows))
    if table is not None:
        validation.write_csv(rows, Path(table))
        click.echo(f"table: {table}")


@cli.command()
@click.option("--repeats", default=7, show_default=True, type=click.IntRange(min=1), help="The best of so many counts.")
@device_option
def bench(repeats: int, device: str | None) -> None:
    """Measure speed, as ratios of things measured in one process.

    \b
    Example:
      fabsim bench
    """
    use_device(device)
    from fabsim import bench as benchmark

    click.echo(benchmark.as_text(benchmark.bench(repeats)))


@cli.command()
@device_option
def info(device: str | None) -> None:
    """Print versions, devices, and known faults of the installed JAX.

    \b
    Example:
      fabsim info
    """
    use_device(device)
    from fabsim.scenario.info import report

    click.echo(report())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code, as fabsim.guard has it."""
    return guarded(cli, sys.argv[1:] if arguments is None else arguments)


def _named(run_one: Any, variant: Any, **options: Any) -> Any:
    """Run a case; if it stops, say which it was."""
    try:
        return run_one(variant, **options)
    except Stopped as error:
        raise Stopped(f"{variant.name}: {error}") from error


def _scenario(given: dict[str, Any]) -> Any:
    """The scenario of the common options, and the device set up for it."""
    scenario = load_scenario(given["file"], given["changes"], given["seed"], given["precision"])
    use_device(given["device"])
    return scenario


if __name__ == "__main__":
    sys.exit(main())
