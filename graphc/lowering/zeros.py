"""Sums with +0, whose zeros are +0: XLA takes the other term in their place, which may be -0.

It does so also without its simplifier. A comparison and a choice, which are fused with whatever is around, put the sign
right; they are written only where XLA sees such a sum: one operand is +0 in every place, or a sum has a single term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.ir.graph import INPUT, Graph, Node
from graphc.ir.structure import SWITCH
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.interpret import run_kernel
from graphc.rewrite.rule import held_number

Held = Mapping[int, Any]  # id -> the number that a node holds in every place
_CONSTANT = OPS["constant"]
LARGEST = 1 << 20  # elements; what is computed from constants to more is not looked at


@jax.custom_jvp
def unsigned(x: Any) -> Any:
    """`x`, with 0 for -0."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return lax.complex(unsigned(x.real), unsigned(x.imag))
    return jnp.where(x == 0, 0, x)


@unsigned.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return unsigned(*primals), *tangents


def held_numbers(graph: Graph, inputs: Sequence[Any] = ()) -> dict[int, Any]:
    """The nodes that hold one number in every place, whatever the graph is given: with that number.

    inputs  what is known of the graph's inputs: a number or None for each
    """
    found = {id: value for id, value in zip(graph.inputs, inputs, strict=False) if value is not None}
    for id, node in graph.nodes.items():
        if node.op is INPUT or node.op.several:
            continue
        value = _uniform(node.params["value"].array) if node.op is _CONSTANT else held_number(id, graph.nodes)
        if value is None and node.inputs and all(i in found for i in node.inputs):
            value = _computed(node, [graph.nodes[i].type for i in node.inputs], [found[i] for i in node.inputs])
        if value is not None:
            found[id] = value
    return found


def _computed(node: Node, avals: Sequence[Aval], numbers: Sequence[Any]) -> Any:
    """The number that a node of constants holds, if it is one."""
    if node.op.view and node.aval.dtype == avals[0].dtype and not node.op.pointwise:
        return numbers[0]
    if node.op.impure or node.op.structured or max(node.aval.size, *(a.size for a in avals)) > LARGEST:
        return None
    arrays = [np.full(() if node.op.pointwise else a.shape, n, a.dtype) for a, n in zip(avals, numbers, strict=True)]
    try:
        value = run_kernel(node.op, arrays, node.params)
    except Exception:  # what the kernel refuses, it refuses when the program runs
        return None
    return _uniform(value)


def _uniform(array: np.ndarray) -> Any:
    """The number that `array` has in every place, by bits, or None."""
    flat = array.reshape(-1)
    if not flat.size or (flat[0] != flat[-1]) or not (flat == flat[0]).all():
        return None
    return flat[0].item() if array.tobytes() == flat[0].tobytes() * flat.size else None


def _is_zero(number: Any, sign: float) -> bool:
    """Whether `number`, or a part of it, is zero of that sign, and the rest zero."""
    if number is None or number != 0:
        return False
    parts = (number.real, number.imag) if isinstance(number, complex) else (float(number),)
    return any(math.copysign(1, part) == sign for part in parts)


def loses_zero(node: Node, avals: Sequence[Any], numbers: Sequence[Any]) -> bool:
    """Whether XLA drops the +0 that the sums of `node` begin with."""
    if node.op.several:
        return False
    return node.op.has_lone_terms(
        list(avals), node.aval, node.params, lambda k, sign: _is_zero(numbers[k], sign)
    )  # fmt: skip


def inside(node: Node, held: Held) -> list[Any]:
    """What is known of the inputs of the graphs that `node` runs: the numbers of what is the same in each step."""
    numbers = [held.get(i) for i in node.inputs]
    if node.op is SWITCH:
        return numbers[1:]
    first, count = _carried(node)
    return [None if first <= k < first + count else number for k, number in enumerate(numbers)]


def starts(node: Node, held: Held) -> set[int]:
    """Places of the operands that a loop starts from, and that are +0: of a loop of one step XLA leaves the body."""
    if not node.op.structured or "consts" not in node.params:
        return set()
    first, count = _carried(node)
    return {k for k in range(first, first + count) if _is_zero(held.get(node.inputs[k]), 1)}


def _carried(node: Node) -> tuple[int, int]:
    consts = node.params.get("consts", 0)
    return consts, node.params.get("carries", len(node.inputs) - consts)
