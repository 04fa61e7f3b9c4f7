"""Array types used in signatures: numpy arrays on the host side, JAX arrays inside compiled programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # the rooms that are plain numpy import this file, and must not import JAX
    import jax

Int: TypeAlias = NDArray[np.integer]
Float: TypeAlias = NDArray[np.floating]
Bool: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = "jax.Array"
