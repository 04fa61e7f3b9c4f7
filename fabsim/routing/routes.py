"""Routes: which links each flow may use, and how it is split over them."""

from __future__ import annotations

from dataclasses import dataclass

from fabsim.typing import Float, Int


@dataclass(frozen=True)
class Routes:
    """Paths of every flow. Shapes: F flows, K paths, H links of the longest path.

    Attributes:
        path: [F, K, H] link numbers from the sender's NIC link to the receiver's down link, right-aligned: a shorter
            path is padded with -1 in front. The paths of one flow may differ in their number of links (a Valiant path
            beside a minimal one), and in their first and last link (a host with several ports: then the lanes of a
            port are contiguous, and each port has as many). Unused lanes of a flow repeat a used path beside them, of
            the same port where one lives there, with weight 0. No path has a dead link.
        weight: [F, K] share of the flow's bytes on each path; rows sum to 1.
    """

    path: Int
    weight: Float
