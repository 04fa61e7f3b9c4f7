"""The folder of a tuning: the names of what lies in it."""

from __future__ import annotations

JOURNAL = "journal.npz"
RESULT = "tune.h5"
TUNED, SPLIT = "tuned.yaml", "split.csv"
PICTURES = ("history.png", "before_after.png")
FILES = (RESULT, TUNED, SPLIT, *PICTURES)
"""What is written beside the journal."""
