"""A long session compiles more programs than one process may hold."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fabsim.engine import programs
from fabsim.engine.run import go_on, run
from fabsim.topology import leaf_spine
from fabsim.workload import assemble
from tests.small import RATE, case

FABRIC = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count")
def test_programs_are_forgotten_when_half_of_the_maps_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(FABRIC, assemble([0, 1], [3, 2], 1e5))
    first = run(*made, progress=False)
    full = programs.maps()
    assert 0 < full < programs.most()
    assert go_on._cache_size() > 0  # type: ignore[attr-defined]

    monkeypatch.setattr(programs, "calls", iter([1, 0, 0, 1]))
    monkeypatch.setattr(programs, "most", lambda: full)
    programs.make_room()
    assert go_on._cache_size() > 0  # type: ignore[attr-defined]  # not the turn to look
    monkeypatch.setattr(programs, "most", lambda: 2 * full + 100)
    programs.make_room()
    assert go_on._cache_size() > 0  # type: ignore[attr-defined]  # there is room
    monkeypatch.setattr(programs, "most", lambda: full)
    programs.make_room()
    assert go_on._cache_size() == 0  # type: ignore[attr-defined]
    assert programs.maps() < full
    np.testing.assert_array_equal(run(*made, progress=False).trace.completion, first.trace.completion)
