"""Speed, as ratios of things measured in one process: one run, and many of them."""

from __future__ import annotations

from fabsim.bench.figure import Figure


def bench(rounds: int = 15, members: int = 1000) -> list[Figure]:
    """Measure one run (until none is faster for so many `rounds`) and a sweep of `members`."""
    from fabsim.bench.many import many
    from fabsim.bench.one import one

    return one(rounds) + many(members)


def as_text(figures: list[Figure]) -> str:
    """A table, with the machine it holds for."""
    import jax
    import jax.numpy as jnp

    device = jax.devices()[0]
    head = f"{device.platform} ({device.device_kind}), jax {jax.__version__}, {jnp.zeros(()).dtype}"
    width = max(len(f.value) for f in figures)
    return "\n".join([head, *(f"{f.name:18} {f.value:>{width}}  {f.meaning}" for f in figures)])
