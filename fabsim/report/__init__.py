"""A result or a sweep as one HTML page that needs no network."""

from __future__ import annotations

from pathlib import Path

from fabsim import datasets, results
from fabsim.report.page import whole


def page(path: str | Path) -> str:
    """The page of a result file, or of a sweep (its folder or its file).

    Raises:
        InputError: no such file, or plotly is not installed.
    """
    from fabsim.report import of_run, of_sweep

    if datasets.is_sweep(path):
        return whole(*of_sweep.parts(datasets.open(path), path))
    return whole(*of_run.parts(results.read(path)))
