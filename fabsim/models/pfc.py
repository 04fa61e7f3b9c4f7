"""Priority flow control: a port that holds too much of what came over a link has that link paused."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from fabsim.models.queue import TrimQueue
from fabsim.typing import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PauseState:
    """What the head of each link wants of it. [L + 1], units.

    Attributes:
        wants: whether the link shall be silent.
        held: what came over the link and waits at its head.
        came: what came over the link in the last step.
        ring: [D, L + 1] the share of each of the last D steps in which it was wanted silent.
    """

    wants: Array
    held: Array
    came: Array
    ring: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PfcQueue(TrimQueue):
    """Output queues behind inputs that pause (IEEE 802.1Qbb).

    The head of a link counts what came over it and waits at any of its ports. Above `xoff` the link is paused, below
    `xon` it may send again; either takes effect after `delay`, from the crossing to the change of what arrives. So a
    port that is full silences links whose bytes go elsewhere, too (head-of-line blocking), and these fill the ports at
    their tails (pauses spread, up to the senders' NICs). What comes over a link beyond `xoff` + `headroom` is lost in
    silence; nothing is, if the headroom is what comes within the delay, less what leaves.

    The order of what stands is kept, in layers by age (see engine.layers). By it a link that is let go again brings its
    bytes in batches, and ports behind it run empty in between; a well-mixed port knows nothing of that, and a
    permutation over hashed paths ends 2 % early.

    n links of rate C into one port of C, delay t: what is held of each swings between xoff + (C - C/n) t and
    xon - (C/n) t, and the port never idles.

    A crossing has its time inside the step, so that results are smooth almost everywhere, in the thresholds too; they
    jump where a threshold is just touched or not. The pause itself is a bool and has no derivative. A delay of less
    than two steps acts as two.

    Attributes:
        xoff, xon, headroom: [L] bytes, at the head of each link.
        delay: [L] s.
    """

    trims: ClassVar[bool] = False
    pauses: ClassVar[bool] = True
    xoff: Array
    xon: Array
    headroom: Array
    delay: Array

    def inside(self, unit: Array, dt: Array, none: float) -> Self:
        """The same with sizes in units and times in steps."""
        steps = jnp.append(jnp.maximum(self.delay / dt, 2.0), 2.0)
        return dataclasses.replace(super().inside(unit, dt, none), delay=steps)

    def quiet(self, like: Array, depth: int) -> PauseState:
        """Nobody wants a pause. like: any [L + 1] array; depth: steps to remember."""
        zero = jnp.zeros_like(like)
        return PauseState(zero > 1.0, zero, zero, jnp.zeros((depth, *like.shape), like.dtype))

    def watch(self, state: PauseState, held: Array, step: Array) -> PauseState:
        """The wants after a step that ends with so much held; what is held is taken to change evenly within it."""
        rises = ~state.wants & (held > self.xoff)
        falls = state.wants & (held < self.xon)
        # Who crosses nothing may change by next to nothing, and one over its square is no number in the derivative.
        change = jnp.where(rises | falls, held - state.held, 1.0)
        left = 1.0 - jnp.clip((jnp.where(rises, self.xoff, self.xon) - state.held) / change, 0.0, 1.0)
        share = jnp.where(rises, left, jnp.where(falls, 1.0 - left, state.wants))
        ring = state.ring.at[step % state.ring.shape[0]].set(share)
        return dataclasses.replace(state, wants=(state.wants | rises) & ~falls, held=held, ring=ring)

    def overflow(self, state: PauseState, held: Array, coming: Array) -> Array:
        """[L + 1] units of those `coming` over a link for which there is no headroom, if as much leaves as just did."""
        leaves = state.held + state.came - held
        return jnp.clip(held + coming - leaves - self.xoff - self.headroom, 0.0, coming)
