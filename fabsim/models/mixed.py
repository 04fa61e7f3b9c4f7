"""Several transports in one run: neighbouring flows in ranges, a law for each."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.protocol import Feedback, Sender, Telemetry, Transport
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Mixed:
    """Each law is told of its own flows and answers for them, as if there were no others; they meet in the queues.

    Smooth where the laws are. Parameters of a law that are per flow are of its own flows.

    Attributes:
        laws: a law a range.
        ends: for each range, the flow behind its last.
    """

    laws: tuple[Transport[Any], ...]
    ends: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    alone: ClassVar[bool] = True  # ends are those of all flows

    @property
    def signals(self) -> bool:
        """Whether any law reads marks and delays."""
        return any(law.signals for law in self.laws)

    @property
    def needs_fair(self) -> bool:
        """Whether any law wants its fair rate."""
        return any(law.needs_fair for law in self.laws)

    @property
    def telemetry(self) -> bool:
        """Whether any law reads its path."""
        return any(law.telemetry for law in self.laws)

    @property
    def apart(self) -> bool:
        """Whether any law tells marked bytes from others."""
        return any(getattr(law, "apart", False) for law in self.laws)

    @property
    def chance(self) -> Array:
        """[F] how much of the luck of packets each flow has."""
        told = [jnp.full(flows.stop - flows.start, getattr(law, "chance", 0.0)) for law, flows in self.ranges]
        return jnp.concatenate(told)

    @property
    def ranges(self) -> list[tuple[Transport[Any], slice]]:
        """Laws and their flows."""
        return [(law, slice(*ends)) for law, *ends in zip(self.laws, (0, *self.ends[:-1]), self.ends, strict=True)]

    def init(self, sender: Sender) -> tuple[Any, ...]:
        """Their states."""
        return tuple(law.init(_told(sender, flows)) for law, flows in self.ranges)

    def offer(self, state: tuple[Any, ...], sender: Sender) -> Array:
        """What each allows its flows."""
        parts = zip(self.ranges, state, strict=True)
        return jnp.concatenate([law.offer(own, _told(sender, flows)) for (law, flows), own in parts])

    def step(self, state: tuple[Any, ...], feedback: Feedback, sender: Sender) -> tuple[Any, ...]:
        """Their states after what came back to each."""
        parts = zip(self.ranges, state, strict=True)
        return tuple(law.step(own, _back(feedback, flows), _told(sender, flows)) for (law, flows), own in parts)


def _told(sender: Sender, flows: slice) -> Sender:
    """What a law is told of some flows; figures of the run and of links are not per flow."""
    same = ("unit", "dt", "capacity")
    own = {name: value for name, value in vars(sender).items() if name not in same and value is not None}
    return dataclasses.replace(sender, **{name: value[flows] for name, value in own.items()})


def _back(feedback: Feedback, flows: slice) -> Feedback:
    """What came back for some flows."""
    own = {name: x[flows] for name, x in vars(feedback).items() if name != "path" and x is not None}
    return dataclasses.replace(feedback, **own, path=feedback.path and _seen(feedback.path, flows))


def _seen(path: Telemetry, flows: slice) -> Telemetry:
    """What the switches wrote for some flows."""
    by_port = {name: value[:, flows] for name, value in vars(path).items() if name != "share"}
    return dataclasses.replace(path, **by_port, share=path.share[flows])
