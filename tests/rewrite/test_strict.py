"""With `strict=True` random programs and their gradients give on NumPy, bit for bit, what they give without a pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from compare.cases.case import Case
from compare.fuzzing.generator import generate
from compare.judging.numeric import evaluate
from graphc.ir import Graph, Node
from graphc.ir.structure import WHILE, every_node
from graphc.ops.dtypes import is_floating
from graphc.passes import optimize, pipeline
from graphc.rewrite import EXACT, RewriteRule
from graphc.rewrite.licences import SPECIAL, same_bits


def differences(seeds: Iterable[int], size: int = 12) -> Iterator[str]:
    """What differs, a text for each program that does."""
    for seed in seeds:
        program = generate(seed, size)
        case = Case(program.function, tuple(program.arguments()), {}, seed)
        if case.program is None:  # the trace has refused it, with a reason: it cannot be optimized
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            graph = case.joint.graph
            after = optimize(graph, strict=True)
            special = [_special(a, seed) for a in case.operands]
            # loops, and LAPACK's, may not end with nan
            for operands in (case.operands, special) if _takes_all(graph) else (case.operands,):
                if text := _difference(graph, after, operands):
                    yield f"seed {seed}: {text}\n{graph}\n{after}"
                    break


class _InOrder:
    """Lays all operands out in order: NumPy adds up an array in the order in which it lies in memory, and of equal
    values one may lie as it was transposed."""

    def operands(self, node: Node, operands: list[Any]) -> list[Any]:
        return [a if isinstance(a, tuple) else np.asarray(a, order="C") for a in operands]

    def result(self, node: Node, value: Any, operands: list[Any]) -> Any:
        return value

    def inside(self, node: Node, k: int) -> _InOrder:
        return self


IN_ORDER: Any = _InOrder()


def _difference(before: Graph, after: Graph, operands: Sequence[np.ndarray]) -> str:
    try:
        values = evaluate(before, operands, rounding=IN_ORDER, checked=False)
    except (ArithmeticError, IndexError, ValueError):  # special numbers may make an index, or a size
        return ""
    others = evaluate(after, operands, rounding=IN_ORDER, checked=False)
    for old, new in zip(before.outputs, after.outputs, strict=True):
        a, b = values[old], others[new]
        if a.dtype != b.dtype or a.shape != b.shape or not _same(a, b).all():
            return f"{after.nodes[new].op.name}, {a} != {b}"
    return ""


def _takes_all(graph: Graph) -> bool:
    """Whether each operation takes any numbers, and ends."""
    ops = {node.op for node in every_node(graph)}
    return WHILE not in ops and all(op.nearest is None and op.rounding.operand is None for op in ops)


def _special(array: np.ndarray, seed: int) -> np.ndarray:
    """Some elements are zeros of either sign, infinite, nan, or huge. Integers stay: they may be indices."""
    rng = np.random.default_rng(seed)
    if not is_floating(array.dtype):
        return array
    return np.where(rng.random(array.shape) < 0.3, rng.choice(np.array(SPECIAL, array.dtype), array.shape), array)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) & same_bits(a.imag, b.imag)
    return same_bits(a, b)


def test_strict_programs_are_equal_bit_for_bit() -> None:
    assert [*differences(range(40))] == []


@pytest.mark.deep
def test_ten_thousand_strict_programs_are_equal_bit_for_bit() -> None:
    assert [*differences(range(40, 10_000))] == []


@pytest.mark.parametrize("f", [
    lambda x: torch.softmax(x, -1) ** 3,
    lambda x: torch.log_softmax(x, 0),
    lambda x: torch.nn.functional.normalize(x) * x.logsumexp(1, keepdim=True),
    lambda x: torch.softmax(x, 0).median(1, keepdim=True).values + x.std(),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ops_with_kernels_of_their_own_are_equal_bit_for_bit(f: Any, dtype: Any) -> None:
    x = torch.linspace(-3, 5, 29 * 37).reshape(29, 37).sin().to(dtype).requires_grad_()
    graph = graphc.gradients(graphc.trace(lambda x: (f(x) * x).sum(), x))
    assert _difference(graph, optimize(graph, strict=True), [x.detach().numpy()]) == ""


def test_a_rule_that_is_not_exact_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = RewriteRule("wrong", EXACT, lambda F, x, y: x / y, lambda F, x, y: x * F.reciprocal(y))
    monkeypatch.setattr(pipeline, "ALL", (wrong, *pipeline.ALL))
    assert next(differences(range(120)), "")
