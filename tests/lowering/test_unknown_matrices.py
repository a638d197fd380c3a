"""Of matrices with nan, or infinities, both modes make the same: nan, or an error that names the matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc

SIZES = [3, pytest.param(70, marks=pytest.mark.deep)]  # one by itself, and one whose factors are shared
REFUSING: dict[str, Callable[..., Any]] = {
    "eigh": torch.linalg.eigh, "svd": torch.linalg.svd, "eig": torch.linalg.eig, "cholesky": torch.linalg.cholesky,
    "pinv": torch.linalg.pinv,
}  # fmt: skip


def made_of(a: Any) -> tuple[Any, ...]:
    """What has no number made of a matrix with nan."""
    first = a[..., :1]
    in_a_loop = graphc.scan(lambda c, x: (c, torch.linalg.det(x)), torch.zeros(()), a)[1]
    return (
        torch.linalg.solve(a, first), torch.linalg.solve(a.mT, first), torch.linalg.inv(a), torch.linalg.det(a),
        *torch.linalg.slogdet(a), torch.linalg.lu_factor(a)[0], torch.linalg.matrix_exp(a / 9), in_a_loop,
    )  # fmt: skip


def with_one(value: float, size: int) -> Any:
    """Symmetric matrices that are positive definite, but for the second, which has `value` in the middle."""
    x = np.random.default_rng(0).normal(size=(3, size, size)).astype(np.float32)
    x = x @ x.swapaxes(-1, -2) / size + np.eye(size, dtype=np.float32)
    x[1, size // 2, size // 2] = value
    return torch.from_numpy(x)


@pytest.mark.parametrize("size", SIZES)
def test_only_matrices_with_nan_are_lost(size: int):
    x = with_one(np.nan, size)
    for found, expected in zip(graphc.compile(made_of)(x), made_of(x), strict=True):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        assert np.isnan(found[1]).all() and np.isfinite(found[::2]).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["eigh", *(pytest.param(name, marks=pytest.mark.deep) for name in [*REFUSING][1:])])
def test_decompositions_of_nan_raise(name: str, size: int):
    for x in (with_one(np.nan, size), with_one(np.nan, size)[1]):
        with pytest.raises(RuntimeError) as eager:
            REFUSING[name](x)
        with pytest.raises(type(eager.value)) as compiled:
            graphc.compile(REFUSING[name])(x)
        assert str(eager.value) in str(compiled.value)


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_decompositions_of_infinities_are_nan(name: str):
    """LAPACK fails on some of them, and not on others."""
    x = with_one(np.inf, 3)
    x[1] = np.inf
    for found, expected in zip(graphc.compile(REFUSING[name])(x), REFUSING[name](x), strict=True):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        assert np.isnan(found[1]).all() and np.isfinite(found[::2]).all()
