"""Structured operations under JAX. Bodies are Python functions with flat arguments and a flat tuple of results.

If some check inside a body can fail (`checked`), each body returns one result more: the number of the first check that
failed, or -1. The operation returns one more, too; a loop ends where a check has failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

Function = Callable[..., tuple[Any, ...]]
FINE = np.int32(-1)


def first(*failures: Any) -> Any:
    """The first of these failure numbers that is one."""
    found = FINE
    for failure in reversed(failures):
        found = jnp.where(failure < 0, found, failure)
    return found


def switch(index: Any, *operands: Any, branches: tuple[Function, ...], checked: bool = False) -> tuple[Any, ...]:
    return lax.switch(index, branches, *operands)


def while_loop(
    *operands: Any, condition: Function, body: Function, consts: int, checked: bool = False
) -> tuple[Any, ...]:
    fixed, carry = operands[:consts], operands[consts:]
    if not checked:
        return lax.while_loop(lambda c: condition(*fixed, *c)[0], lambda c: tuple(body(*fixed, *c)), carry)

    def judged(carry: Any, failure: Any) -> tuple[Any, ...]:
        going, own = condition(*fixed, *carry)
        failure = first(failure, own)
        return (*carry, going & (failure < 0), failure)

    def step(state: Any) -> tuple[Any, ...]:
        *carry, failure = body(*fixed, *state[:-2])
        return judged(carry, failure)

    *carry, _, failure = lax.while_loop(lambda state: state[-2], step, judged(carry, FINE))
    return (*carry, failure)


def scan(
    *operands: Any, body: Function, consts: int, carries: int, length: int, reverse: bool, unroll: int,
    checked: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    fixed, carry, xs = operands[:consts], operands[consts : consts + carries], operands[consts + carries :]

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        results = tuple(body(*fixed, *state[:carries], *x))
        if not checked:
            return results[:carries], results[carries:]
        *results, failure = results
        return (*results[:carries], first(state[-1], failure)), tuple(results[carries:])

    start = (*carry, jnp.asarray(FINE)) if checked else carry
    end, ys = lax.scan(step, start, xs, length, reverse=reverse, unroll=unroll)
    return (*end[:carries], *ys, end[-1]) if checked else (*end, *ys)


def custom_vjp(*operands: Any, results: int, checked: bool = False, **rule: Any) -> tuple[Any, ...]:
    return (*operands[:results], FINE) if checked else operands[:results]


def row(x: Any, index: Any) -> Any:
    return lax.dynamic_index_in_dim(x, jnp.clip(index, 0, x.shape[0] - 1), keepdims=False)


def with_row(x: Any, row: Any, index: Any) -> Any:
    return lax.dynamic_update_index_in_dim(x, row, jnp.clip(index, 0, x.shape[0] - 1), 0)


OVERRIDES: dict[str, Callable[..., Any]] = {
    "switch": switch, "while_loop": while_loop, "scan": scan, "row": row, "with_row": with_row,
    "custom_vjp": custom_vjp,
    "item": lambda bundle, index: bundle[index],
}  # fmt: skip
