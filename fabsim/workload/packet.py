"""Packets: what a message weighs on the wire."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabsim.typing import Float, Int


@dataclass(frozen=True)
class Packet:
    """Sizes on the wire, in bytes. A full data packet is `mtu` long, `header` of it is not payload, and a trimmed
    packet or an acknowledgement is `trim` long. With `acks` acknowledgements take their part of the links on the way
    back. Defaults: the UEC packet simulator (uet-htsim), with nothing on the way back."""

    mtu: float = 4150.0
    header: float = 64.0
    trim: float = 64.0
    acks: bool = False

    def count(self, payload: Float) -> Int:
        """Packets of a message of `payload` bytes."""
        return np.ceil(payload / (self.mtu - self.header)).astype(np.int64)

    def wire(self, payload: Float) -> Float:
        """Bytes on the wire of a message of `payload` bytes: a header for each packet."""
        return payload + self.header * self.count(payload)


PACKET = Packet()
"""The packets of the reference simulator."""
