"""Convolutions under XLA: each way to compute them, and its transposes, against the NumPy kernels."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest

from graphc.lowering import convolutions, depthwise
from graphc.ops import OPS
from tests.quick import OPTIONS

# rank of the image: (groups, channels of one, results of one, kernel, stride, padding, dilation)
CASES: dict[str, tuple[int, tuple[Any, ...]]] = {
    "depthwise": (2, (5, 1, 1, (3, 2), (1, 1), (1, 2), (1, 1))),
    "depthwise, several results": (2, (3, 1, 2, (3, 3), (2, 1), (1, 0), (1, 2))),
    "depthwise, in time": (1, (6, 1, 1, (4,), (1,), (3,), (1,))),
    "few channels in a group": (2, (4, 3, 2, (2, 3), (1, 2), (0, 1), (2, 1))),
    "convolutions of their own": (2, (3, 8, 2, (3, 3), (2, 1), (1, 1), (1, 2))),
    "products of pixels": (2, (2, 70, 3, (1, 1), (1, 1), (0, 0), (1, 1))),
    "many groups": (1, (18, 33, 1, (2,), (1,), (1,), (1,))),
    "planes": (3, (1, 5, 4, (3, 2, 2), (1, 2, 1), (1, 0, 1), (1, 1, 2))),
    "planes, far apart": (3, (1, 9, 2, (2, 2, 1), (2, 1, 1), (2, 1, 0), (3, 1, 1))),
    "planes in groups": (3, (3, 4, 2, (3, 3, 2), (1, 1, 1), (1, 1, 0), (1, 1, 1))),
    "depthwise planes": (3, (4, 1, 1, (2, 2, 2), (1, 1, 2), (0, 1, 1), (2, 1, 1))),
}
SIZES = (6, 5, 7)


def drawn(name: str, dtype: str = "float64") -> tuple[int, dict[str, Any], np.ndarray, np.ndarray]:
    rank, (groups, channels, results, kernel, stride, padding, dilation) = CASES[name]
    rng = np.random.default_rng(0)
    x = numbers(rng, (2, groups * channels, *SIZES[:rank]), dtype)
    w = numbers(rng, (groups * results, channels, *kernel), dtype)
    return rank, {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}, x, w


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (9 * rng.standard_normal(shape)).astype(dtype)


# JAX has no transposes for integers: those are sums of ours, of one form for all ranks
INTEGERS = ("depthwise, in time", "depthwise, several results")


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float64") for name in CASES), *((name, "int64") for name in INTEGERS)]
)
def test_the_same_as_in_numpy(name: str, dtype: str):
    rank, window, x, w = drawn(name, dtype)
    y = OPS[f"conv{rank}d"].kernel(x, w, **window)
    g = numbers(np.random.default_rng(1), y.shape, dtype)
    dx = OPS[f"conv{rank}d_input"].kernel(g, w, shape=x.shape, **window)
    dw = OPS[f"conv{rank}d_weight"].kernel(g, x, shape=w.shape, **window)
    image, cotangent = np.moveaxis(x, 1, -1), np.moveaxis(g, 1, -1)

    @functools.partial(jax.jit, compiler_options=dict(OPTIONS))
    def results(x: Any, w: Any, g: Any) -> Any:
        back = convolutions.conv_input(g, w, dx.shape, **window), convolutions.conv_weight(g, x, w.shape, **window)
        return convolutions.conv(x, w, **window), *back

    with jax.enable_x64(True):
        found, image_back, weight_back = results(image, w, cotangent)
    np.testing.assert_allclose(np.moveaxis(np.asarray(found), -1, 1), y, 1e-10, 1e-10)
    np.testing.assert_allclose(np.moveaxis(np.asarray(image_back), -1, 1), dx, 1e-10, 1e-10)
    np.testing.assert_allclose(weight_back, dw, 1e-10, 1e-10)


def test_every_way_has_a_case():
    ways = {convolutions._way(drawn(name)[3].shape, CASES[name][1][0]).__name__ for name in CASES}
    assert ways == {"_by_planes", "summed", "_by_groups", "_by_xla"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_halves_round_once(dtype: str):
    import jax.numpy as jnp

    x = jnp.asarray(np.random.default_rng(0).standard_normal((1, 40, 8)), dtype)
    w = jnp.asarray(np.random.default_rng(1).standard_normal((8, 1, 31)), dtype)
    found = convolutions.conv(x, w, (1,), (0,), (1,), 8)
    exact = convolutions.conv(x.astype("float32"), w.astype("float32"), (1,), (0,), (1,), 8)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, exact.astype(dtype))


# sums of few numbers: blocks of parts of a row; of more: of several images
@pytest.mark.parametrize(("name", "cached"), [("depthwise", 60), ("depthwise, in time", 200)])
def test_blocks_of_any_size_give_the_same_gradients(name: str, cached: int, monkeypatch: pytest.MonkeyPatch):
    rank, window, x, w = drawn(name, "float32")
    y = OPS[f"conv{rank}d"].kernel(x, w, **window)
    g = numbers(np.random.default_rng(1), y.shape, "float32")
    dw = OPS[f"conv{rank}d_weight"].kernel(g, x, shape=w.shape, **window)
    monkeypatch.setattr(depthwise, "CACHED", cached)
    blocks = jax.jit(depthwise.summed_weight, static_argnums=(2, 3, 4, 5, 6), compiler_options=dict(OPTIONS))
    found = blocks(np.moveaxis(g, 1, -1), np.moveaxis(x, 1, -1), w.shape, *window.values())
    np.testing.assert_allclose(found, dw, 1e-3, 1e-3)


def test_programs_of_depthwise_convolutions_do_not_grow_with_the_taps():
    def size(kernel: int) -> int:
        x, w = np.zeros((2, 16, 16, 8), np.float32), np.zeros((8, 1, kernel, kernel), np.float32)
        window = {"stride": (1, 1), "padding": (kernel // 2,) * 2, "dilation": (1, 1), "groups": 8}
        weight = functools.partial(convolutions.conv_weight, shape=w.shape, **window)
        return len(jax.jit(weight).lower(x, x).as_text().splitlines())

    assert size(11) == size(3)
