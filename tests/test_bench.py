"""What the figures of `fabsim bench` are taken from."""

from __future__ import annotations

import pytest

from fabsim.bench import figure


def test_times_are_taken_in_turns_until_none_is_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth less is none. Two works whose times are given, two rounds without news."""
    monkeypatch.setattr(figure, "seconds", lambda work: work())
    one, other = iter([5.0, 4.0, 4.0, 4.0, 3.99, 1.0]), iter([9.0, 9.0, 2.0, 3.0, 3.0, 1.0])
    assert figure.least(lambda: next(one), lambda: next(other), rounds=2) == [3.99, 2.0]
    assert (next(one), next(other)) == (1.0, 1.0)


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine on which each time is smaller than the one before."""
    monkeypatch.setattr(figure, "PATIENCE", 0.05)
    monkeypatch.setattr(figure, "seconds", lambda work: work())
    times = (0.9**n for n in range(10**9))
    assert figure.least(lambda: next(times), rounds=3)[0] < 0.5
