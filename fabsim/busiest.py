"""Which links held the others up: the order in which links are listed, and in which their series are kept and drawn."""

from __future__ import annotations

import numpy as np

from fabsim.typing import Float, Int


def busiest(tail_tier: Int, capacity: Float, utilisation: Float, queue_peak: Float, sent: Float) -> Int:
    """[L] numbers of the links, the busiest first.

    By utilisation, in whole per mille, so that links which are loaded alike tie; then by how long the last in the
    largest queue waited, so that a slow link's small buffer counts as much as a fast one's; then by bytes. What waits
    at a NIC is the sender's own, and senders are often busy all the time, whatever holds them up: of their links the
    busiest stands among the others, the rest behind them. Links that carry nothing come last.

    Args:
        tail_tier: [L] tier of the node that sends; 0 for hosts.
        capacity: [L] B/s, 0 of dead links.
        utilisation: [L] data and headers over what the line rate could have carried.
        queue_peak, sent: [L] bytes.
    """
    wait = np.divide(queue_peak, capacity, out=np.zeros(len(capacity)), where=(capacity > 0) & (tail_tier > 0))
    order = np.lexsort((-sent, -wait, -np.round(1e3 * utilisation)))
    of_host = tail_tier[order] == 0
    behind = np.where(utilisation[order] > 0, of_host & (np.cumsum(of_host) > 1), 2)
    return order[np.argsort(behind, kind="stable")]
