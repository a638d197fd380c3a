"""`where` by bits: the same bits as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager
from graphc.ops import choosing

SHAPES = ((7, 43), (7, 43)), ((301,), ()), ((), (301,)), ((), ()), ((43,), (7, 43)), ((7, 1), ())
DTYPES = ("f2", "f4", "f8", "i1", "i4", "u8", "?", "c8", "c16")


@pytest.fixture
def by_bits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the choice was made bit by bit."""
    taken: list[int] = []
    multiply = np.multiply
    monkeypatch.setattr(choosing, "LONG", 0)
    monkeypatch.setattr(choosing, "LOOKED_AT", 64)
    monkeypatch.setattr(choosing, "CHANGES", 8)
    monkeypatch.setattr(choosing, "BLOCK", 100)

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        def multiply(self, *args: Any, **kwargs: Any) -> Any:
            taken.append(1)
            return multiply(*args, **kwargs)

    monkeypatch.setattr(choosing, "np", Watched())
    return taken


def drawn(code: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    bits = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(code).itemsize), np.uint8)
    return (bits % 2 if code == "?" else bits).view(code)[..., 0]


@pytest.mark.parametrize("code", DTYPES)
@pytest.mark.parametrize(
    "shapes", [((7, 43), (7, 43)), ((301,), ()), ((), (301,)), ((), ()), ((43,), (7, 43)), ((7, 1), ())]
)
def test_the_same_bits(code: str, shapes: tuple[tuple[int, ...], ...], by_bits: list[int]):
    condition = drawn("?", (7, 43), 0).reshape(-1) if (301,) in shapes else drawn("?", (7, 43), 0)
    x, y = (drawn(code, shape, k) for k, shape in enumerate(shapes, 1))
    found = choosing.where(condition, x, y)
    expected = np.where(condition, x, y)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()
    plain = all(not v.ndim or v.shape == condition.shape for v in (x, y))
    assert bool(by_bits) is (plain and code[0] != "c")


def test_layouts_and_dtypes_that_differ(by_bits: list[int]):
    condition, x, y = drawn("?", (20, 30), 0), drawn("f4", (20, 30), 1), drawn("f4", (20, 30), 2)
    for c, a, b in ((condition.T, x.T, y.T), (condition, x[:, ::-1], y), (condition, x, y.astype("f8"))):
        np.testing.assert_array_equal(choosing.where(c, a, b), np.where(c, a, b))
    assert not by_bits


def test_a_condition_that_seldom_changes_is_left_to_numpy(by_bits: list[int]):
    choosing.where(np.arange(300) < 150, np.zeros(300), np.ones(300))
    assert not by_bits


@pytest.mark.parametrize("x", [1, 0.5, True, np.float32(2), np.arange(300, dtype=np.float32)], ids=str)
@pytest.mark.parametrize("y", [0, -0.0, False, np.ones(300, np.float32), np.ones(300, np.int64)], ids=str)
def test_numbers(x: Any, y: Any, by_bits: list[int], rng: np.random.Generator) -> None:
    condition = rng.random(300) < 0.5
    found, expected = choosing.where(condition, x, y), np.where(condition, x, y)
    assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())


@pytest.mark.parametrize("name", ["prod", "cumprod"])
def test_rules_that_choose_numbers(name: str, by_bits: list[int]) -> None:
    x = eager.tensor([[2.0, 0.0, 3.0], [2.0, 4.0, 5.0]], requires_grad=True)
    getattr(x, name)(-1).sum().backward()
    slopes = {"prod": [[0, 6, 0], [20, 10, 8]], "cumprod": [[1, 8, 0], [25, 12, 8]]}
    assert x.grad.tolist() == slopes[name]
