"""Functions that a compiled function makes and returns: each call returns its own, as eager does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc

X = torch.arange(3.0)
BASE = torch.ones(3)


def _of_a_tensor(x: Any) -> Any:
    y = x * 2
    return lambda t: y * t


def _of_a_draw(x: Any) -> Any:
    y = x + torch.rand(3)
    return lambda t: y * t


def _that_counts(x: Any) -> Any:
    y, n = x * 2, 0

    def count(t: Any, step: int = 1) -> Any:
        nonlocal n
        n += step
        return y * t + n

    count(3.0)
    setattr(count, "calls", x + 1)  # noqa: B010
    return count


def _that_counts_only(x: Any) -> Any:
    n = 0

    def count(t: Any) -> Any:
        nonlocal n
        n += 1
        return n

    return count


def _that_calls_itself(x: Any) -> Any:
    def f(n: float, start: Any = x * 3) -> Any:
        return start if n <= 0 else f(n - 1) + 1

    return f


def _that_writes(x: Any) -> Any:
    v = x + 1

    def f(t: Any) -> Any:
        nonlocal v
        v += BASE * t
        return v

    f(2.0)
    return f


def _inside_one_another(x: Any) -> Any:
    a = x.exp()

    def outer(s: float) -> Any:
        b = a * s

        def inner(t: Any = x + 1) -> Any:
            return a + b * t

        return inner

    return outer(2.0)


def _of_a_number(x: Any) -> Any:
    n = x.sum().item()
    return lambda t: t * n


def _before_its_variable_is_known(x: Any) -> Any:
    y = x * 2

    def f(t: Any) -> Any:
        try:
            return y * later
        except NameError:
            return y * t

    if x.dim() > 1:
        later = 2
    return f


MAKERS = [
    _of_a_tensor, _of_a_draw, _that_counts, _that_counts_only, _that_calls_itself, _that_writes, _inside_one_another,
    _of_a_number, _before_its_variable_is_known,
]  # fmt: skip


def _told(result: Any) -> str:
    """A result, without the digits that depend on how XLA compiles."""
    return str(torch.round(result, decimals=2) if isinstance(result, torch.Tensor) else result)


@pytest.mark.parametrize("make", MAKERS)
def test_returned(make: Callable[[Any], Any]) -> None:
    compiled = graphc.compile(make)
    for seed in range(3):
        results = []
        for fn in (make, compiled):
            torch.manual_seed(seed)
            first, second = fn(X + seed), fn(X - seed)
            texts = [_told(f(t)) for t in (2.0, 3.0) for f in (first, second, first)]
            results.append((texts, first.__name__, first.__qualname__, str(vars(first))))
        assert results[0] == results[1]


def _shared_by_two(x: Any) -> dict[str, Any]:
    n, y = 0, x * 2

    def more() -> None:
        nonlocal n
        n += 1

    return {"more": more, "value": lambda: y * n}


def test_functions_share_a_variable() -> None:
    compiled = graphc.compile(_shared_by_two)
    compiled(X)["more"]()
    for fn in (_shared_by_two, compiled):
        made = fn(X)
        made["more"]()
        made["more"]()
        assert made["value"]().tolist() == [0, 4, 8]


def test_variables_of_functions_around_are_those_that_are_there() -> None:
    scale = 2.0

    def make(x: Any) -> Any:
        y = x * 2
        return lambda: y * scale

    made = graphc.compile(make)(X)
    scale = 5.0
    assert made().tolist() == [0, 10, 20]


def test_gradients_flow_through_what_a_function_holds() -> None:
    w = torch.ones(3, requires_grad=True)

    def make() -> Any:
        y = w * X
        return lambda t: (y * t).sum()

    graphc.compile(make)()(2.0).backward()
    assert w.grad.tolist() == [0, 2, 4]


class _Model:
    def __init__(self) -> None:
        self.report: Any = None

    def run(self, x: Any) -> Any:
        y = x * 2
        self.report = lambda: y
        return y


def test_a_function_put_into_an_attribute() -> None:
    model = _Model()
    run = graphc.compile(model.run)
    for x in (X, X + 1):
        run(x)
        assert model.report().tolist() == (x * 2).tolist()


def _decorated(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(f)
    def inner(x: Any) -> Any:
        return f(x)

    return inner


@_decorated
def _helper(x: Any) -> Any:
    return x


def test_a_function_that_was_there_is_itself() -> None:
    compiled = graphc.compile(lambda x: (x + 1, _helper))
    assert compiled(X)[1] is _helper
    assert compiled(X)[1] is _helper


class _Record:
    def __init__(self, value: Any):
        self.value = value


def test_what_is_added_to_a_list_around_holds_what_the_call_computes() -> None:
    log: list[Any] = []

    def fn(x: Any) -> Any:
        y = x * 2
        log.append(_Record(y))
        log.append(lambda: y + 1)
        log.append((1, _Record(x)))
        return y

    compiled = graphc.compile(fn)
    for factor in range(3):
        log.clear()
        compiled(X * factor)
        record, function, (_, given) = log
        assert record.value.tolist() == (X * factor * 2).tolist()
        assert function().tolist() == (X * factor * 2 + 1).tolist()
        assert given.value.tolist() == (X * factor).tolist()
