"""Matching a pattern against the node of a graph under construction."""

from __future__ import annotations

import math
from typing import Any

from graphc.ir import Builder
from graphc.rewrite.rule import Pattern, Var, held_number

Bindings = dict[str, Any]


def match(pattern: Pattern, builder: Builder, id: int, bound: Bindings) -> list[int] | None:
    """Bind the variables of `pattern` so that it equals node `id`.

    Returns the ids of the operations it covers, root first, or None; on None, `bound` is left as it was. The
    operands of a commutative op are tried in both orders.
    """
    node = builder.nodes[id]
    if node.op is not pattern.op or len(node.inputs) != len(pattern.operands):
        return None
    orders = [node.inputs]
    if node.op.commutative and node.inputs[0] != node.inputs[1]:
        orders.append(node.inputs[::-1])
    for inputs in orders:
        attempt = dict(bound)
        covered = _match_parts(pattern, builder, node.params, inputs, attempt)
        if covered is not None:
            bound.update(attempt)
            return [id, *covered]
    return None


def _match_parts(
    pattern: Pattern, builder: Builder, params: Any, inputs: tuple[int, ...], bound: Bindings
) -> list[int] | None:
    for name, wanted in pattern.params.items():
        value = params[name]
        if isinstance(wanted, Var):
            if wanted.name in bound and not _same(bound[wanted.name], value):
                return None
            bound[wanted.name] = value
        elif not _same(wanted, value):
            return None
    covered: list[int] = []
    for place, part in pattern.steps:
        operand = inputs[place]
        if isinstance(part, Var):
            known = bound.get(part.name)
            if known is None:
                if part.number and held_number(operand, builder.nodes) is None:
                    return None
                bound[part.name] = builder.symbol(operand)
            elif known.id != operand:
                return None
        elif isinstance(part, Pattern):
            inner = match(part, builder, operand, bound)
            if inner is None:
                return None
            covered += inner
        elif not _is_number(held_number(operand, builder.nodes), part):
            return None
    return covered


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def _is_number(value: Any, number: float) -> bool:
    """Whether `value` is `number`; 0.0 and -0.0 are different numbers."""
    if value is None or isinstance(value, (bool, complex)):
        return False
    return value == number and math.copysign(1, value) == math.copysign(1, number)
