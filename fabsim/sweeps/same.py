"""Whether the sweep in a folder is the one that was asked for."""

from __future__ import annotations

from difflib import ndiff

from fabsim.errors import InputError
from fabsim.journal import Journal


def refuse_another(here: str, found: Journal) -> None:
    """Raises InputError, with the first line that differs, for a folder that holds the sweep of another scenario.

    here: this one, resolved.
    """
    there = found.plan["scenario"]
    if there == here:
        return
    changes = [line for line in ndiff(there.splitlines(), here.splitlines()) if line[0] in "+-"]
    was = next((line[2:].strip() for line in changes if line[0] == "-"), "nothing")
    now = next((line[2:].strip() for line in changes if line[0] == "+"), "nothing")
    raise InputError(
        f"{found.folder}: holds the sweep of another scenario ({was!r} there, {now!r} here); "
        "name another folder, or give the scenario that it was begun with"
    )
