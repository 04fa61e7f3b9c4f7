"""What a derivative makes again rather than keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
T = TypeVar("T")


def remade(function: Callable[P, T]) -> Callable[P, T]:
    """The function, of which the backward pass keeps nothing but the arguments: it is evaluated once more there.

    For what is wide and cheap. Each step of a run leaves what it keeps until the derivative comes back to it, so that a
    gradient costs memory and its traffic more than arithmetic. Values and derivatives are those of the function.
    """
    return jax.checkpoint(function, prevent_cse=False)
