"""Long sums: pads become concatenations, sums of products one product; nothing else is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Builder, Graph, Ref
from graphc.ir.check import check
from graphc.ops.aval import Aval
from graphc.passes.sums import shorten_sums


def gradient(f: Callable[..., Any], *tensors: torch.Tensor) -> Graph:
    return graphc.gradients(graphc.trace(f, *tensors))


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op.name for node in graph.operations())


def same_values(before: Graph, after: Graph, *arrays: np.ndarray) -> None:
    check(after)
    for a, b in zip(graphc.lower(before)(*arrays).values(), graphc.lower(after)(*arrays).values(), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-5)


def test_gradients_of_chunks_are_laid_side_by_side():
    x = torch.randn(4, 8)

    def f(x):
        a, b, c, d = x.chunk(4, 1)
        return (a * b + c.sin() * d).sum()

    before = gradient(f, x)
    after = shorten_sums(before)
    assert ops(before)["pad_zeros"] == 4
    assert ops(after)["pad_zeros"] == 0
    assert ops(after)["cat"] == 1
    same_values(before, after, x.numpy())


def test_products_of_gates_stay_products_of_all_of_them():
    """The gradients of gates that one product has made are laid side by side for one product again, and are not made
    +0 for it: a sum begins with that."""
    x, h = torch.randn(64, 8), torch.randn(64, 16)
    w, u, p, q = (torch.randn(48, n) if n > 1 else torch.randn(48) for n in (8, 16, 1, 1))

    def cell(x, h, w, u, p, q):
        (ar, az, an), (br, bz, bn) = ((y @ m.T + b).chunk(3, 1) for y, m, b in ((x, w, p), (h, u, q)))
        z = torch.sigmoid(az + bz)
        return ((1 - z) * torch.tanh(an + torch.sigmoid(ar + br) * bn) + z * h).square().sum()

    graph = graphc.gradients(graphc.trace(cell, x, h, w, u, p, q), wrt=("h", "w", "u", "p", "q"))
    optimized = graphc.optimize(graph)
    products = [node for node in optimized.operations() if node.op.flops is not None]
    assert len(products) == 5
    assert ops(optimized)["cat"] == 2
    same_values(graph, optimized, *[t.numpy() for t in (x, h, w, u, p, q)])


def test_slices_that_are_read_twice_are_an_array_for_each_reading():
    x = torch.randn(5, 3)
    before = gradient(lambda x: sum((x[t].sin() * x[t].exp()).sum() for t in range(5)), x)
    after = shorten_sums(before)
    assert (ops(before)["pad_zeros"], ops(after)["pad_zeros"], ops(after)["cat"]) == (10, 0, 2)
    same_values(before, after, x.numpy())


def test_a_run_of_pieces_that_leaves_a_rest_is_padded_once():
    x = torch.randn(10)
    before = gradient(lambda x: (x[2:5].sin() + x[5:8].exp()).sum(), x)
    after = shorten_sums(before)
    assert (ops(after)["pad_zeros"], ops(after)["cat"]) == (1, 1)
    same_values(before, after, x.numpy())


def test_pieces_that_overlap_or_leave_a_gap_stay():
    x = torch.randn(10)
    for f in (lambda x: (x[0:5].sin() + x[4:9].exp()).sum(), lambda x: (x[0:3].sin() + x[5:8].exp()).sum()):
        before = gradient(f, x)
        assert shorten_sums(before) is before


def padded_twice() -> Graph:
    """pad(x) + pad(x) + pad(y), the first two the same node."""
    builder = Builder()
    F = builder.language
    x, y = (builder.input(name, Aval((2,), np.dtype("float32"))) for name in "xy")
    first = F.pad_zeros(x, low=(0,), high=(2,), interior=(0,))
    second = F.pad_zeros(y, low=(2,), high=(0,), interior=(0,))
    total = first + first + second
    return Graph("padded_twice", builder.nodes, (x.id, y.id), {"out": Ref(total.id)})


def test_a_term_that_occurs_twice_counts_twice():
    before = padded_twice()
    same_values(before, shorten_sums(before), np.ones(2, np.float32), np.ones(2, np.float32))


@pytest.mark.parametrize(("steps", "products"), [(3, 3), (6, 1)])
def test_products_over_the_steps_of_a_loop_become_one_when_there_are_enough(steps, products):
    w = torch.randn(64, 48) / 8
    inputs = [torch.randn(8, 64) for _ in range(steps)]

    def f(w):
        return sum((x @ w).tanh().sum() for x in inputs)

    before = gradient(f, w)
    after = shorten_sums(before)
    assert ops(after)["matmul"] - 2 * steps == products  # forward, and the gradients of the inputs
    given = [w.numpy(), *(x.numpy() for x in inputs)]
    same_values(before, after, *given)


def test_large_products_stay():
    w = torch.randn(8, 8)
    inputs = [torch.randn(300, 8) for _ in range(6)]
    before = gradient(lambda w: sum((x @ w).tanh().sum() for x in inputs), w)
    assert shorten_sums(before) is before


def test_strict_programs_keep_the_order_of_sums():
    before = gradient(lambda x: (x[:2] * x[2:].exp()).sum(), torch.randn(4))
    assert ops(graphc.optimize(before, strict=True))["pad_zeros"] == 2
