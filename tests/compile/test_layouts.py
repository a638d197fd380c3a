"""Compiled functions take arguments, and write back what they change, wherever tensors lie: as they do on new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from compare.judging.tolerance import same_bits
from compare.layouts.layout import Layout, layouts_of
from compare.layouts.sweep import spills
from eager.core.tensor import Tensor
from graphc.ops.dtypes import BOOL, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT64, UINT8, bfloat16
from tests.depth import one_in

SHAPE = (3, 4)
LAYOUTS = dict(layouts_of(SHAPE))
WRITABLE = {name: layout for name, layout in LAYOUTS.items() if 0 not in layout.strides}
DTYPES = (FLOAT32, FLOAT64, FLOAT16, bfloat16(), COMPLEX64, INT64, UINT8, BOOL)


def numbers(dtype: np.dtype = FLOAT32) -> np.ndarray:
    values = np.arange(12.0).reshape(SHAPE) % 7 - (0 if dtype.kind in "ub" else 3)
    return values.astype(dtype)


def plain(layout: Layout, array: np.ndarray) -> np.ndarray:
    """The values that `layout` holds of `array`, in a new array."""
    return np.array(layout.placed(array), order="C")


@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=() if d in (FLOAT32, BOOL) else pytest.mark.deep) for d in DTYPES], ids=str
)
def test_arguments(dtype: np.dtype) -> None:
    f = graphc.compile(lambda x: (x.clone(), x.flip(0), x.T.reshape(-1), x[1:, ::2].clone()))
    for name, layout in LAYOUTS.items():
        expected = f(Tensor._wrap(plain(layout, numbers(dtype))))
        found = f(Tensor._wrap(layout.placed(numbers(dtype))))
        for a, b in zip(found, expected, strict=True):
            assert same_bits(np.array(a._array()), np.array(b._array())), name


@pytest.mark.parametrize(
    "dtype",
    [pytest.param(d, marks=() if d is FLOAT32 else pytest.mark.deep) for d in (FLOAT32, FLOAT64, INT64)],
    ids=str,
)
@pytest.mark.parametrize("write", one_in(2, ["x.mul_(2)", "x.neg_()", "x[1:] = x[:-1].clone()", "x.T[0] += 1"]))
def test_arguments_that_are_written(write: str, dtype: np.dtype) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f(x):\n    {write}\n    return x.sum()", scope)
    f = graphc.compile(scope["f"])
    for name, layout in WRITABLE.items():
        for run in (f, scope["f"]):
            x, y = Tensor._wrap(layout.placed(numbers(dtype))), Tensor._wrap(numbers(dtype))
            for _ in range(2):  # the second call finds what the first has left
                assert run(x).item() == scope["f"](y).item(), name
                np.testing.assert_array_equal(x.numpy(), y.numpy(), name)
            assert not spills(x._array()), f"{name}: written beside the tensor"


def _trained(compile: Callable[[Any], Any], layout: Layout | None) -> Iterator[np.ndarray]:
    def laid(array: np.ndarray) -> Any:
        return Tensor._wrap(array if layout is None else layout.placed(array))

    state = laid(np.zeros(SHAPE, FLOAT32))
    weight: Any = torch.nn.Parameter(laid(numbers() / 8))
    optimizer = torch.optim.SGD([weight], lr=0.125, momentum=0.5)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((x * weight) ** 2).sum()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            state.add_(weight)
        return loss.detach()

    run = compile(step)
    for _ in range(3):
        yield run(laid(numbers())).numpy().copy()
    yield from (np.array(t.detach()._array()) for t in (weight, state, weight.grad))
    for t in (weight, state):
        assert not spills(t.detach()._array())


@pytest.mark.parametrize("name", ["step 4", "column by column", "gaps between rows", "one byte off", "rows backwards"])
def test_state_that_lies_otherwise(name: str) -> None:
    expected = list(_trained(lambda f: f, None))
    for compile in (graphc.compile, lambda f: f):
        found = list(_trained(compile, WRITABLE[name]))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_max_ulp(a, b, 4)


def test_every_view_of_written_memory_follows() -> None:
    memory = np.zeros(40, FLOAT32)
    base = torch.from_numpy(memory)
    parts = [base.as_strided(SHAPE, strides, offset) for strides, offset in (((4, 1), 0), ((1, 3), 2), ((9, 2), 5))]
    f = graphc.compile(lambda a, b, c: (a.add_(1), b.mul_(3), c.sub_(b)))
    other = torch.from_numpy(np.zeros(40, FLOAT32))
    mine = [other.as_strided(tuple(t.shape), t.stride(), t.storage_offset()) for t in parts]
    f(*parts)
    a, b, c = mine
    a.add_(1)
    b.mul_(3)
    c.sub_(b)
    np.testing.assert_array_equal(base.numpy(), other.numpy())
