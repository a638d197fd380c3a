"""Like terms: collected where that takes fewer operations, with no product that the program does not have."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.ir.check import check
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.monomials import collect_terms
from graphc.rewrite.cost import node_cost


def traced(f: Callable[..., Any], *tensors: torch.Tensor) -> Graph:
    return eliminate_common_subexpressions(graphc.trace(f, *tensors))


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op.name for node in graph.operations() if node.inputs)


def cost(graph: Graph) -> float:
    return sum(node_cost(node, graph.nodes) for node in graph.nodes.values())


def drawn(*counts: int) -> list[torch.Tensor]:
    rng = np.random.default_rng(0)
    return [torch.from_numpy(rng.uniform(0.5, 2.0, n)) for n in counts]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x, y: x * x * x + 2 * x * x, {"add": 1, "square": 1, "mul": 1}),
        (lambda x, y: 3 * x - y + 2 * x, {"mul": 1, "sub": 1}),
        (lambda x, y: x * y.sin() + x * y.cos(), {"sin": 1, "cos": 1, "add": 1, "mul": 1}),
        (lambda x, y: (x * y * y, x * (y * y)), {"mul": 2}),
        (lambda x, y: 2 * x + 2 * x, {"mul": 1}),
        (lambda x, y: ((x * y).square(), (y * y) * (x * x)), {"mul": 1, "square": 1}),
        (lambda x, y: 2 * (x * y) + 2 * (y * x), {"mul": 2}),
        (lambda x, y: 2 * (x * y) * x * y, {"mul": 2, "square": 1}),
        (lambda x, y: (x * y).sin() * -(-0.5 * (3 * y)), {"mul": 3, "sin": 1}),
    ],
)
def test_like_terms_are_one(f: Callable[..., Any], expected: dict[str, int]):
    tensors = drawn(5, 5)
    before = traced(f, *tensors)
    after = collect_terms(before)
    check(after)
    assert ops(after) == expected
    given = [t.numpy() for t in tensors]
    np.testing.assert_allclose(after(*given), before(*given), rtol=1e-14)
    assert collect_terms(eliminate_common_subexpressions(after)) is not None


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x - x,  # nan where x is inf
        lambda x: 0 * x + x,
        lambda x: x * 1e200 * 1e200 * 0.5 + x,  # the numbers alone overflow
        lambda x: (x + 1) * (x - 1),  # multiplied out, it cancels digits
        lambda x: x / x,
        lambda x: x.exp() + x.sin() * 3,
    ],
)
def test_these_stay_as_they_are(f: Callable[..., Any]):
    (x,) = drawn(5)
    before = traced(f, x)
    assert ops(collect_terms(before)) == ops(before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32, torch.complex64])
def test_other_dtypes_are_left_alone(dtype: torch.dtype):
    before = traced(lambda x: x * x * x + 2 * x * x, torch.ones(3).to(dtype))
    assert collect_terms(before) is before


def test_one_part_is_rewritten_beside_another_that_is_not():
    """A part that costs as much as before stays, whatever else reads the same values."""

    def f(x, y):
        shared = x * y
        return shared * y + y.sin(), (shared + x).exp() * 3 + (shared + x).exp() * 4

    before = traced(f, *drawn(5, 5))
    assert ops(collect_terms(before)) == Counter(mul=3, add=2, sin=1, exp=1)


def test_values_times_numbers_are_not_written_to_see_what_they_cost(monkeypatch: pytest.MonkeyPatch):
    """As an optimizer's step has for each parameter: averages of gradients, and of their squares."""
    before = traced(lambda m, v: (0.9 * m + 0.1 * v, 0.99 * m + 0.01 * (v * v), -m, 0.5 * (v * v)), *drawn(3, 3))
    monkeypatch.setattr("graphc.passes.monomials._Writer", None)
    assert collect_terms(before) is before


def test_no_product_overflows_that_was_not_there():
    def f(g, x):
        return g * x * x + 3 * (x * g * x)

    g, x = np.float32([1e-30]), np.float32([1e25])
    before = traced(f, torch.from_numpy(g), torch.from_numpy(x))
    after = collect_terms(before)
    assert cost(after) < cost(before)
    np.testing.assert_allclose(after(g, x), 4e20, rtol=1e-6)


def test_strict_programs_keep_their_products():
    before = graphc.trace(lambda x, y: (x * y * y, x * (y * y)), *drawn(3, 3))
    assert ops(graphc.optimize(before, strict=True)) == {"mul": 3, "square": 1}
    assert ops(graphc.optimize(before)) == {"mul": 2}


def test_numbers_that_give_the_shape_stay():
    before = traced(lambda x: torch.full((3,), 2.0, dtype=torch.float64) * x + 3 * x, *drawn(1))
    x = np.float64([1.5])
    after = collect_terms(before)
    np.testing.assert_array_equal(after(x), before(x))


@pytest.mark.parametrize("seed", range(30))
def test_random_polynomials(seed: int):
    choose = random.Random(seed)

    def f(x, y, z):
        values = [x, y, z, x * y, x + z]
        for _ in range(14):
            a, b = choose.choice(values), choose.choice(values)
            values.append(
                choose.choice([lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a - 0.3 * b, lambda a, b: -a])(a, b)
            )
            if choose.random() < 0.2:
                values.append(values[-1].sin())
        return sum(values[-4:]).sum()

    tensors = drawn(4, 4, 1)
    before = graphc.gradients(traced(f, *tensors)) if seed % 2 else traced(f, *tensors)
    after = collect_terms(before)
    check(after)
    assert cost(after) <= cost(before)
    given = [t.numpy() for t in tensors]
    with np.errstate(all="ignore"):
        for id, expected in zip(after.outputs, [before.evaluate(*given)[id] for id in before.outputs], strict=True):
            scale = np.abs(expected).max() + 1
            np.testing.assert_allclose(after.evaluate(*given)[id] / scale, expected / scale, rtol=1e-9, atol=1e-9)
