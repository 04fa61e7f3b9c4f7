"""REPS and bitmap together: what came back clean is used again, and other packets take their turns."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from fabsim.models.bitmap import Bitmap, BitmapState
from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import clean, everything, recycled, towards
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RepsBitmap:
    """REPS, but a path that is not used again is not drawn: it is the next without a penalty (the `mixed` of uet-htsim,
    its default).

    With b the split of Bitmap, w' = a w (1 - m) + M b as in Reps. Turns are taken for the part M only. It does not
    freeze (nor does that `mixed`): what is missed takes a turn, which passes over the values that lost.

    Smooth where Bitmap is.

    Attributes:
        mark, trim, entropies, loss: as in Bitmap.
        memory, echo: as in Reps.
    """

    misses: ClassVar[bool] = True
    mark: Array
    trim: Array
    entropies: Array
    memory: Array
    echo: Array
    loss: Array | None = None

    @property
    def turns(self) -> Bitmap:
        """What chooses where nothing is used again."""
        return Bitmap(self.mark, self.trim, self.entropies, self.loss)

    def init(self, base: Array, sender: Sender) -> tuple[Array, BitmapState]:
        """[F, K] the split, and penalties as in Bitmap."""
        return base, self.turns.init(base, sender)

    def split(self, state: tuple[Array, BitmapState], base: Array) -> Array:
        """As it stands."""
        return state[0]

    def step(
        self, state: tuple[Array, BitmapState], feedback: PathFeedback, base: Array, sender: Sender
    ) -> tuple[Array, BitmapState]:
        """The clean ones again, the others in turn."""
        split, penalties = state
        again, heard = clean(feedback, self.echo), everything(feedback)
        penalties = self.turns.after(penalties, feedback, base, sender, heard - again.sum(-1))
        target = recycled(again, heard, self.turns.split(penalties, base))
        return towards(split, target, heard / sender.packet, self.memory), penalties
