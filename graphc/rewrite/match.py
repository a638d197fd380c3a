"""Matching a pattern against the node of a graph under construction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graphc.ir import Builder
from graphc.rewrite.rule import Pattern, RewriteRule, Var, held_number

Bindings = dict[str, Any]


def applies(rule: RewriteRule, builder: Builder, id: int) -> tuple[list[int], list[Any]] | None:
    """(the operations that the left side of `rule` covers at node `id`, root first; the values of its variables)."""
    bound: Bindings = {}
    covered = match(rule.left, builder, id, bound)
    if covered is None:
        return None
    values = [bound[v] for v in rule.variables]
    return (covered, values) if rule.when is None or rule.when(*values) else None


def match(pattern: Pattern, builder: Builder, id: int, bound: Bindings) -> list[int] | None:
    """Bind the variables of `pattern` so that it equals node `id`.

    Returns the ids of the operations it covers, root first, or None; on None, `bound` is of no more use. The operands
    of a commutative op are tried in both orders.
    """
    node = builder.nodes[id]
    inputs = node.inputs
    if node.op is not pattern.op or len(inputs) != len(pattern.operands):
        return None
    if pattern.params and not _bind_params(pattern.params, node.params, bound):
        return None
    if node.op.commutative and inputs[0] != inputs[1]:
        attempt = dict(bound)
        covered = _match_operands(pattern, builder, inputs, attempt)
        if covered is not None:
            bound.update(attempt)
            return [id, *covered]
        inputs = inputs[::-1]
    covered = _match_operands(pattern, builder, inputs, bound)
    return None if covered is None else [id, *covered]


def _bind_params(wanted: Mapping[str, Any], params: Mapping[str, Any], bound: Bindings) -> bool:
    for name, part in wanted.items():
        value = params[name]
        if not isinstance(part, Var):
            if not _same(part, value):
                return False
        elif part.name not in bound:
            bound[part.name] = value
        elif not _same(bound[part.name], value):
            return False
    return True


def _match_operands(pattern: Pattern, builder: Builder, inputs: tuple[int, ...], bound: Bindings) -> list[int] | None:
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
