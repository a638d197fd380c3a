"""Graphs of linear algebra evaluated modulo a prime: division and inverses are exact there."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from graphc.ir import Graph, Node
from graphc.ops import OPS, Trait
from graphc.ops.interpret import run_kernel
from tests.normal.expressions import PRIME, value

_INV, _SOLVE, _DIV, _RECIPROCAL = (OPS[name] for name in ("inv", "solve", "div", "reciprocal"))
SPLIT = 4096.0


def residues(graph: Graph, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results for inputs that are whole numbers below PRIME. Raises ValueError for a singular matrix."""
    values: dict[int, np.ndarray] = dict(zip(graph.inputs, given, strict=True))
    for node in graph.operations():
        values[node.id] = np.mod(_computed(node, [values[i] for i in node.inputs]), PRIME)
    return [values[id] for id in graph.outputs]


def _computed(node: Node, operands: list[np.ndarray]) -> Any:
    if node.op is _INV:
        return value("inv", operands, ())
    if node.op is _SOLVE:
        return value("solve", operands, ())
    if node.op is _DIV:
        return operands[0] * _reciprocal(operands[1])
    if node.op is _RECIPROCAL:
        return _reciprocal(operands[0])
    if len(operands) == 2 and node.op.traits & Trait.CONTRACTS:  # else more than 128 products add up to over 2^53
        high, low = (run_kernel(node.op, [part, operands[1]], node.params) for part in np.divmod(operands[0], SPLIT))
        return np.mod(high, PRIME) * SPLIT + low
    found = np.asarray(run_kernel(node.op, operands, node.params), float)
    if node.inputs:
        assert (found == np.rint(found)).all(), f"{node.op.name} leaves the whole numbers"
        return found
    return np.vectorize(_residue, otypes=[float])(found) if found.size else found


def _residue(number: float) -> int:
    exact = Fraction(number).limit_denominator(10**6)
    return exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME


def _reciprocal(array: np.ndarray) -> np.ndarray:
    if not array.all():
        raise ValueError("division by zero")
    return np.vectorize(lambda n: pow(int(n), -1, PRIME), otypes=[float])(array)
