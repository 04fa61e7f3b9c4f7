"""Commands that descend along gradients: `tune` and `attribute`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fabsim.options import load_scenario, picture_place, plain_apart, scenario_options, use_device


@click.command()
@scenario_options
@click.option("--check", is_flag=True, help="Compare gradients with finite differences in float64, and stop there.")
@click.option("--out", metavar="DIR", help="A folder for result, tuned scenario, pictures, and the journal.")
@click.option("--force", is_flag=True, help="Begin anew where the folder holds a tuning.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def tune(check: bool, out: str | None, force: bool, quiet: bool, **given: Any) -> None:
    """Descend along the gradient through the simulator, as the `tune` section says.

    With --out a tuning that was interrupted goes on where it stood, and DIR/tuned.yaml is a scenario.

    \b
    Examples:
      fabsim tune configs/tune/first.yaml
      fabsim tune configs/tune/first.yaml --set tune.steps=100 --out tuned
      fabsim tune configs/tune/first.yaml --check
    """
    scenario = _scenario(given)
    if check:
        from fabsim.tuning.gradient_check import check_gradients

        click.echo(check_gradients(scenario, progress=not quiet))
        return
    from fabsim.tuning import tune as tuning
    from fabsim.tuning import tune_text

    folder = None if out is None else Path(out)
    if folder is not None:
        tune_text.refuse_to_replace(folder, force)
    found = tuning.tune(scenario, out=folder, force=force, progress=not quiet)
    click.echo(tune_text.as_text(found))
    if folder is not None:
        for path in tune_text.write(scenario, found, folder):
            click.echo(f"written: {path}")


@click.command()
@scenario_options
@click.option("--objective", default="last_completion", show_default=True, metavar="NAME", help="What is made small.")
@click.option("--top", default=10, show_default=True, type=click.IntRange(min=1), help="Entries of each table.")
@click.option("--plot", metavar="P.png", help="Where the heat map goes (.png, .svg, .pdf).")
@click.option("--no-plot", is_flag=True, help="Draw nothing.")
@click.option("--force", is_flag=True, help="Replace a picture that exists.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def attribute(
    objective: str, top: int, plot: str | None, no_plot: bool, force: bool, quiet: bool, **given: Any
) -> None:
    """Say which link, tier, host and buffer costs what: elasticities from one backward pass, the largest run to check.

    An elasticity of -0.3: 1 % more rate, 0.3 % less of the objective.

    \b
    Examples:
      fabsim attribute configs/incast.yaml
      fabsim attribute my.yaml --objective p99_completion --top 20
    """
    scenario = _scenario(given)
    from fabsim import plots
    from fabsim.scenario.run import run
    from fabsim.tuning import attribute as attribution
    from fabsim.tuning import attribute_text

    cases = scenario.variants
    files = {} if no_plot else plain_apart(cases)
    whole = f"{scenario.name} " if scenario.cases else ""
    places = {
        case: picture_place(_of_case(plot, file, len(cases) > 1), f"{whole}{file} {objective} by link", force)
        for case, file in files.items()
    }
    for case, variant in cases.items():
        found = attribution.attribute(variant, objective, progress=not quiet)
        click.echo((f"case {case}\n" if scenario.cases else "") + attribute_text.as_text(found, top))
        if place := places.get(case):
            shown = plots.Shown(-found.capacity, f"{objective} (% less for 1 % more rate)")
            plots.save(plots.heat_map(run(variant, progress=not quiet), shown), place)
            click.echo(f"picture: {place}")


def _of_case(plot: str | None, file: str, several: bool) -> str | None:
    """The picture of one of several cases: map.png is map-ecmp.png of the case ECMP."""
    return plot if plot is None or not several else str(Path(plot).with_stem(f"{Path(plot).stem}-{file}"))


def _scenario(given: dict[str, Any]) -> Any:
    """The scenario of the common options, and the device set up for it."""
    scenario = load_scenario(given["file"], given["changes"], given["seed"], given["precision"])
    use_device(given["device"])
    return scenario
