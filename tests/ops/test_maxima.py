"""Max pooling on NumPy, against a loop over windows: overlaps, borders, ties, nan, the lowest numbers."""

import itertools
import math

import numpy as np
import pytest

from graphc.ops import maxima

WINDOWS = {  # kernel, stride, padding, dilation
    "overlapping": ((3, 3), (2, 2), ((1, 1), (1, 0)), (1, 1)),
    "tiles": ((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    "dilated": ((2, 3), (1, 2), ((1, 0), (1, 1)), (2, 1)),
    "one dim": ((4,), (3,), ((2, 1),), (1,)),
    "three dims": ((2, 1, 2), (1, 2, 1), ((0, 1), (0, 0), (1, 0)), (1, 1, 2)),
    "many taps, few windows": ((9, 8), (9, 8), ((0, 0), (0, 0)), (1, 1)),
    "many taps, many windows": ((9, 8), (1, 1), ((1, 0), (0, 1)), (1, 1)),
    "more taps than int8 counts": ((12, 11), (1, 1), ((0, 0), (0, 0)), (1, 1)),
}
SIZES = {1: (13,), 2: (12, 13), 3: (5, 4, 6)}


def _looped(x: np.ndarray, kernel, stride, padding, dilation) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of each window and its place in the image: the first one, or the last nan."""
    spatial = x.shape[2:]
    out = [
        (n + sum(p) - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True)
    ]
    best, place = np.empty((*x.shape[:2], *out), x.dtype), np.empty((*x.shape[:2], *out), np.int64)
    for at in np.ndindex(best.shape):
        found = None
        for tap in itertools.product(*map(range, kernel)):
            where = [o * s - p[0] + t * d for o, s, p, t, d in zip(at[2:], stride, padding, tap, dilation, strict=True)]
            if not all(0 <= i < n for i, n in zip(where, spatial, strict=True)):
                continue
            value = x[(*at[:2], *where)]
            if found is None or value > found or value != value:
                found = value
                best[at], place[at] = value, np.ravel_multi_index(where, spatial)
    return best, place


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_have_the_maxima_that_a_loop_finds(name: str, dtype: type) -> None:
    kernel, stride, padding, dilation = WINDOWS[name]
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (3, 2, *SIZES[len(kernel)])).astype(dtype)  # few numbers: many ties
    low = maxima.lowest(x.dtype)
    x[0, 1], x[1, 0] = low, np.where(rng.random(x.shape[2:]) < 0.8, low, x[1, 0])
    if dtype is np.float32:
        x[2][rng.random(x.shape[1:]) < 0.1] = np.nan
    x = x.swapaxes(0, 1)
    best, place = _looped(x, kernel, stride, padding, dilation)
    np.testing.assert_array_equal(maxima.max_pool(x, kernel, stride, padding, dilation), best)
    np.testing.assert_array_equal(maxima.max_pool_index(x, kernel, stride, padding, dilation), place)
    flat = x.reshape(*x.shape[:2], -1)
    picked = np.take_along_axis(flat, place.reshape(*x.shape[:2], -1), -1).reshape(place.shape)
    np.testing.assert_array_equal(maxima.max_pool_pick(x, x, kernel, stride, padding, dilation), picked)
    g = rng.integers(-4, 5, best.shape).astype(dtype)
    spread = np.zeros(flat.shape, dtype)
    for n, c in np.ndindex(x.shape[:2]):
        np.add.at(spread[n, c], place[n, c].reshape(-1), g[n, c].reshape(-1))
    found = maxima.max_pool_spread(g, x, kernel, stride, padding, dilation)
    np.testing.assert_array_equal(found, spread.reshape(x.shape))


def test_no_images_have_no_maxima() -> None:
    x, taken = np.zeros((0, 2, 4, 4), np.float32), ((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1))
    assert maxima.max_pool(x, *taken).shape == maxima.max_pool_index(x, *taken).shape == (0, 2, 2, 2)
    assert maxima.max_pool_spread(np.zeros((0, 2, 2, 2), np.float32), x, *taken).shape == x.shape
    assert math.prod(maxima.max_pool_pick(x, x, *taken).shape) == 0
