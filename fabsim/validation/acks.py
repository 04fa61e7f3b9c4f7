"""When the senders know, where acknowledgements queue with the data, as those of RoCE do in uet-htsim (one class)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fabsim.engine.simulate import Trace
from fabsim.routing import drawn
from fabsim.typing import Float
from fabsim.validation.case import Case

SEED = 1
"""Of the ways back, which nobody measured."""

MOST = 1000
"""Rounds in search of the end of a wait; a few dozen are enough where a port is paused nine tenths of the time."""


def knows(case: Case, trace: Trace, dt: float) -> Float:
    """[F] s at which the last acknowledgement of each flow is back, by a path drawn for it. Frames of one step.

    At each port it waits for what stands there when it comes, and for the pauses until it leaves. The fluid itself
    takes acknowledgements as it takes headers, which pass the data.
    """
    fabric, flows = case.fabric, case.flows
    way = drawn(fabric, replace(flows, src=flows.dst, dst=flows.src), entropies=1, seed=SEED).path[:, 0]
    queue = np.asarray(trace.frames.queue, float)
    paused = np.zeros(queue.shape) if trace.frames.paused is None else np.asarray(trace.frames.paused, float)
    so_far = np.concatenate([np.zeros((1, fabric.links)), paused.cumsum(0)])

    def pauses(time: Float, link: np.ndarray) -> Float:
        return so_far[np.minimum(time / dt, len(queue)).astype(int), link]

    time = np.asarray(trace.completion, float)
    for link in way.T:
        used, link = link >= 0, np.maximum(link, 0)
        stands = queue[np.minimum(time / dt, len(queue) - 1).astype(int), link]
        leave = time + stands / fabric.capacity[link]
        for _ in range(MOST):  # a pause in the wait makes the wait longer, and that may bring another
            before = leave
            leave = time + stands / fabric.capacity[link] + pauses(leave, link) - pauses(time, link)
            if np.array_equal(leave, before):
                break
        time = np.where(used, leave + fabric.latency[link] + case.packet.trim / fabric.capacity[link], time)
    return time
