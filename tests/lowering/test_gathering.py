"""Gathers along an axis that is not the first: the same, in the order in which XLA computes them."""

import itertools

import numpy as np
import pytest

import eager as torch
import graphc

SPECS = [(None, 0), (None, 0, 1), (None, None, 0), (None, 0, None, 1), (0, None, 1)]


@pytest.mark.parametrize(("spec", "rank"), list(itertools.product(SPECS, (1, 2))))
def test_values(spec: tuple[int | None, ...], rank: int):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((3, 4, 5, 6)))
    indices = [torch.from_numpy(rng.integers(-3, 3, (2, 7)[-rank:])) for s in spec if s is not None]
    f = lambda x, *i: x[tuple(slice(None) if s is None else i[s] for s in spec)]
    program = graphc.lower(graphc.trace(f, x, *indices))
    np.testing.assert_array_equal(np.asarray(program(x, *indices)), f(x, *indices).numpy())


def test_the_result_needs_no_copy():
    x, i = torch.randn(40, 50), torch.randperm(50)
    program = graphc.lower(graphc.trace(lambda x, i: x[:, i], x, i))
    assert program.fails  # it has two results: there XLA would copy
    assert "f32[40,50]{0,1}" not in program.hlo
