"""What can go wrong, as two exceptions and a warning."""

from __future__ import annotations

from collections.abc import Iterable


class InputError(Exception):
    """Bad input (exit code 2).

    Each sentence is one line: what is wrong, what was given, what would do.

    Attributes:
        sentences: the sentences; `str()` joins them by newline.
    """

    def __init__(self, sentences: str | Iterable[str]) -> None:
        self.sentences: list[str] = [sentences] if isinstance(sentences, str) else list(sentences)
        super().__init__("\n".join(self.sentences))


class Stopped(Exception):
    """A run that could not go on or did not end (exit code 3): NaN, a broken invariant, unfinished flows."""


class InputWarning(UserWarning):
    """Input that was read, but not used: an unknown key, a column without meaning."""
