"""The model: what may be tuned, swept and differentiated."""

from __future__ import annotations

import dataclasses
from typing import Any, Generic, TypeVar

import jax

from fabsim.models.classes import Classes
from fabsim.models.protocol import Balancer, Transport
from fabsim.models.queue import TrimQueue
from fabsim.models.recovery import Recovery
from fabsim.typing import Array

T = TypeVar("T", bound=Transport[Any])


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Links:
    """What the cables can do.

    Attributes:
        capacity: [L] bytes per second.
        latency: [L] seconds of wire, plus the switching latency at its tail.
        loss: [L] share of all bytes that the link loses in silence (a gray failure), at random; None where all are
            sound. Smooth but for whether a flow's last few packets are among them, which each flow draws (see
            fabsim.engine.luck). Acknowledgements on their way back are not lost.
    """

    capacity: Array
    latency: Array
    loss: Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Split:
    """How a flow is spread over its paths: a fixed share each.

    Attributes:
        weight: [F, K] shares of each flow's bytes; rows sum to 1.
    """

    weight: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Model(Generic[T]):
    """The parameters of a run, all in SI units; its gradient is a Model too.

    `recovery` is what senders do about silent losses; None where nothing is lost but what is trimmed. `balancer` moves
    the split by what comes back; None where it stays as it is. `classes` are those of the traffic, if any are declared:
    the fields of `queue` are then by queue [C L], and those of `links` as before.
    """

    links: Links
    queue: TrimQueue
    transport: T
    split: Split
    recovery: Recovery | None = None
    balancer: Balancer[Any] | None = None
    classes: Classes | None = None
