"""Whether the sweep in a folder is the one that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import ndiff
from typing import Any

from fabsim.errors import InputError
from fabsim.journal import Journal

INSTEAD = "name another folder, begin anew with --force"


def refuse_another(told: Mapping[str, Any], found: Journal) -> None:
    """Raises InputError, with the first line or the file that differs, for a folder that holds the sweep of another
    scenario.

    told: of this one the text, resolved (`scenario`), and the checksums of the files that it names, by name (`files`).
    """
    there, here = found.plan["scenario"], told["scenario"]
    if there != here:
        changes = [line for line in ndiff(there.splitlines(), here.splitlines()) if line[0] in "+-"]
        was = next((line[2:].strip() for line in changes if line[0] == "-"), "nothing")
        now = next((line[2:].strip() for line in changes if line[0] == "+"), "nothing")
        raise InputError(
            f"{found.folder}: holds the sweep of another scenario ({was!r} there, {now!r} here); "
            f"{INSTEAD}, or give the scenario that it was begun with"
        )
    changed = [name for name, checksum in found.plan["files"].items() if told["files"].get(name) != checksum]
    if changed:
        raise InputError(
            f"{found.folder}: holds a sweep that was begun with another content of {' and '.join(changed)}; "
            f"{INSTEAD}, or put back what stood there"
        )
