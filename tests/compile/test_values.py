"""Programs that depend on values: as checks of the program, as guards, or refused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc
from graphc.errors import CaptureError
from graphc.execution.runner import OtherPath

pytestmark = pytest.mark.on_numpy

F = torch.nn.functional
X = torch.arange(6.0).reshape(2, 3)
MASK = torch.tensor([[True, False, True], [False, True, True]])


def _assigned(x: Any, mask: Any, value: Any) -> Any:
    x = x.clone()
    x[mask] = value
    return x


def _bag(mode: str, **how: Any) -> Callable[..., Any]:
    return lambda i, o: F.embedding_bag(i, X.reshape(3, 2), o, mode=mode, **how)


INDICES = torch.tensor([0, 2, 1, 2])
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (torch.masked_scatter, (X, MASK, torch.arange(10.0, 16.0))),
    (torch.masked_scatter, (X, MASK[:1], torch.arange(10.0, 16.0))),
    (torch.masked_scatter, (X, MASK, torch.arange(3.0))),
    (torch.masked_scatter, (X, ~MASK & MASK, torch.zeros(0))),
    (_assigned, (X, MASK, torch.arange(4.0))),
    (_assigned, (X, MASK, torch.arange(5.0))),
    (_assigned, (X, MASK[:, 0], torch.ones(3))),
    (_assigned, (X, MASK[:, 0], torch.ones(1, 3))),
    (_assigned, (X, MASK[:, 0], torch.ones(2, 3))),
    (_assigned, (X, MASK[0], torch.ones(2, 3))),
    (lambda x, n: torch.repeat_interleave(x, n, 1, output_size=4), (X, torch.tensor([1, 0, 3]))),
    (lambda x, n: torch.repeat_interleave(x, n, 1, output_size=5), (X, torch.tensor([1, 0, 3]))),
    (lambda x, n: torch.repeat_interleave(x, n, 1, output_size=2), (X, torch.tensor([1, 2, -1]))),
    (lambda i: F.one_hot(i, 3), (INDICES,)),
    (lambda i: F.one_hot(i, 2), (INDICES,)),
    (lambda i: F.one_hot(i, 3), (-INDICES,)),
    (F.embedding, (INDICES, X.T)),
    (F.embedding, (INDICES - 1, X.T)),
    (lambda x, i: x.index_select(1, i), (X, INDICES - 1)),
    (lambda x, i: x.index_select(0, i), (X, INDICES)),
    (_bag("sum"), (INDICES, torch.tensor([0, 2, 2]))),
    (_bag("mean", include_last_offset=True), (INDICES, torch.tensor([0, 1, 3]))),
    (_bag("max", padding_idx=2), (INDICES, torch.tensor([0, 3]))),
    (_bag("sum"), (INDICES, torch.tensor([1, 3]))),
    (torch.linalg.matrix_exp, (torch.tensor([[3.0, 1.0], [2.0, 6.0]]),)),
    (torch.linalg.lu_factor, (torch.zeros(2, 2),)),
    (lambda x: torch.linalg.cholesky_ex(x @ x.mT), (X[:, :2],)),
    (lambda x: x.clone().fill_diagonal_(7), (X,)),
    (lambda x: torch.scatter(x.cfloat(), 1, torch.tensor([[0], [2]]), 1 + 2j), (X,)),
    (lambda x: torch.as_strided(x, (2, 2), (1, 2), 1), (X,)),
    (lambda x: torch.as_strided(x, (2, 2), (1, 2), 3), (X,)),
]


@pytest.mark.parametrize(("function", "args"), CASES)
def test_as_in_eager(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        expected = function(*args)
    except Exception as error:
        with pytest.raises(type(error)):
            graphc.compile(function)(*args)
    else:
        torch.testing.assert_close(graphc.compile(function)(*args), expected)


def test_gradients_of_what_is_replaced_in_order() -> None:
    x, source = X.clone().requires_grad_(), torch.arange(10.0, 16.0).requires_grad_()
    weight = torch.arange(1.0, 7.0).reshape(2, 3)
    graphc.compile(torch.masked_scatter)(x, MASK, source).backward(weight)
    assert x.grad.tolist() == [[0, 2, 0], [4, 0, 0]]
    assert source.grad.tolist() == [1, 3, 5, 6, 0, 0]


def test_values_that_python_reads_are_guarded() -> None:
    mask, scale = torch.tensor([True, False, True]), torch.tensor(2.0)
    f = graphc.compile(lambda x: x[mask] * scale.item())
    x = torch.arange(3.0)
    assert f(x).tolist() == [0, 4]
    mask[1] = True
    assert f(x).tolist() == [0, 2, 4]
    scale += 1
    assert f(x).tolist() == [0, 3, 6]


def test_a_number_of_a_tensor_is_read_anew() -> None:
    value = torch.tensor(2.0)
    f = graphc.compile(lambda x: x.masked_fill(x > 1, value))
    f(torch.arange(3.0))
    value += 1
    assert f(torch.arange(3.0)).tolist() == [0, 1, 3]
    assert "1 program" in f.explain()


def test_values_after_an_in_place_write_are_those_that_were_written() -> None:
    count = torch.tensor(2.0)

    def step(x: Any) -> Any:
        count.add_(1)
        return x * count.item()

    f = graphc.compile(step)
    for k in (3, 4, 5):
        assert torch.equal(f(X), X * k)
    assert "1 program" in f.explain()


def test_a_tensor_may_become_a_leaf() -> None:
    def gradient(x: Any) -> Any:
        leaf = x.clone().requires_grad_()
        (leaf * leaf).sum().backward()
        return leaf.grad

    assert graphc.compile(gradient)(X).tolist() == (2 * X).tolist()


def test_an_overwritten_tensor_keeps_its_past() -> None:
    x = X.clone().requires_grad_()
    y = graphc.compile(lambda x: x.clone().zero_())(x)
    y.sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


GRID = torch.arange(12.0).reshape(3, 4)
WINDOWS: dict[str, Callable[[Any], Any]] = {
    "of another shape": lambda x: x.view(4, 3).as_strided((2, 2), (3, 1)),
    "of a transposed tensor": lambda x: x.t().as_strided((2, 2), (3, 1)),
    "of what is computed from one": lambda x: (x.t() * 2).as_strided((3,), (1,), 2),
    "of rows": lambda x: x[1:].as_strided((2, 2), (4, 1)),
    "of rows, by place": lambda x: x[1:].as_strided((2, 2), (4, 1), 4),
    "of a row": lambda x: x[1].as_strided((2,), (2,)),
    "of a column": lambda x: x[:, 1].as_strided((2,), (4,)),
    "of a part of a copy": lambda x: x.clone().view(-1)[2:].as_strided((2, 2), (3, 1)),
    "of a window": lambda x: x.as_strided((4, 2), (2, 1), 1).as_strided((2,), (3,)),
    "of an expanded tensor": lambda x: x[:1].expand(3, 4).as_strided((2, 2), (0, 1)),
    "behind the end": lambda x: x[1:].as_strided((9,), (1,)),
    "of chunks that overlap": lambda x: x.view(2, 6).as_strided((3, 6), (3, 1)),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_into_views(name: str) -> None:
    window = WINDOWS[name]

    def results(f: Callable[[Any], Any]) -> list[Any]:
        x = GRID.clone().requires_grad_()
        shown = f(x)
        weights = torch.arange(1.0, shown.numel() + 1).reshape(shown.shape)
        (shown * weights).sum().backward()
        return [shown.tolist(), x.grad.tolist()]

    try:
        expected = results(window)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=re.escape(str(error))):
            results(graphc.compile(window))
    else:
        assert results(graphc.compile(window)) == expected


@pytest.mark.parametrize("view", [lambda x: x.view(4, 3), lambda x: x[1:], lambda x: x.t()])
def test_writes_through_windows_into_views(view: Callable[[Any], Any]) -> None:
    def write(x: Any) -> Any:
        view(x).as_strided((2, 2), (3, 1)).mul_(3)
        return x * 1

    for fn in (write, graphc.compile(write)):
        given = GRID.clone()
        assert fn(given).tolist() == given.tolist() != GRID.tolist()
        assert given.tolist() == write(GRID.clone()).tolist()


def test_a_window_is_guarded() -> None:
    f = graphc.compile(lambda x: x[1:].as_strided((2, 2), (4, 1)))
    assert f(GRID).tolist() == [[4, 5], [8, 9]]
    apart = torch.arange(24.0).reshape(3, 8)[:, :4]
    with pytest.raises(CaptureError, match="memory of a traced tensor"):
        f(apart)
    assert f(GRID + 1).tolist() == [[5, 6], [9, 10]]


@pytest.mark.parametrize("given", [torch.arange(8.0)[4:], torch.arange(8.0)[::2]])
def test_memory_that_is_not_known(given: Any) -> None:
    f = graphc.compile(lambda x: torch.as_strided(x, (2,), (1,), 0))
    assert f(torch.arange(4.0)).tolist() == [0, 1]
    with pytest.raises(CaptureError, match="memory of a traced tensor"):
        f(given)
    with pytest.raises(CaptureError, match="memory of a traced tensor"):
        graphc.compile(lambda x: torch.as_strided(x[1:], (2,), (1,), 0))(torch.arange(4.0))


CUBE = torch.arange(24.0).reshape(2, 3, 4)
ALL = slice(None)
MASKED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "the last dim, one number": (lambda m: (ALL, ALL, m[0]), 7.0),
    "the last dim, a row": (lambda m: (..., m[0]), torch.ones(2)),
    "the middle": (lambda m: (ALL, m[:, 0]), torch.arange(4.0)),
    "a part": (lambda m: (0, m[:, 0]), torch.arange(8.0).reshape(2, 4)),
    "two dims": (lambda m: (ALL, m), torch.arange(10.0).reshape(2, 5)),
    "before a slice": (lambda m: (ALL, m[:, 0], slice(1, 3)), torch.arange(8.0).reshape(2, 2, 2)),
    "before a number": (lambda m: (ALL, m[:, 0], 1), torch.arange(4.0).reshape(2, 2)),
    "behind a new dim": (lambda m: (None, 0, m[:, 0]), 7.0),
    "a 0-d tensor": (lambda m: (0, ..., m[0]), torch.tensor(3.0)),
    "rows for all": (lambda m: (ALL, m[:, 0]), torch.arange(2.0).reshape(2, 1, 1)),
    "dims of size 1 in front": (lambda m: (ALL, m[:, 0]), torch.arange(16.0).reshape(1, 2, 2, 4)),
    "the first dim of another size": (lambda m: m[:, 0], 1.0),
    "a mask of no dims": (lambda m: m[0, 0], torch.ones(3, 4)),
    "a mask of no dims among others": (lambda m: (0, m[0, 0]), torch.ones(4)),
    "a mask of no dims that is false": (lambda m: m[0, 1], 7.0),
    "too few": (lambda m: (ALL, m[:, 0]), torch.ones(2, 3, 4)),
    "of another shape": (lambda m: (ALL, m[:, 0]), torch.arange(3.0)),
}


@pytest.mark.parametrize("name", MASKED)
def test_writes_at_masks_among_other_indices(name: str) -> None:
    index, value = MASKED[name]

    def write(x: Any, mask: Any) -> Any:
        y = x.clone()
        y[index(mask)] = value
        return y

    mask = torch.tensor([[True, False, True, False], [False, False, True, False], [True, True, False, False]])
    x = CUBE.clone().requires_grad_()
    try:
        expected = write(x, mask)
    except (IndexError, RuntimeError) as error:
        with pytest.raises(type(error)):
            graphc.compile(write)(x, mask)
        return
    (expected * CUBE).sum().backward()
    wanted, x.grad = x.grad, None
    found = graphc.compile(write)(x, mask)
    (found * CUBE).sum().backward()
    assert found.tolist() == expected.tolist()
    assert x.grad.tolist() == wanted.tolist()


def test_a_tensor_in_place_of_an_int() -> None:
    count = torch.tensor(2)
    largest = graphc.compile(lambda x: torch.topk(x, count)[0])
    assert largest(X).tolist() == torch.topk(X, 2)[0].tolist()
    count.fill_(1)
    assert largest(X).tolist() == torch.topk(X, 1)[0].tolist()


def test_a_line_that_reads_values_is_named_once_when_it_costs_a_program_each():
    def scaled(x: Any) -> Any:
        return x * float(x.numpy().sum())

    compiled, line = graphc.compile(scaled), scaled.__code__.co_firstlineno + 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen: list[int] = []
        for k in range(5):
            assert compiled(X * k).tolist() == scaled(X * k).tolist()
            seen.append(len(caught))
    assert seen == [0, 0, 1, 1, 1]  # at the third program: a value may have changed once, as a setting does
    (told,) = (str(w.message) for w in caught)
    assert f"test_values.py:{line};" in told
    assert "Remedy" in told
    assert re.search(
        rf"ran eagerly: 3 calls, in which Python reads other values at .*test_values.py:{line} than the 2 compiled for",
        compiled.explain().text(),
    )


def test_branches_and_what_has_changed_once_are_not_told_of():
    kept = torch.ones(2)
    compiled = graphc.compile(lambda x: x * kept.numpy().sum() if x.sum() > 0 else -x)
    for k in (1, -1, 2, -2):
        compiled(X * k)
    kept.mul_(2)
    assert compiled(X).tolist() == (X * 4).tolist()


def test_programs_that_contradict_each_other_about_a_value_end_in_eager_mode(monkeypatch: pytest.MonkeyPatch):
    def scaled(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x * 3

    compiled, values = graphc.compile(scaled), {}
    for k in (1, -1):
        compiled(X * k)
        assert compiled._latest is not None
        values[k] = compiled._latest.program.checks.decisions[0].value
    ran: list[bytes] = []
    for made in compiled._specializations:  # each rounds so that the other one is right

        def run(*args: Any, own: bytes = made.program.checks.decisions[0].value) -> Any:
            ran.append(own)
            raise OtherPath((values[1] if own == values[-1] else values[-1],))

        monkeypatch.setattr(made.runner, "run", run)
        made.fast_call = compiled._fast_call = None
    assert compiled(X).tolist() == scaled(X).tolist()
    assert ran == [values[-1], values[1]]
