"""Go-back-N in the fabric: what is behind a hole goes on, and the receiver refuses it.

Two parts of the fluid, which ports and links treat as they do the rest. Bytes are behind a hole when something is lost
downstream of them (what is beyond the place of the loss was sent before it, and arrives), or when they are sent by a
flow that has one; for the sender they are lost from then on, see GoBackN. Bytes are ahead of a hole when something is
lost upstream of them: if one of these is lost, too, it makes no new hole but moves the flow's to where it is.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fabsim.engine.fall import fall, join
from fabsim.engine.holes import Holes, by_hop, later_than_one, less, tell
from fabsim.engine.network import Missing
from fabsim.engine.part import Moved, Passage, out_of_ports, over_links
from fabsim.engine.setup import Setup
from fabsim.engine.state import Part, State
from fabsim.models.go_back import GoBackN
from fabsim.models.queue import NOTHING
from fabsim.models.recovery import RecoveryState
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Torn:
    """What a step does to flows that take nothing out of order. [F].

    Attributes:
        lost: units lost in silence, or behind that; again: such of them as were ahead of a hole.
        known: units that are lost besides, and go on as trimmed; less such as are lost now.
        share: of the flows without a hole, those that have one now.
    """

    lost: Array
    again: Array
    known: Array
    share: Array


def go_back(
    s: Setup, state: State, how: Passage, whole: Moved, sent: Array, in_flight: Array, room: Array
) -> tuple[tuple[Part, Part], RecoveryState, Array, Array, Array]:
    """Move what is behind holes, and what is ahead, by one step, and book new ones: these, the state of the recovery,
    [C, F] what the receivers take, [F] all that is lost, and [F] whether that begins a new lot.

    state: with the recovery after this step's timeouts; sent: [F, P] units; in_flight, room: [F] units before that.
    """
    recovery, law = state.recovery, s.recovery
    assert recovery is not None
    assert isinstance(law, GoBackN)
    all_of = sent.sum(-1)
    recovery, share = law.send(recovery, all_of, in_flight + room, room)
    behind, ahead, takes, torn = advance(s, state, how, whole, sent * share[:, None], law.sound(recovery))
    recovery, anew = law.tear(recovery, torn.lost, torn.again, torn.share, in_flight + all_of)
    lost = torn.lost + torn.known + all_of * share
    return (behind, ahead), recovery, takes, lost, anew


def advance(
    s: Setup, state: State, how: Passage, whole: Moved, sent: Array, sound: tuple[Array, Array]
) -> tuple[Part, Part, Array, Torn]:
    """Move both parts by one step: what is behind holes and what is ahead, what receivers take of [C, F] what reached
    them, and the new holes.

    sent: [F, P] units sent behind holes; sound: [F] shares of the flow that have none, and that have bytes ahead of it.
    """
    behind, ahead = out_of_ports(s, state, how, state.behind), out_of_ports(s, state, how, state.ahead)
    at_ports = jnp.stack([by_hop(less(less(whole.cut, behind.cut), ahead.cut)), by_hop(ahead.cut)])
    ports, little = tell(s, jnp.zeros_like(at_ports) if s.queue.trims else at_ports)
    each = 1.0 / (jnp.where(s.packet > 0, s.packet, 1.0) * jnp.stack(sound))[:, None]
    behind, ahead, joined = join(s, how, whole.data, behind, ahead, ports * each)
    back, refused, gone = over_links(s, state, how, state.behind, behind, sent)
    front, comes, also = over_links(s, state, how, state.ahead, ahead, jnp.zeros_like(sent))
    links, more, headers = off_links(s, whole.gone, gone, also, ports)
    holes = [Holes(port, link[:-1], link[-1]) for port, link in zip(ports * each, links * each, strict=True)]
    back, front, fell = fall(s, holes[0], holes[1], whole, back, front)
    rest = jnp.maximum(whole.reached[0] - refused[0] - comes[0], 0.0)
    last = jnp.stack([rest, comes[0]]) * jnp.stack([later_than_one(x.wires[-1]) for x in holes])
    takes = accept(whole.reached, refused, last.sum(0), little + more)
    lost = ports.sum(1) + links.sum(1) + joined + fell + last
    known = at_ports.sum((0, 1)) - headers if s.queue.trims else -headers
    return back, front, takes, Torn(lost.sum(0), lost[1], known, holes[0].some())


def off_links(
    s: Setup, whole: Missing | None, behind: Missing | None, ahead: Missing | None, ports: Array
) -> tuple[Array, Array, Array]:
    """[2, H + 2, F] what links lose that is not behind a hole (of the rest, and ahead of one), the sender's last; [F]
    what of it is next to nothing, and [F] headers among it."""
    none = jnp.zeros_like(ports[0, 0])
    if whole is None or behind is None or ahead is None:
        return jnp.zeros((2, ports.shape[1] + 1, *none.shape), none.dtype), none, none
    parts = [less(less(whole, behind), ahead), ahead]
    nic = [none if x.nic is None else x.nic.sum(-1) for x in parts]
    links, little = tell(s, jnp.stack([jnp.append(by_hop(x), y[None], 0) for x, y in zip(parts, nic, strict=True)]))
    headers = sum((x.headers for x in parts if x.headers is not None), none)
    return links, little, headers


def accept(reached: Array, refused: Array, last: Array, little: Array) -> Array:
    """[C, F] what receivers take of what `reached` them: not what is behind a hole, nor what fell behind one at the
    `last` link [F]; marks and waits in proportion. And `little` [F], which is lost but is next to nothing."""
    came, data = reached[0], jnp.maximum(reached[0] - refused[0], 0.0) - last
    share = jnp.where(came > NOTHING, data / jnp.where(came > NOTHING, came, 1.0), 0.0)
    return jnp.concatenate([(data + little)[None], (reached[1] - refused[1])[None], reached[2:] * share])
