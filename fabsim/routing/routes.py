"""Routes: which links each flow may use, and how it is split over them."""

from __future__ import annotations

from dataclasses import dataclass

from fabsim.typing import Float, Int


@dataclass(frozen=True)
class Routes:
    """Paths of every flow. Shapes: F flows, K paths, H links of the longest path.

    Attributes:
        path: [F, K, H] link numbers from the sender's NIC link to the receiver's down link, right-aligned: a shorter
            path is padded with -1 in front. All paths of one flow have the same number of links, and the same first
            and last link. Unused lanes of a flow repeat a used path beside them, with weight 0.
        weight: [F, K] share of the flow's bytes on each path; rows sum to 1.
    """

    path: Int
    weight: Float
