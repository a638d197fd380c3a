"""Small products read their operands transposed, and are what they are without that."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc


def program(a: Any, b: Any, turned: tuple[bool, bool, bool], bias: bool) -> Any:
    left, right = (m.T if turn else m for m, turn in ((a, turned[0]), (b, turned[1])))
    product = torch.addmm(torch.arange(right.shape[1]).to(a.dtype), left, right) if bias else left @ right
    return product.T if turned[2] else product


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=3)))
def test_every_way_to_turn(turned: tuple[bool, bool, bool], bias: bool):
    torch.manual_seed(0)
    for rows, columns in ((3, 5), (5, 3)):
        a = torch.randn(*((4, rows) if turned[0] else (rows, 4)), dtype=torch.float64)
        b = torch.randn(*((columns, 4) if turned[1] else (4, columns)), dtype=torch.float64)
        graph = graphc.trace(lambda a, b: program(a, b, turned, bias), a, b)
        found = np.asarray(graphc.lower(graph)(a, b))
        np.testing.assert_allclose(found, program(a, b, turned, bias).numpy(), rtol=1e-12)


def source(*shapes: tuple[int, int], dtype: Any = torch.float32) -> str:
    arguments = [torch.zeros(*shape, dtype=dtype) for shape in shapes]
    return graphc.lower(graphc.trace(lambda x, w: x @ w.T, *arguments)).source


def test_other_dtypes_are_left_as_they_are():
    assert "lax.dot_general(x, w, (((1,), (1,))" in source((8, 16), (4, 16))
    for dtype in (torch.float16, torch.int32):
        assert "dot_general" not in source((8, 16), (4, 16), dtype=dtype)


EQUATIONS = ["ab,b->a", "ab,a->b", "a,ab->b", "a,ba->b", "a,a->", *[
    f"{left},{right}->{out}" for left in ("ab", "ba") for right in ("ac", "ca") for out in ("bc", "cb")
]]  # fmt: skip


@pytest.mark.parametrize("sizes", [(9, 7, 3), (9, 3, 7), (1, 2, 3)])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsums_of_matrices_and_vectors(equation: str, sizes: tuple[int, ...]):
    rng = np.random.default_rng(0)
    size = dict(zip("abc", sizes, strict=True))
    terms = equation.partition("->")[0].split(",")
    arrays = [rng.standard_normal([size[k] for k in term]) for term in terms]
    x, y = map(torch.from_numpy, arrays)
    graph = graphc.trace(lambda x, y: torch.einsum(equation, x, y), x, y)
    expected = np.einsum(equation, *arrays)
    np.testing.assert_allclose(np.asarray(graphc.lower(graph)(x, y)), expected, rtol=1e-12)
    np.testing.assert_allclose(graph(*arrays), expected, rtol=1e-12)


def test_a_narrow_product_is_computed_transposed_and_vectors_need_no_copy():
    x, g = torch.zeros(32, 100), torch.zeros(32, 10)
    assert "optimization_barrier(lax.dot_general(g, x," in graphc.lower(graphc.trace(lambda x, g: x.T @ g, x, g)).source
    assert "lax.dot_general(x, v, (((0,), (0,))" in graphc.lower(graphc.trace(lambda x, v: x.T @ v, x, g[:, 0])).source


def test_products_of_small_matrices_are_computed_as_they_are_written():
    x, w = torch.zeros(32, 64), torch.zeros(128, 64)
    assert "barrier" not in graphc.lower(graphc.trace(lambda x, w: x @ w.T, x, w)).source
    w = torch.zeros(1024, 64)
    assert "barrier(lax.dot_general(w, x," in graphc.lower(graphc.trace(lambda x, w: x @ w.T, x, w)).source


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("matrices", ["abc", "cba"])
@pytest.mark.parametrize("vectors", ["bc", "cb"])
def test_matrices_between_each_other_times_a_vector_each_are_one_loop(matrices: str, vectors: str, turned: bool):
    equation, size = f"{vectors},{matrices}->{'ba' if turned else 'ab'}", {"a": 256, "b": 4, "c": 80}
    x, y = (torch.randn(*[size[k] for k in term], dtype=torch.float64) for term in (vectors, matrices))
    program = graphc.lower(graphc.trace(lambda x, y: torch.einsum(equation, x, y), x, y))
    assert "lax.reduce_sum(lax.mul(y, " in program.source
    np.testing.assert_allclose(
        np.asarray(program(x, y)), np.einsum(equation, x.numpy(), y.numpy()), rtol=1e-9, atol=1e-9
    )


def test_the_operand_whose_dimensions_come_last_is_the_right_one():
    x, w = torch.randn(2, 3, 4, 5), torch.randn(6, 3)
    written = {
        equation: graphc.lower(graphc.trace(lambda x, w, e=equation: torch.einsum(e, x, w), x, w))
        for equation in ("bchw,oc->bohw", "bchw,oc->bhwo")
    }
    swapped, plain = written.values()
    assert "jnp.einsum('oc,bchw->bohw', w, x)" in swapped.source
    assert "oc,bchw" not in plain.source
    for equation, program in written.items():
        np.testing.assert_allclose(
            np.asarray(program(x, w)), torch.einsum(equation, x, w).numpy(), rtol=1e-5, atol=1e-6
        )
