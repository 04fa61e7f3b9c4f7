"""A folder that fills shard by shard and loses nothing: what a sweep has done so far.

    DIR/plan.json                   what is to be done; written by whoever comes first, and settled by the first shard
    DIR/shards/00012-1f0c....h5     a finished shard; its name ends in the SHA-256 of its bytes
    DIR/sweep.h5                    all shards as one file, once all are there

A shard is built in memory, written aside, forced to the disk and renamed: it is there whole or not at all, and is never
touched again. Many processes may fill one folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabsim.errors import InputError, Stopped
from fabsim.store import Sheet, check_folder, decode, encode, publish

DIGITS = 16
"""Hexadecimal digits of the checksum in a name: 64 bits."""

PLAN = "plan.json"
WHOLE = "sweep.h5"
Plan = dict[str, Any]


@dataclass(frozen=True)
class Journal:
    """The folder of a sweep, its plan as JSON data, and the checksum of that."""

    folder: Path
    plan: Plan
    edition: str

    @property
    def whole(self) -> Path:
        """The file of all shards."""
        return self.folder / WHOLE

    def done(self) -> dict[int, Path]:
        """The finished shards by number."""
        files = sorted(shards(self.folder).glob("[0-9]*-*.h5"))
        return {int(file.name.split("-")[0]): file for file in reversed(files)}

    def put(self, number: int, sheet: Sheet) -> None:
        """Add a shard.

        Raises:
            OSError: the disk is full; then nothing of it is there.
            Stopped: another process has made the plan anew, so that the shard is none of it.
        """
        if checksum((self.folder / PLAN).read_bytes()) != self.edition:
            raise Stopped(f"{self.folder}: another process has made the plan anew; run the command again to go on")
        content = encode({"": sheet})
        publish(shards(self.folder) / f"{number:05d}-{checksum(content)}.h5", content, force=True)

    def begun_anew(self, plan: Plan) -> Journal:
        """With another plan, as long as no shard is done."""
        if self.done():
            raise Stopped(f"{self.folder}: another process has begun; run the command again to go on")
        publish(self.folder / PLAN, json.dumps(plan).encode(), force=True)
        found = existing(self.folder)
        assert found is not None
        return found

    def sheets(self) -> Iterator[tuple[int, Sheet]]:
        """The finished shards, in order. Raises InputError for one that is damaged."""
        for number, file in sorted(self.done().items()):
            if corrupt(file):
                text = f"is damaged; run fabsim sweep FILE --out {self.folder} again, which does this shard anew"
                raise InputError(f"{file}: {text}")
            yield number, decode(file)[""]

    def set_aside_corrupt(self) -> list[Path]:
        """Finds shards whose bytes are not those that were written, and renames them to *.corrupt: they are to be done
        again."""
        found = [file for file in self.done().values() if corrupt(file)]
        for file in found:
            file.rename(file.with_suffix(".corrupt"))
        return found

    def publish_whole(self, sheet: Sheet) -> None:
        """Write the file of all shards; several processes may do so at once, with equal content."""
        publish(self.whole, encode({"": sheet}), force=True)


def begin(folder: str | Path, plan: Plan) -> Journal:
    """A new folder with a plan. Where another process was faster, its plan holds.

    Raises:
        InputError: the folder above is missing, or the path is no folder.
        OSError: it cannot be written.
    """
    place = Path(folder)
    check_folder(place, "a sweep")
    shards(place).mkdir(parents=True, exist_ok=True)
    with suppress(InputError):  # it is there already
        publish(place / PLAN, json.dumps(plan).encode())
    found = existing(place)
    assert found is not None
    return found


def forget(folder: str | Path) -> None:
    """Remove the sweep in a folder, finished or not, and nothing else that may lie there. The plan goes last: shards
    without their plan would be taken for those of the next one."""
    place = Path(folder)
    for file in (place / WHOLE, *shards(place).glob("[0-9]*-*"), place / PLAN):
        file.unlink(missing_ok=True)


def existing(folder: str | Path) -> Journal | None:
    """The journal in a folder; None where there is nothing yet.

    Raises:
        InputError: the path is a file, or a folder of something else, or its plan cannot be read.
    """
    place = Path(folder)
    if place.is_file():
        raise InputError(f"{folder}: is a file, and a sweep is a folder; name another")
    plan = place / PLAN
    if not plan.is_file():
        if place.is_dir() and any(file.name != "shards" for file in place.iterdir()):
            raise InputError(
                f"{folder}: holds something else than a sweep; name the folder of one, or an empty or new one"
            )
        if any(shards(place).glob("[0-9]*-*")):
            raise InputError(f"{folder}: holds shards of a sweep whose plan is gone; name another folder")
        return None
    try:
        content = plan.read_bytes()
        return Journal(place, json.loads(content), checksum(content))
    except ValueError as error:
        raise InputError(
            f"{plan}: cannot be read ({error}); remove the folder to begin anew, or name another"
        ) from None


def shards(folder: Path) -> Path:
    """Where the shards lie."""
    return folder / "shards"


def corrupt(shard: Path) -> bool:
    """Whether its bytes are not those that were written."""
    return checksum(shard.read_bytes()) != shard.stem.split("-")[1]


def checksum(content: bytes) -> str:
    """The first 64 bits of SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]
