"""Where descents stand and how they came there: on the disk after each step, so that nothing of it is lost."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fabsim.errors import InputError
from fabsim.store import publish
from fabsim.typing import Float


@dataclass(frozen=True)
class Descents:
    """The state of R descents over M cases.

    Attributes:
        path: its file, written whole or not at all; None: nowhere.
        stamp: what the descent is about; a journal of another one is not gone on from.
        tree: raw numbers, the optimiser's state, and the best raw numbers so far: arrays with a leading axis R.
        history, smooth: [steps, R].
        figures: [steps, R, M, terms].
    """

    path: Path | None
    stamp: str
    tree: Any
    history: Float
    smooth: Float
    figures: Float

    @property
    def steps(self) -> int:
        """Points that were looked at."""
        return len(self.history)

    @staticmethod
    def open(path: Path | None, stamp: str, tree: Any) -> Descents:
        """The journal at that place, if there is one, else an empty one that begins with `tree`.

        Raises:
            InputError: the file is the journal of something else, or cannot be read.
        """
        restarts = jax.tree.leaves(tree)[0].shape[0]
        none = np.zeros((0, restarts))
        begun = Descents(path, stamp, tree, none, none, np.zeros((0, restarts, 0, 0)))
        if path is None or not path.exists():
            return begun
        for aside in path.parent.glob(f".{path.name}.*.tmp"):  # of a process that was killed while it wrote
            aside.unlink(missing_ok=True)
        found = _arrays(path)
        if str(found.get("stamp")) != stamp:
            text = "is the journal of another tuning; name another folder, or begin anew with --force"
            raise InputError(f"{path}: {text}")
        leaves, shape = jax.tree.flatten(tree)
        kept = [jnp.asarray(found[f"leaf{number}"]) for number in range(len(leaves))]
        tables = {name: found[name] for name in ("history", "smooth", "figures")}
        return Descents(path, stamp, jax.tree.unflatten(shape, kept), **tables)

    def add(self, tree: Any, true: Float, smooth: Float, figures: Float) -> Descents:
        """One step more, on the disk when this returns."""
        tables = {"history": true, "smooth": smooth, "figures": figures}
        longer = {
            name: np.concatenate([getattr(self, name).reshape(-1, *new.shape), np.asarray(new)[None]])
            for name, new in tables.items()
        }
        after = replace(self, tree=tree, **longer)
        if self.path is not None:
            leaves = {f"leaf{number}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))}
            image = io.BytesIO()
            np.savez(image, allow_pickle=False, stamp=np.array(self.stamp), **longer, **leaves)
            publish(self.path, image.getvalue(), force=True)
        return after


def _arrays(path: Path) -> dict[str, NDArray]:
    """All arrays of a journal. Raises InputError where they cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, EOFError, ValueError, BadZipFile) as error:
        text = f"cannot be read as the journal of a tuning ({error})"
        raise InputError(f"{path}: {text}; name another folder, or begin anew with --force") from None
