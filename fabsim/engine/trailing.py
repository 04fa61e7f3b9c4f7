"""Many members as one program, with the batch on the last axis of every array: what a CPU is fast at.

jax.vmap puts the batch first. Then the innermost loops of a compiled step run over the few lanes of a flow, of which
the compiler makes no vector instructions. With the batch last, every operation is a loop over members side by side in
memory, and a gather or scatter whose indices the members share moves whole rows of them. The program is the same:
its jaxpr is read, and each operation is bound again with one more axis. One without a rule here is left to jax.vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from fabsim.typing import Array

ELEMENTWISE = {
    "abs", "add", "and", "ceil", "clamp", "convert_element_type", "copy", "cos", "div", "eq", "exp", "exp2",
    "expm1", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min",
    "mul", "ne", "neg", "not", "or", "pow", "reduce_precision", "rem", "round", "rsqrt", "select_n", "sign", "sin",
    "sqrt", "square", "sub", "tan", "tanh", "xor",
}  # fmt: skip
SAME_AXES = {
    "argmax", "argmin", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "reduce_and", "reduce_max",
    "reduce_min", "reduce_or", "reduce_prod", "reduce_sum", "rev", "squeeze",
}  # fmt: skip
"""Their axes are counted from the front: one more at the end changes nothing."""

CALLS = {
    "jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2", "custom_jvp_call", "custom_vjp_call",
}  # fmt: skip
"""They are read through: a batch has no gradient of its own."""

Member = tuple[Any, bool]
"""A value, and whether its last axis is the batch."""


def trailing(function: Callable[..., Any], size: int, differs: Any, gives: Any = True) -> Callable[..., Any]:
    """The function for a batch of `size` members at once.

    Args:
        differs: a tree of bools like the arguments of the function: True where a leaf has the batch as its last axis,
            False where all members share it.
        gives: the same for what the function gives, or the beginning of such a tree; what does differ cannot be False.
    """
    which = jax.tree.leaves(differs)

    def batch(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        single = [jax.typeof(x[..., 0]) if d else jax.typeof(x) for x, d in zip(leaves, which, strict=True)]
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in single]
        closed, out = jax.make_jaxpr(function, return_shape=True)(*jax.tree.unflatten(tree, shapes))
        found = run(closed, list(zip(leaves, which, strict=True)), size)
        wanted = jax.tree.leaves(jax.tree.broadcast(gives, out))
        if any(own and not asked for (_, own), asked in zip(found, wanted, strict=True)):
            raise ValueError("what differs between the members cannot be shared by them")
        whole = [settle(x, asked, size) for x, asked in zip(found, wanted, strict=True)]
        return jax.tree.unflatten(jax.tree.structure(out), whole)

    return batch


def spread(member: Member, size: int) -> Array:
    """The value with its batch axis."""
    x, differs = member
    return x if differs else jnp.broadcast_to(jnp.asarray(x)[..., None], (*jnp.shape(x), size))


def run(program: ClosedJaxpr | Jaxpr, args: Sequence[Member], size: int) -> list[Member]:
    """Every operation of a program in turn."""
    closed = program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])
    jaxpr = closed.jaxpr
    known: dict[Any, Member] = dict(zip(jaxpr.invars, args, strict=True))
    known.update((var, (value, False)) for var, value in zip(jaxpr.constvars, closed.consts, strict=True))

    def look(atom: Any) -> Member:
        return (atom.val, False) if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        known.update(zip(eqn.outvars, apply(eqn, [look(x) for x in eqn.invars], size), strict=True))
    return [look(x) for x in jaxpr.outvars]


def apply(eqn: JaxprEqn, args: list[Member], size: int) -> list[Member]:
    """One operation; what no member changes is done once for all."""
    name, several = eqn.primitive.name, eqn.primitive.multiple_results
    if name in CALLS:
        inner = eqn.params["jaxpr" if "jaxpr" in eqn.params else "call_jaxpr"]
        return run(inner, args, size)
    if name == "scan":
        return scan(eqn, args, size)
    if name == "cond" and (len(eqn.params["branches"]) == 2 or not args[0][1]):
        return cond(eqn, args, size)
    differs = any(batched for _, batched in args)
    found = with_axis(eqn, args, size) if differs else eqn.primitive.bind(*(x for x, _ in args), **eqn.params)
    return [(x, differs) for x in (found if several else [found])]


def with_axis(eqn: JaxprEqn, args: list[Member], size: int) -> Any:
    """An operation with one more axis at the end."""
    name, p, bind = eqn.primitive.name, eqn.params, eqn.primitive.bind
    first = args[0][0]
    if name in ELEMENTWISE:
        return bind(*aligned(args, (*single(eqn), size)), **p)
    if name in SAME_AXES:
        return bind(first, **p)
    if name == "broadcast_in_dim":
        rank = len(p["shape"])
        return lax.broadcast_in_dim(first, (*p["shape"], size), (*p["broadcast_dimensions"], rank))
    if name == "reshape":
        return lax.reshape(first, (*p["new_sizes"], size))
    if name == "transpose":
        return lax.transpose(first, (*p["permutation"], first.ndim - 1))
    if name == "concatenate":
        return lax.concatenate([spread(x, size) for x in args], p["dimension"])
    if name == "pad" and not args[1][1]:
        return lax.pad(first, args[1][0], (*p["padding_config"], (0, 0, 0)))
    if name == "slice":
        strides = p["strides"] or (1,) * (first.ndim - 1)
        return lax.slice(first, (*p["start_indices"], 0), (*p["limit_indices"], size), (*strides, 1))
    if name == "dynamic_slice" and not any(batched for _, batched in args[1:]):
        return lax.dynamic_slice(first, (*(x for x, _ in args[1:]), 0), (*p["slice_sizes"], size))
    if name == "dynamic_update_slice" and not any(batched for _, batched in args[2:]):
        return lax.dynamic_update_slice(spread(args[0], size), spread(args[1], size), (*(x for x, _ in args[2:]), 0))
    if name == "gather":
        return gather(eqn, args, size)
    if name.startswith("scatter"):
        return scatter(eqn, args, size)
    axes = [-1 if batched else None for _, batched in args]
    return jax.vmap(lambda *xs: bind(*xs, **p), axes, -1)(*(x for x, _ in args))


def single(eqn: JaxprEqn) -> tuple[int, ...]:
    """Shape of what the operation gives for one member."""
    aval: Any = eqn.outvars[0].aval
    return aval.shape


def aligned(args: list[Member], shape: tuple[int, ...]) -> list[Array]:
    """Operands of one shape: those that all members share, and scalars, are spread."""
    full = []
    for x, batched in args:
        own = tuple(range(jnp.ndim(x) - batched))
        full.append(lax.broadcast_in_dim(x, shape, (*own, len(shape) - 1) if batched else own))
    return full


def gather(eqn: JaxprEqn, args: list[Member], size: int) -> Array:
    """Shared indices take whole rows of members; else each member looks up its own, in place."""
    (x, own), (index, differs) = args
    p, d = dict(eqn.params), eqn.params["dimension_numbers"]
    if not differs:
        p["dimension_numbers"] = d._replace(offset_dims=(*d.offset_dims, len(single(eqn))))
        p["slice_sizes"] = (*p["slice_sizes"], size)
        return eqn.primitive.bind(x, index, **p)
    index = jnp.moveaxis(index, -1, -2)
    if own:
        p["dimension_numbers"] = d._replace(
            operand_batching_dims=(*d.operand_batching_dims, x.ndim - 1),
            start_indices_batching_dims=(*d.start_indices_batching_dims, index.ndim - 2),
        )
        p["slice_sizes"] = (*p["slice_sizes"], 1)
    return eqn.primitive.bind(x, index, **p)


def scatter(eqn: JaxprEqn, args: list[Member], size: int) -> Array:
    """As gather: whole rows of members, or each at its own place."""
    p, d = dict(eqn.params), eqn.params["dimension_numbers"]
    x, (index, differs), updates = spread(args[0], size), args[1], spread(args[2], size)
    if differs:
        index = jnp.moveaxis(index, -1, -2)
        p["dimension_numbers"] = d._replace(
            operand_batching_dims=(*d.operand_batching_dims, x.ndim - 1),
            scatter_indices_batching_dims=(*d.scatter_indices_batching_dims, index.ndim - 2),
        )
    else:
        p["dimension_numbers"] = d._replace(update_window_dims=(*d.update_window_dims, updates.ndim - 1))
    return eqn.primitive.bind(x, index, updates, **p)


def scan(eqn: JaxprEqn, args: list[Member], size: int) -> list[Member]:
    """A loop. All of its carry is taken to differ between the members, except integers that do not (a counter)."""
    p = eqn.params
    constants, carried = parts_of(eqn)
    body, consts, rest = p["jaxpr"], args[:constants], args[constants:]
    begin, along = rest[:carried], rest[carried:]
    differs = which_differ(body, consts, begin, along, size)

    def one(carry: list[Array], xs: list[Array]) -> tuple[list[Array], list[Array]]:
        now = [*zip(carry, differs, strict=True), *((x, own) for x, (_, own) in zip(xs, along, strict=True))]
        found = run(body, [*consts, *now], size)
        after = [settle(x, own, size) for x, own in zip(found, differs, strict=False)]
        return after, [spread(x, size) for x in found[len(differs) :]]

    start = [settle(x, own, size) for x, own in zip(begin, differs, strict=True)]
    carry, seen = lax.scan(one, start, [x for x, _ in along], length=p["length"], reverse=p["reverse"])
    return [*zip(carry, differs, strict=True), *((x, True) for x in seen)]


def parts_of(scan: JaxprEqn) -> tuple[int, int]:
    """How many constants a loop has, and how many parts its carry. What it reads or writes round by round has one axis
    more outside than inside; parameters that say it have other names from one JAX to the next."""
    body = scan.params["jaxpr"]
    inner = body.jaxpr if isinstance(body, ClosedJaxpr) else body
    pairs = zip([*inner.outvars, *inner.invars], [*scan.outvars, *scan.invars], strict=True)
    same = [jnp.shape(x.aval) == jnp.shape(y.aval) for x, y in pairs]  # pyright: ignore[reportArgumentType]
    carried, along = sum(same[: len(scan.outvars)]), same[len(scan.outvars) :].count(False)
    return len(scan.invars) - carried - along, carried


def settle(member: Member, differs: bool, size: int) -> Array:
    """A value as the carry has it."""
    return spread(member, size) if differs else jnp.asarray(member[0])


def which_differ(
    body: ClosedJaxpr | Jaxpr, consts: Sequence[Member], begin: Sequence[Member], along: Sequence[Member], size: int
) -> list[bool]:
    """Which parts of a loop's carry come to differ between the members: a part starts to when what feeds it does."""
    now = [own for _, own in begin]
    while True:
        found: list[bool] = []

        def trial(now: list[bool] = now, found: list[bool] = found) -> list[Array]:
            carry = [(settle(x, own, size), own) for x, own in zip(begin, now, strict=True)]
            out = run(body, [*consts, *carry, *((x[0], own) for x, own in along)], size)
            found.extend(own for _, own in out)
            return [x for x, _ in out]

        jax.eval_shape(trial)
        more = [a or b for a, b in zip(now, found, strict=False)]
        if more == now:
            return now
        now = more


def cond(eqn: JaxprEqn, args: list[Member], size: int) -> list[Member]:
    """A branch. Where members take different ones, the second is run if any of them takes it, and each has its own."""
    (which, differs), rest = args[0], args[1:]
    branches = [lambda b=b: [spread(x, size) for x in run(b, rest, size)] for b in eqn.params["branches"]]
    if not differs:
        return [(x, True) for x in lax.switch(which, branches)]

    def both() -> list[Array]:
        return [jnp.where(which > 0, yes, no) for yes, no in zip(branches[1](), branches[0](), strict=True)]

    return [(x, True) for x in lax.cond((which > 0).any(), both, branches[0])]
