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
