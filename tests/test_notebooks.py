"""Every notebook runs from its first cell to its last, as a reader would run it."""

from __future__ import annotations

import shutil
from pathlib import Path

import jax
import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Notebooks and the scenarios they read, where a notebook may write what it likes."""
    for folder in ("configs", "notebooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path / "notebooks"


@pytest.fixture
def as_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels use the device and the folder of compiled programs of these tests."""
    monkeypatch.setenv("JAX_PLATFORMS", jax.config.jax_platforms)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, copy: Path, as_here: None) -> None:
    notebook = nbformat.read(copy / path.name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(copy)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_its_outputs_and_small(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
    assert path.stat().st_size < 250_000


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
