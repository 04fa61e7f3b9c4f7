"""Long wires: what leaves a port for one arrives at the port behind it a propagation time later.

Without them the pipeline of one step a link carries everything, and what a path takes longer than that is added once,
to feedback and completion. Then the bytes of near and far senders would meet in a queue at the wrong time. So a link
that takes LONG or more has delay lines (see line), for the flows that cross it and no others: one for each lane, with
all channels of the fluid (data, headers of trimmed packets, marks, waits), and one for each flow's way back, which is
as long. The rest of a path's latency stays where it was. What is on a wire when the port in front of it dies still
arrives.

Memory is CELLS cells a lane at most, whatever the distance: strides are powers of two, so that a byte is known to
better than a hundredth of its wire's delay. A gradient keeps them once a frame (see simulate): over long ways, take
long frames. The last link of a path has no port behind it, and needs no line.

Here is where the wires lie; what they do in a run is in `crossing`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from fabsim.typing import Array, Float, Int

LONG = 8e-6
"""Seconds of a wire (1.6 km) from which on it has delay lines, if it takes two steps or more. Over a shorter one bytes
come to the port behind it up to so much early."""

CELLS = 256
"""Cells of a delay line at most."""

SPARE = 1.125
"""Times the delay that a line was built for and that it has room for: latencies may be tuned."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Wires:
    """Which flows cross long wires, and where. X crossings, G flows that cross; F, K, H as in Problem.

    Attributes:
        cells: of each line.
        ring: steps of feedback that are remembered, without the ways back over long wires.
        source: [X] where the wire begins: 0 the sender's NIC, h + 1 the port of fabric hop h.
        flow: [X] the flow; F for none.
        stride: [X, K] steps of one cell of each lane's line; 0 where the lane's link is not long.
        far: [G] the flows; F for none.
        back: [G] steps of one cell of the line of their way back.
    """

    cells: int = dataclasses.field(metadata={"static": True})
    ring: int = dataclasses.field(metadata={"static": True})
    source: Array
    flow: Array
    stride: Array
    far: Array
    back: Array

    def of(self, flows: Int, real: int) -> Self:
        """Those of the first `real` of these flows, numbered as they stand there."""
        source, flow, stride, far, back = (
            np.asarray(x) for x in (self.source, self.flow, self.stride, self.far, self.back)
        )
        number = np.full(max(flow.max(initial=0), flows.max(initial=0)) + 1, -1)
        number[flows[:real]] = np.arange(real)
        mine, own = number[flow] >= 0, number[far] >= 0
        whole = {"source": source[mine], "flow": number[flow[mine]], "stride": stride[mine]}
        whole |= {"far": number[far[own]], "back": back[own]}
        kinds = {name: np.asarray(getattr(self, name)).dtype for name in whole}
        return dataclasses.replace(self, **{name: jnp.asarray(x.astype(kinds[name])) for name, x in whole.items()})

    def widen(self, cells: int, ring: int, crossings: int, far: int, none: int) -> Self:
        """The same with as many cells, steps, crossings and flows; those that are added are of flow `none`."""
        source, flow, stride = (np.asarray(x) for x in (self.source, self.flow, self.stride))
        more, others = crossings - len(source), far - len(self.far)
        return dataclasses.replace(
            self,
            cells=cells,
            ring=ring,
            source=np.pad(source, (0, more)),
            flow=np.pad(flow, (0, more), constant_values=none),
            stride=np.pad(stride, [(0, more), (0, 0)]),
            far=np.pad(np.asarray(self.far), (0, others), constant_values=none),
            back=np.pad(np.asarray(self.back), (0, others)),
        )


def lay(links: Int, latency: Float, dt: float, weight: Float, beyond: Float, back: Float, unit: int) -> Wires | None:
    """The wires of a problem; None where none is long.

    Args:
        links: [H + 1, F, K] the NIC's link of each lane, then that of each fabric hop.
        latency: [L + 1] s, of each link; dt: s.
        weight: [F, K] split.
        beyond, back: [F, K] steps of latency beyond the pipeline's one per link, and of the way back.
        unit: steps of feedback are remembered in multiples of this.
    """
    steps = latency[links] / dt
    long = steps >= max(LONG / dt, 2.0)
    if not long.any():
        return None
    source, flow = np.nonzero(long.any(-1))
    on_wire = np.where(long, steps, 0.0).sum(0)
    near = np.maximum(beyond - on_wire + long.sum(0), 1.0) + back - on_wire
    cells = min(CELLS, 2 ** math.ceil(math.log2(SPARE * on_wire.max() + 2)))
    far = np.unique(flow)

    def stride(delay: Float) -> Int:
        return 2 ** np.ceil(np.log2(np.maximum(SPARE * delay / (cells - 2), 1.0))).astype(np.int64)

    return Wires(
        cells=cells,
        ring=-(-(math.ceil(near.max()) + 2) // unit) * unit,
        source=jnp.asarray(source, "int32"),
        flow=jnp.asarray(flow, "int32"),
        stride=jnp.asarray(np.where(long, stride(steps), 0)[source, flow], "uint32"),
        far=jnp.asarray(far, "int32"),
        back=jnp.asarray(stride((weight * on_wire).sum(-1)[far]), "uint32"),
    )
