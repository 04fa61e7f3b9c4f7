"""The program, its gradient and a sweep lower for accelerators on a machine without one, in float32 throughout."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from fabsim.engine.problem import Problem
from fabsim.engine.simulate import simulate
from fabsim.models.dcqcn import Dcqcn
from fabsim.models.go_back import GoBackN
from fabsim.models.hpcc import Hpcc
from fabsim.models.ideal import Ideal
from fabsim.models.model import Model
from fabsim.models.rccc import Rccc
from fabsim.models.window import Window
from fabsim.topology import leaf_spine
from fabsim.workload import assemble, merge, ring_coupled
from tests.small import RATE, case
from tests.test_pfc import pausing
from tests.test_taildrop import losing


def total(problem: Problem, model: Model[Any]) -> jax.Array:
    """Something to differentiate."""
    return simulate(problem, model, steps=20).completion.sum()


def sweep(problem: Problem, model: Model[Any]) -> Any:
    """Three windows (or shares) at once."""

    def one(by: jax.Array) -> Any:
        law = jax.tree.map(lambda x: x * by, model.transport)
        return simulate(problem, Model(model.links, model.queue, law, model.split), steps=20)

    return jax.vmap(one)(jnp.array([0.5, 0.75, 1.0], "float32"))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "simulate": lambda problem, model: simulate(problem, model, steps=20),
    "gradient": jax.grad(total, argnums=1),
    "sweep": sweep,
}


LAWS = {
    "window": Window(jnp.float32(3e5)),
    "ideal": Ideal(jnp.float32(1.0)),
    "dcqcn": Dcqcn(*jnp.asarray([5e10, 1, 0.1, 5e6, 5e-5, 5e-5, 5e-5, 1e7, 5, 1e6], "float32")),
    "hpcc": Hpcc(*jnp.asarray([1e-5, 5e10, 0.95, 80, 5], "float32")),
    "rccc": Rccc(jnp.float32(3e5), jnp.float32(0.99), jnp.float32(4.0)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_lowers_for_accelerators_in_float32(program: str, law: Any) -> None:
    """With all that a problem may have: coupled flows, triggers, several paths."""
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)
    chain = assemble([0, 1], [2, 3], 1e5, trigger=[-1, 0], need=[0, 1], fires=[0, -1])
    problem, model = case(fabric, merge([ring_coupled(4, 4e5, grain=1e5), chain]), transport=law)
    check(PROGRAMS[program], problem, model)


def test_pauses_and_losses_lower_too() -> None:
    """Pauses in front of little headroom, lossy links and go-back-N."""
    fabric = leaf_spine(2, 2, 2, rate=RATE, latency=1e-6)
    problem, model = losing(case(fabric, assemble([0, 1, 2], 3, 1e5)), GoBackN, loss=[0.01] * fabric.links)
    check(PROGRAMS["gradient"], problem, replace(model, queue=pausing(model, headroom=1e4).queue))


def check(program: Callable[..., Any], problem: Problem, model: Model[Any]) -> None:
    """For GPUs and TPUs: no number but float32, and no call back to the host."""
    traced = jax.jit(program).trace(problem, model)
    for platform in ("cuda", "tpu"):
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert "f32" in text
        assert not re.findall(r"\b(?:[0-9x]*x)?(?:f64|bf16|f16)\b", text)
        assert "custom_call" not in text or not re.findall(r"callback", text)
