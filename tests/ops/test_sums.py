"""Sums over any axes are NumPy's, and as exact as along the last one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphc.ops.interpret import F
from graphc.ops.sums import total

SHAPES = [
    (1000, 3),
    (3, 1000),
    (1300, 1),
    (5, 700, 4),
    (2, 700, 300),
    (700, 2, 3),
    (600, 600),
    (0, 600),
    (600, 0, 5),
    (700, 7),
    (3, 900, 3),
    (900, 1, 4),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_as_numpy(shape: tuple[int, ...], order: str, rng: np.random.Generator):
    x = np.asarray(rng.random(shape), order=order)  # type: ignore[call-overload]
    for n in range(1, len(shape) + 1):
        for axis, keepdims in itertools.product(itertools.combinations(range(len(shape)), n), (False, True)):
            found, expected = total(x, axis, None, keepdims), x.sum(axis=axis, keepdims=keepdims)
            assert np.shape(found) == np.shape(expected) and found.strides == expected.strides
            np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("shape, axis", [((100_000, 3), (0,)), ((2, 50_000, 5), (1,)), ((50, 1000, 300), (0, 1))])
def test_the_error_does_not_grow_with_the_length(shape: tuple[int, ...], axis: tuple[int, ...]):
    x = np.full(shape, 0.7734375, np.float32) + np.float32(1e-4)
    exact = x.astype(np.float64).sum(axis)
    for found in (F.sum(x, axis=axis, keepdims=False), F.sum(np.asfortranarray(x), axis=axis, keepdims=False)):
        assert (abs(found - exact) <= 32 * np.spacing(exact.astype(np.float32))).all()  # one by one: more than 1000
    for found in (F.mean(x, axis=axis, keepdims=False), F.amax(x, axis=axis, keepdims=False)):
        assert np.allclose(found, x.flat[0], rtol=32 * 2**-23)
