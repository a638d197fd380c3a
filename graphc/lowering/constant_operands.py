"""Ops of which an operand holds one number, where a cheaper form than that of the kernel is known for it.

`jax.numpy` does so for numbers of Python only: in a graph they are constants, arrays like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.ir.graph import Node
from graphc.ops import powers
from graphc.ops.aval import Aval

Writer = Callable[[Node, Sequence[str], Sequence[Aval], Sequence[Any]], str | None]


def _power(node: Node, names: Sequence[str], avals: Sequence[Aval], numbers: Sequence[Any]) -> str | None:
    if numbers[1] is None or avals[0] != node.type or node.dtype.kind == "c":
        return None
    x, n = names[0], powers.whole(numbers[1])
    if n is None:
        half = powers.halves(numbers[1]) if node.dtype.kind == "f" else None
        return None if half is None else _product_and_root(x, half)
    if n < 0 and node.dtype.kind != "f":
        return None
    if not n:
        return f"lax.full_like({x}, 1)"
    return f"lax.integer_pow({x}, {n})" if n > 0 else f"lax.integer_pow(1 / {x}, {-n})"


def _product_and_root(x: str, half: int) -> str:
    """x ** (half / 2), as `powers.product_and_root` has it."""
    factor = f"(1 / lax.abs({x}))" if half < 0 else f"lax.abs({x})"
    value = f"lax.integer_pow({factor}, {abs(half) // 2}) * lax.sqrt({factor})"
    return f"(lambda r: jnp.where({x} < 0, jnp.where({x} == -jnp.inf, r, jnp.nan), r))({value})"


WRITERS: dict[str, Writer] = {"pow": _power}


def of_numbers(node: Node, names: Sequence[str], avals: Sequence[Aval], numbers: Sequence[Any]) -> str | None:
    """Python source for the value of `node`, or None if there is nothing better than its kernel.

    names    its operands, in source
    avals    their types, in the graph: 16-bit floats may be float32 in the source
    numbers  the number that an operand holds in every place, or None, for each
    """
    write = WRITERS.get(node.op.name)
    return None if write is None else write(node, names, avals, numbers)
