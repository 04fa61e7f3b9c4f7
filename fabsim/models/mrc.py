"""MRC: entropy values in turn over all planes; marks pass one over, losses retire it, probes bring it back."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fabsim.models.bitmap import STAGES, free, onward, served
from fabsim.models.protocol import PathFeedback, Sender
from fabsim.models.reps import everything, ratio
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class MrcState:
    """[F, ...], in shares of a flow's active values.

    Attributes:
        active: [F, K] values in use on each path.
        retired: [F, STAGES, K] values that lost a packet, by how far their probes have come.
        skipped: [F, 2, STAGES, K] parts of the values in use that are passed over, as in Bitmap.
        share: [F, K] the split.
    """

    active: Array
    retired: Array
    skipped: Array
    share: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Mrc:
    """Multipath Reliable Connection: the sender goes around its active entropy values, as many in each plane.

    A value with a mark, or with a packet that was trimmed before the last hop, is passed over for `skip` turns (SKIP).
    A value that lost a packet in silence is retired (ASSUMED_BAD), and a backup of the same plane takes its place;
    probes bring it back, and the backup rests again. With E active values of a flow, e its draw of paths, a and r the
    values in use and retired of a path (in shares of E), m the packets lost there that the sender misses now:

        retire = a (1 - exp(-m / (a E))),    dr = retire - back,    da = back - retire + backups

    so that a packet retires the value that it had, once. Backups come in proportion to what a path has left of them,
    (1 + backup / E) e - a - r, and a plane has its e whenever there are enough. A plane never has less than its part of
    `min_active`: what is beyond is not retired. A retired value is probed each `probe`; it is back after `successes`
    probes in a row that come through, in the mean exactly, and about so each (STAGES stages, an Erlang distribution);
    a probe that is lost puts it back to the beginning. Planes have equal parts of a rotation, however many values
    they have, while their ports are up; with x the part of a path's values that is passed over, as in Bitmap:

        w ~ (a / sum of a in the plane) (1 - x),    at rest e / (1 + skip (marked + trimmed))

    A port that is down, at either end, has its values moved to the other planes after `remap`; until then it is given
    its packets, and they are lost. (Araujo et al., arXiv:2605.04333; Sohan et al., arXiv:2606.18170; the states and
    the guard: the headers of OCP's MRC. Published are 128 to 256 values, reactions within tens of us, remapping within
    1 s; neither the number of backups nor probes, successes or the guard are.)

    It knows what its own losses, probes and ports tell, and nothing of links elsewhere. When a loss is missed is a
    matter of the recovery's timeout, after which it is sent again, too.

    Smooth but where a plane runs out of values, and where Bitmap is not.

    Attributes: scalars or [F]; `remap` is a scalar.
        entropies: active values of a flow.
        backup: values that wait to take their places.
        skip: turns that a mark or a trim costs.
        probe: s from one probe of a value to the next.
        successes: probes in a row that bring a value back.
        min_active: values of a flow that are never retired.
        remap: s from a port's going down, or up, until values have moved.
    """

    misses: ClassVar[bool] = True
    finds: ClassVar[bool] = True
    entropies: Array
    backup: Array
    skip: Array
    probe: Array
    successes: Array
    min_active: Array
    remap: Array

    def init(self, base: Array, sender: Sender) -> MrcState:
        """All values good."""
        retired = jnp.zeros((base.shape[0], STAGES, base.shape[1]), base.dtype)
        return MrcState(base, retired, jnp.zeros((base.shape[0], 2, STAGES, base.shape[1]), base.dtype), base)

    def split(self, state: MrcState, base: Array) -> Array:
        """As it stands."""
        return state.share

    def step(self, state: MrcState, feedback: PathFeedback, base: Array, sender: Sender) -> MrcState:
        """Retire, bring back, pass over."""
        found = feedback.found
        assert found is not None
        count = found.ports.shape[-1]
        planes = Planes(count, base.shape[-1] // count)
        lost = jnp.zeros_like(base) if feedback.lost is None else feedback.lost
        active, retired = self.renew(state, lost, found.through, base, sender, planes)
        use = active * planes.spread(ratio(planes.sum(base), planes.sum(active)))
        skipped = self.pass_over(state.skipped, feedback, use, sender)
        turns = use * free(skipped)
        up = turns * planes.spread(found.ports)
        some = up.sum(-1, keepdims=True) > 0  # else it goes on as if nothing were known
        share = jnp.where(some, up, turns)
        return MrcState(active, retired, skipped, share / share.sum(-1, keepdims=True))

    def pass_over(self, skipped: Array, feedback: PathFeedback, use: Array, sender: Sender) -> Array:
        """A value is passed over once at a time: what was marked on values that are no longer in use counts no more."""
        values = jnp.broadcast_to(self.entropies, use.shape[:1])
        own = use * (values * sender.packet)[:, None]
        room = jnp.maximum(1.0 - skipped.sum((1, 2)), 0.0) * own
        marked = jnp.minimum(feedback.marked, room)
        new = jnp.stack([marked, jnp.minimum(feedback.trimmed, room - marked)], 1)
        # a turn that is passed over is one, too
        rounds = everything(feedback) / (use * free(skipped)).sum(-1) / (values * sender.packet)
        leaves = served(skipped, rounds, jnp.broadcast_to(self.skip, rounds.shape)[:, None])
        return onward(skipped, leaves, ratio(new, own[:, None]))

    def renew(
        self, state: MrcState, lost: Array, through: Array, base: Array, sender: Sender, planes: Planes
    ) -> tuple[Array, Array]:
        """Values in use and retired after this step's losses and probes."""
        values = jnp.broadcast_to(self.entropies, base.shape[:1])[:, None]
        active, retired = state.active, state.retired
        spare = jnp.maximum((1.0 + jnp.reshape(self.backup, (-1, 1)) / values) * base - active - retired.sum(1), 0.0)
        hit = active * -jnp.expm1(-ratio(lost / sender.packet[:, None], active * values))
        least = planes.sum(base) * jnp.minimum(jnp.reshape(self.min_active, (-1, 1)) / values, 1.0)
        most = jnp.maximum(planes.sum(active) + planes.sum(spare) - least, 0.0)
        hit = hit * planes.spread(jnp.minimum(ratio(most, planes.sum(hit), 1.0), 1.0))
        retired, back = self.heal(retired, through, sender.dt)
        retired = retired.at[:, 0].add(hit)
        active = active - hit + back
        need = planes.sum(base) - planes.sum(active)
        called = jnp.clip(need, 0.0, planes.sum(spare))
        over = jnp.maximum(active - base, 0.0)
        active = active + spare * planes.spread(ratio(called, planes.sum(spare)))
        return active - over * planes.spread(ratio(jnp.maximum(-need, 0.0), planes.sum(over))), retired

    def heal(self, retired: Array, through: Array, dt: Array) -> tuple[Array, Array]:
        """Retired values a step later, and [F, K] those that are back. through: [F, K] share of probes that come
        through."""
        probes = jnp.reshape(dt / self.probe, (-1, 1))
        onward = retired * jnp.minimum(through * STAGES * probes / jnp.reshape(self.successes, (-1, 1)), 1.0)[:, None]
        again = (retired - onward)[:, 1:] * jnp.minimum((1.0 - through) * probes, 1.0)[:, None]
        stays = retired - onward
        stays = stays.at[:, 1:].add(onward[:, :-1] - again)
        return stays.at[:, 0].add(again.sum(1)), onward[:, -1]


@dataclasses.dataclass(frozen=True)
class Planes:
    """Lanes by planes: those of a plane stand together, `lanes` of them."""

    count: int
    lanes: int

    def sum(self, x: Array) -> Array:
        """[F, K] -> [F, P]."""
        return x.reshape(-1, self.count, self.lanes).sum(-1)

    def spread(self, x: Array) -> Array:
        """[F, P] -> [F, K]."""
        return jnp.repeat(x, self.lanes, -1)
