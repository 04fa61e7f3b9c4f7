"""What comes next is made ready while the present is worked on."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def ahead(make: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
    """`make` of each item in turn, in a thread, and never of more than one beyond the one that is asked for. What it
    raises is raised where its item is asked for. Who asks for no more waits until what is begun is made."""
    coming: Future[Made] | None = None
    with settled(), ThreadPoolExecutor(1) as aside:
        for item in items:
            now, coming = coming, aside.submit(make, item)
            if now is not None:
                yield now.result()
        if coming is not None:
            yield coming.result()


@contextmanager
def settled() -> Iterator[None]:
    """What is there by now is not looked through for garbage meanwhile: as many things come and go, all modules and
    compiled programs would be, time and again, for a tenth of a second each time."""
    if gc.get_freeze_count():  # somebody else has done so, and will end it
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
