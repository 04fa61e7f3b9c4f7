"""The command line: one function a command, thin over the public API.

JAX is imported inside the commands that need it, so that --help and mistakes cost nothing. Exit codes: see guard.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fabsim.commands.language import SCHEMA, explain, new, print_schema
from fabsim.commands.pictures import plot, report
from fabsim.commands.results import diff, export, show
from fabsim.commands.sweep import sweep
from fabsim.commands.tune import attribute, tune
from fabsim.errors import InputError, Stopped
from fabsim.guard import guarded
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
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option("--plot", metavar="P.png", help="Where the picture of completions goes (.png, .svg, .pdf).")
@click.option("--no-plot", is_flag=True, help="Draw nothing.")
@click.option("--watch", default=32, show_default=True, type=click.IntRange(min=0), help="Links whose series to keep.")
@click.option(
    "--devices", default=1, show_default=True, type=click.IntRange(min=1), help="Spread the flows over so many."
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def run(
    out: str | None, force: bool, plot: str | None, no_plot: bool, watch: int, devices: int, quiet: bool, **given: Any
) -> None:
    """Run a scenario, or each of its cases, and print completion times.

    \b
    Examples:
      fabsim run configs/first_flight.yaml
      fabsim run my.yaml --set seeds=20           median and 5 to 95 % of 20 draws
      fabsim run configs/incast.yaml --set queue.buffer='200 kB' --out incast.h5
      fabsim run large.yaml --devices 8           too large for one device
    """
    scenario = _scenario(given, devices)
    from fabsim import plots, results, store, tables
    from fabsim.scenario.packets import packet_times
    from fabsim.scenario.run import run as run_one

    if out is not None:
        store.check_target(out, force)
    picture = None if no_plot else picture_place(plot, scenario.name, force)
    packets = packet_times(scenario)
    done, stopped = [], []
    for variant in scenario.variants.values():
        try:
            done.append(run_one(variant, progress=not quiet, watch=watch, devices=devices))
        except (InputError, Stopped) as error:  # the other cases are worth having
            if isinstance(error, InputError) and not done:
                raise
            stopped.append(f"{variant.name}: {error}")
    if not done:
        raise Stopped("\n".join(stopped))
    click.echo("\n\n".join(filter(None, [tables.summary(done, packets), tables.collectives(done)])))
    if out is not None:
        results.write(done, out, force)
        click.echo(f"result: {out}")
    if picture is not None:
        plots.save(plots.overview(done, packets), picture)
        click.echo(f"picture: {picture}")
    if stopped:
        raise Stopped("\n".join(stopped))


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
    from fabsim.scenario.check import report as checked

    if scenario.tune is not None:
        from fabsim.tuning.tune import refuse_faults

        refuse_faults(scenario)
    click.echo(checked(scenario))
    if inert:
        from fabsim.tuning.attribute_text import inert_lines

        click.echo("\n".join(inert_lines(scenario.variants.values())))


cli.add_command(show)
cli.add_command(explain)
cli.add_command(new)
cli.add_command(diff)
cli.add_command(plot)
cli.add_command(report)
cli.add_command(export)
cli.add_command(sweep)


cli.add_command(tune)
cli.add_command(attribute)


@cli.command()
@click.argument("folder", metavar="DIR")
@click.option("--cases", "pattern", default="*", show_default=True, metavar="GLOB", help="Cases or rows that fit.")
@click.option("--csv", "table", metavar="OUT.csv", help="Write the table with all columns.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@click.option("--summary", is_flag=True, help="A line for each family of cases, in place of one for each case.")
@device_option
def validate(folder: str, pattern: str, table: str | None, force: bool, summary: bool, device: str | None) -> None:
    """Compare with packets, or with published measurements.

    A directory of packet-level results has each of its cases run. One of scenarios with a table of what others have
    measured (published.csv) has the runs that the table's rows need. A run that is interrupted writes its rows to
    OUT-part.csv.

    \b
    Examples:
      fabsim validate results/
      fabsim validate results/ --summary
      fabsim validate results/ --cases 'perm_*_const' --csv table.csv
      fabsim validate configs/mrc
    """
    use_device(device)
    from fabsim import published, store, validation

    if table is not None:
        store.check_target(table, force)
    beside: Any = published if (Path(folder) / published.NAME).exists() else validation
    if summary and beside is published:
        raise InputError(f"--summary: {folder} has published rows, which are few; leave it out")
    rows: list[Any] = []
    place = None if table is None else _part_of(Path(table))
    try:
        rows.extend(beside.validate(Path(folder), pattern))
        place = None if table is None else Path(table)
    finally:  # who interrupts it keeps what there is, beside a whole table of before
        if rows:
            click.echo(validation.by_family(rows) if summary else beside.as_text(rows))
        if rows and place is not None:
            beside.write_csv(rows, place)
            click.echo(f"table: {place}")


@cli.command()
@click.option(
    "--rounds",
    default=15,
    show_default=True,
    type=click.IntRange(min=1),
    help="Measure until none is faster for so many rounds.",
)
@device_option
def bench(rounds: int, device: str | None) -> None:
    """Measure speed, as ratios of things measured in one process.

    \b
    Example:
      fabsim bench
    """
    use_device(device)
    from fabsim import bench as benchmark

    click.echo(benchmark.as_text(benchmark.bench(rounds)))


@cli.command()
@device_option
def info(device: str | None) -> None:
    """Print versions, devices, and known faults of the installed JAX.

    \b
    Example:
      fabsim info
    """
    use_device(device)
    from fabsim.scenario.info import report as versions

    click.echo(versions())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code, as fabsim.guard has it."""
    return guarded(cli, sys.argv[1:] if arguments is None else arguments)


def _part_of(table: Path) -> Path:
    """Where the rows of a run go that does not come to its end: table.csv has table-part.csv beside it."""
    return table.with_stem(f"{table.stem}-part")


def _scenario(given: dict[str, Any], devices: int = 1) -> Any:
    """The scenario of the common options, and the devices set up for it."""
    scenario = load_scenario(given["file"], given["changes"], given["seed"], given["precision"])
    use_device(given["device"], devices if devices > 1 else None)
    return scenario


if __name__ == "__main__":
    sys.exit(main())
