"""What may stand under `packet`: sizes on the wire."""

from __future__ import annotations

from fabsim.scenario.keys.fields import ALMOST, Length, Section, Size, like
from fabsim.workload.packet import Packet


class PacketSection(Section):
    """Bytes on the wire of a full packet, of its header, and of a trimmed packet or acknowledgement."""

    mtu: Length = like(
        "4150 B", 4150.0, means="bytes on the wire of a full packet, header included", source="uet-htsim", smooth=ALMOST
    )
    header: Size = like("64 B", 64.0, means="bytes of the header of each packet", source="uet-htsim", smooth=ALMOST)
    trim: Size = like(
        "64 B", 64.0, means="bytes of a trimmed packet and of an acknowledgement", source="uet-htsim", smooth=ALMOST
    )

    acks: bool = like(
        "false",
        True,
        means="acknowledgements take their part of the receivers' ports and of the links on the way back: one for each "
        "packet; under nscc and rccc clean packets share one (coalesced)",
        source="uet-htsim",
    )

    @property
    def sizes(self) -> Packet:
        """The same, as the rooms below take it."""
        return Packet(self.mtu, self.header, self.trim, self.acks)
