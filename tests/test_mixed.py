"""Several transports in one run: each law has its own flows, and they share the queues."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fabsim
from fabsim.errors import InputError

TEXT = """
fabric: {kind: single_switch, hosts: 9, rate: 100 Gbps, latency: 1 us}
traffic:
  - {kind: incast, senders: [1, 2, 3], receiver: 0, size: 2 MB}
  - {kind: incast, senders: [4, 5], receiver: 8, size: 2 MB}
transport: {kind: mixed, laws: [LAWS]}
"""


def completions(folder: Path, laws: str) -> np.ndarray:
    """Of the three flows of the first job and the two of the second, which meet nowhere."""
    file = folder / "mixed.yaml"
    file.write_text(TEXT.replace("LAWS", laws))
    return fabsim.run(fabsim.load(file), progress=False).completion


def test_two_jobs_with_two_laws_are_what_each_is_alone(tmp_path: Path) -> None:
    swift, hpcc = "{kind: swift}", "{kind: hpcc, increase: 1 kB}"
    both = completions(tmp_path, f"{swift}, {hpcc}")
    np.testing.assert_allclose(both[:3], completions(tmp_path, f"{swift}, {swift}")[:3], rtol=1e-6)
    np.testing.assert_allclose(both[3:], completions(tmp_path, f"{hpcc}, {hpcc}")[3:], rtol=1e-6)
    assert np.isfinite(both).all()


def test_a_law_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`traffic` has 2 entries, given 1 laws; give one for each"):
        completions(tmp_path, "{kind: swift}")
