"""Python numbers that change from call to call and get into tensors: one program for all, with eager's values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc

pytestmark = pytest.mark.on_numpy

F = torch.nn.functional
X = torch.tensor([[-1.5, 0.5, 2.0], [0.25, -0.75, 1.0]])
WHOLE = torch.arange(6).reshape(2, 3)
OF_A_NUMBER: dict[str, Callable[[Any, Any], Any]] = {
    "tensor": lambda x, n: torch.tensor(n) * x,
    "tensor of a list": lambda x, n: torch.tensor([[n, 1.0, 2], [3, n * 2, x[0, 0]]]) + x,
    "tensor of another dtype": lambda x, n: torch.tensor([n, -n], dtype=torch.float64),
    "tensor of integers": lambda x, n: torch.tensor([n, 2.7], dtype=torch.int32) * x.sum(),
    "tensor of bools": lambda x, n: torch.tensor([n, 0.0], dtype=torch.bool),
    "tensor that requires grad": lambda x, n: (torch.tensor([n], requires_grad=True) * x).sum(),
    "as_tensor": lambda x, n: torch.as_tensor(n) * x,
    "asarray": lambda x, n: torch.asarray([n, 1.0]) * x.sum(),
    "new_tensor": lambda x, n: x.double().new_tensor([n, n]),
    "scalar_tensor": lambda x, n: torch.scalar_tensor(n, dtype=torch.float64) * x,
    "Tensor": lambda x, n: torch.Tensor([n, 1.0]) * x.sum(),
    "LongTensor": lambda x, n: torch.LongTensor([n, 1]) * x.sum(),
    "full": lambda x, n: torch.full((2, 3), n) + x,
    "full of integers": lambda x, n: torch.full((2,), n, dtype=torch.int16) + x.sum(),
    "full_like": lambda x, n: torch.full_like(x.t(), n),
    "new_full": lambda x, n: x.new_full((2,), n),
    "fill_": lambda x, n: torch.zeros(2, 3).fill_(n) + x,
    "fill": lambda x, n: torch.fill(x, n),
    "fill_diagonal_": lambda x, n: x.clone().fill_diagonal_(n),
    "an element": lambda x, n: _assigned(x, 0, n),
    "a column": lambda x, n: _assigned(x, (slice(None), 1), n),
    "elements by a mask": lambda x, n: _assigned(x, x > 0, n),
    "an element of integers": lambda x, n: _assigned(WHOLE, 1, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "masked_fill_": lambda x, n: x.clone().masked_fill_(x > 0, n),
    "index_fill": lambda x, n: x.index_fill(1, torch.tensor([1]), n),
    "scatter": lambda x, n: x.scatter(0, torch.tensor([[1]]), n),
    "where": lambda x, n: torch.where(x > 0, x, n),
    "where, the other way": lambda x, n: torch.where(x > 0, n, x),
    "clamp": lambda x, n: x.clamp(-n / 3, n / 3),
    "clamp_": lambda x, n: x.clone().clamp_(max=n / 3),
    "clamp_min": lambda x, n: x.clamp_min(n / 3),
    "a power": lambda x, n: x.abs() ** n,
    "a base": lambda x, n: n**x,
    "a power of the number": lambda x, n: x * n**2 + n**-0.5 * n**-1,
    "hardtanh": lambda x, n: F.hardtanh(x, -n / 3, n / 3),
    "threshold": lambda x, n: F.threshold(x, n / 3, n),
    "nan_to_num": lambda x, n: torch.nan_to_num(x / 0, n, n, n),
}


def _assigned(x: Any, index: Any, value: Any) -> Any:
    x = x.clone()
    x[index] = value
    return x


def _count(compiled: Any) -> int:
    return str(compiled.explain()).count("because:")


@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_a_number_among_the_arguments(name: str) -> None:
    function = OF_A_NUMBER[name]
    compiled = graphc.compile(function)
    for k in range(5):
        torch.testing.assert_close(compiled(X, 1.5 + 0.37 * k), function(X, 1.5 + 0.37 * k))
    assert _count(compiled) == 2


@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_a_number_from_a_tensor(name: str) -> None:
    def function(x: Any) -> Any:
        return OF_A_NUMBER[name](x, x.max().item())

    compiled = graphc.compile(function)
    for k in range(5):
        torch.testing.assert_close(compiled(X + 0.37 * k), function(X + 0.37 * k))
    assert _count(compiled) == 1


COPIES: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda x: torch.tensor(x) * 2,
    "tensor of another dtype": lambda x: torch.tensor(x, dtype=torch.float64),
    "tensor of complex numbers": lambda x: torch.tensor(torch.complex(x, x), dtype=torch.float32),
    "tensor of a view": lambda x: torch.tensor(x.t()),
    "tensor of an element": lambda x: torch.tensor(x.sum()),
    "tensor of elements": lambda x: torch.tensor([x[0, 0], x[1, 1].double()]),
    "tensor of lists of elements": lambda x: torch.tensor([[x[0, :1], 2.0], [3, x.sum()]]),
    "tensor of integers": lambda x: torch.tensor([x[0, 2], 1], dtype=torch.int64),
    "tensor that is written": lambda x: (y := torch.tensor(x), y.add_(1), x * y)[-1],
    "tensor that requires grad": lambda x: (torch.tensor(x, requires_grad=True) * x).sum(),
    "new_tensor": lambda x: x.double().new_tensor(x),
    "asarray": lambda x: torch.asarray(x, copy=True),
    "Tensor": lambda x: torch.Tensor(x) + 1,
    "FloatTensor": lambda x: torch.FloatTensor(x) * 2,
}


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("name", COPIES)
def test_tensors_of_traced_tensors(name: str) -> None:
    function = COPIES[name]
    compiled = graphc.compile(function)
    for k in range(4):
        x = (X + k).requires_grad_()
        found, expected = compiled(x), function(x)
        torch.testing.assert_close(found, expected)
        assert found.requires_grad == expected.requires_grad
        assert found.is_leaf == expected.is_leaf
    assert _count(compiled) == 1


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda x: torch.full((2,), x.sum().item(), dtype=torch.uint8), [300.0]),
        (lambda x: torch.full((2,), x.sum().item(), dtype=torch.int64), [math.inf]),
        (lambda x: torch.full((2,), x.sum().item(), dtype=torch.int64), [2.0**63]),
        (lambda x: torch.full((2,), x.double().sum().item(), dtype=torch.float32), [1e38, 1e39]),
        (lambda x: torch.tensor([x.sum().item()], dtype=torch.int8), [-129.0]),
        (lambda x: torch.tensor([x]), [1.0, 2.0]),
        (lambda x: torch.tensor([[x.sum()], [1, 2]]), [1.0]),
    ],
)
def test_numbers_that_do_not_fit(function: Callable[[Any], Any], given: list[float]) -> None:
    x = torch.tensor(given, dtype=torch.float64)
    with pytest.raises((RuntimeError, ValueError)) as expected:
        function(x)
    with pytest.raises(expected.type) as found:
        graphc.compile(function)(x)
    assert str(found.value) == str(expected.value)


def test_negative_numbers_wrap_in_integers_without_a_sign() -> None:
    function = lambda x: torch.full((2,), x.sum().item(), dtype=torch.uint8)
    for value in (-1.0, -200.9, 255.0):
        x = torch.tensor([value])
        assert graphc.compile(function)(x).tolist() == function(x).tolist()


@pytest.mark.parametrize("exponent", [2, 0, -1, 0.5, -0.5, 3.0, math.inf])
@pytest.mark.parametrize("value", [4.0, 0.0, -2.0])
def test_powers_of_numbers(value: float, exponent: float) -> None:
    def function(x: Any) -> Any:
        return x.sum().item() ** exponent

    x = torch.tensor([value])
    try:
        expected = function(x)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            graphc.compile(function)(x)
    else:
        assert graphc.compile(function)(x) == pytest.approx(expected)


def test_a_number_that_has_escaped() -> None:
    kept = []

    def keep(x: Any) -> Any:
        kept.append(x.sum().item())
        return x

    graphc.compile(keep)(X)
    assert torch.full((2,), kept[0]).tolist() == pytest.approx([1.5, 1.5])


@pytest.mark.parametrize("order", [torch.channels_last, torch.contiguous_format])
def test_orders_of_dims_in_memory(order: Any) -> None:
    def function(x: Any) -> Any:
        y = x.contiguous(memory_format=order)
        return [
            (t.is_contiguous(), t.is_contiguous(memory_format=torch.channels_last), t.stride()) for t in (x, y, y * 2)
        ]

    x = torch.rand(2, 3, 4, 5)
    for given in (x, x.contiguous(memory_format=torch.channels_last), x[:, :, 1:-1], x[:, :1], x.transpose(2, 3)):
        assert graphc.compile(function)(given) == function(given)


@pytest.mark.parametrize("values", [[0.0] * 99 + [-0.0], [-0.0] * 99 + [0.0], [0.0] * 100, [-0.0] * 100])
def test_zeros_of_both_signs_are_no_one_number(values: list[float]) -> None:
    fill = graphc.compile(lambda x: torch.copysign(x, torch.tensor(values)))
    assert fill(torch.ones(100)).tolist() == [math.copysign(1.0, value) for value in values]
