"""The command `sweep`."""

from __future__ import annotations

from typing import Any

import click

from fabsim.options import load_scenario, scenario_options, use_device


@click.command()
@scenario_options
@click.option("--out", metavar="DIR", help="A folder for what is finished; given again, the sweep goes on.")
@click.option("--force", is_flag=True, help="Begin anew where the folder holds a sweep.")
@click.option("--dry-run", is_flag=True, help="Print the plan (programs, batches, memory, time), and run nothing.")
@click.option("--rank", type=click.IntRange(min=0), help="Number of this process, from 0; else as SLURM or JAX say.")
@click.option("--ranks", type=click.IntRange(min=1), help="How many processes share the sweep.")
@click.option(
    "--devices", type=click.IntRange(min=1), help="Devices to spread over (cores, on a CPU); all, if not given."
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def sweep(
    out: str | None,
    force: bool,
    dry_run: bool,
    rank: int | None,
    ranks: int | None,
    devices: int | None,
    quiet: bool,
    **given: Any,
) -> None:
    """Run every point of the `sweep` section: in few programs, in batches, on all devices.

    With --out everything that is finished is safe: a sweep that was stopped, by whatever, goes on where it was.
    Several processes may work on one folder.

    \b
    Examples:
      fabsim sweep configs/sweeps/first.yaml
      fabsim sweep configs/sweeps/first.yaml --set sweep.seeds=8 --out buffers
      fabsim sweep configs/sweeps/first.yaml --dry-run
      fabsim sweep big.yaml --out big --rank 0 --ranks 2      and on another host --rank 1
      fabsim show buffers; fabsim plot buffers
    """
    scenario = load_scenario(given["file"], given["changes"], given["seed"], given["precision"])
    use_device(given["device"], devices)
    from fabsim.sweeps.ranks import rank as rank_of
    from fabsim.sweeps.sweep import sweep as run_sweep
    from fabsim.sweeps.table import as_text

    mine = rank_of(rank, ranks)
    if dry_run:
        from fabsim.sweeps.preview import preview

        click.echo(preview(scenario, devices=devices, progress=not quiet))
        return
    found = run_sweep(scenario, out, force=force, rank=mine, devices=devices, progress=not quiet)
    click.echo(as_text(found))
    if out is not None:
        click.echo(f"sweep: {out}")
