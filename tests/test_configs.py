"""Every config runs, and the first flight agrees with the packets beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fabsim
from fabsim.scenario.batch import Compiler
from fabsim.scenario.packets import packet_times
from fabsim.sweeps.design import design
from fabsim.sweeps.plan import plan

CONFIGS = Path(__file__).parents[1] / "configs"
SWEEPS = sorted((CONFIGS / "sweeps").glob("*.yaml"))
OTHERS = sorted(
    file
    for file in CONFIGS.rglob("*.yaml")
    if file.stem not in ("first_flight", "prices") and file.parent.name != "mrc"  # see test_published
)


@pytest.mark.parametrize("file", OTHERS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_config_runs(file: Path) -> None:
    for variant in fabsim.load(file).variants.values():
        result = fabsim.run(variant, progress=False)
        assert np.isfinite(result.completion).all()
        assert (result.duration >= result.zero_load * (1 - 1e-3)).all()


@pytest.mark.parametrize("file", SWEEPS, ids=lambda file: file.stem)
def test_every_point_of_a_sweep_can_be_built(file: Path) -> None:
    """Each network is built, and nothing is run."""
    scenario = fabsim.load(file)
    assert scenario.sweep is not None
    points = design(scenario)
    planned = plan(scenario, points, Compiler(), devices=1, progress=False)
    assert not planned.refused
    assert sum(program.points for program in planned.programs) == points.count


def test_first_flight_against_packets() -> None:
    """Single paths flow by flow (median 2 %, p90 5 %, last 5 %); a drawn spray by its mean (3 %) and last (5 %)."""
    scenario = fabsim.load(CONFIGS / "first_flight.yaml")
    packets = packet_times(scenario)
    ecmp, spray = (fabsim.run(scenario.variants[case], progress=False) for case in ("ECMP", "spray"))
    apart = np.abs(ecmp.duration / packets["ECMP"] - 1)
    assert np.median(apart) <= 0.02
    assert np.quantile(apart, 0.9) <= 0.05
    assert ecmp.duration.max() == pytest.approx(packets["ECMP"].max(), rel=0.05)
    assert spray.duration.mean() == pytest.approx(packets["spray"].mean(), rel=0.03)
    assert spray.duration.max() == pytest.approx(packets["spray"].max(), rel=0.05)
