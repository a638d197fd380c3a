"""Programs and sessions that read and write state: views, arguments, tensors that are captured, `.grad`, objects."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import eager as torch
from compare.selftest.trials import numbers

X, Y, CUBE = numbers(4), numbers(4, seed=6), numbers(2, 2, 2)


def through_slice(x: Any) -> Any:
    y = x * 1
    y[1:3].mul_(x[:2])
    return y * 2


def through_permutation(x: Any, z: Any) -> Any:
    y = x * 1
    y.permute(1, 2, 0).mul_(z)
    return y * 2


def through_reshape(x: Any) -> Any:
    y = x * 1
    y.view(4, 2)[0] = 0.5
    return y * 2


def real_part(z: Any) -> Any:
    y = z * 1
    y.real.mul_(2)
    return y * 2


def complex_numbers() -> np.ndarray:
    return numbers(3) + 1j * numbers(3, seed=6)


def view_read_after(x: Any) -> Any:
    y = x * 1
    view = y[1:]
    y.mul_(3)
    return view * 2


def argument_written(compile: Any) -> Iterator[Any]:
    f = compile(writes)
    x, y = tensor(X), tensor(Y)
    for _ in range(3):
        yield f(x, y), x, y


def writes(x: Any, y: Any) -> Any:
    x.mul_(2)
    y.add_(x)
    return x + y


def tensor(array: np.ndarray) -> Any:
    return torch.from_numpy(array.copy())


def returned_itself(compile: Any) -> Iterator[Any]:
    f = compile(lambda x: x.add_(1))
    x = tensor(X)
    y = f(x)
    y.mul_(2)
    yield x, y
    yield x is f(x)


def returned_view(compile: Any) -> Iterator[Any]:
    f = compile(lambda x: (x * 2, x[1:]))
    x = tensor(X)
    _, view = f(x)
    view.mul_(5)
    yield x, view


def results_share(compile: Any) -> Iterator[Any]:
    def both(x: Any) -> Any:
        y = x * 2
        return y, y[1:]

    whole, part = compile(both)(tensor(X))
    part.zero_()
    yield whole, part


def views_held(compile: Any) -> Iterator[Any]:
    """A view that was made before follows what the compiled function writes."""
    state = torch.zeros(4)
    view = state[1:3]

    def accumulate(x: Any) -> Any:
        state.add_(x)
        return state.sum()

    f = compile(accumulate)
    for _ in range(3):
        yield f(tensor(X)), view, state


def overlapping(compile: Any) -> Iterator[Any]:
    def shift(a: Any, b: Any) -> Any:
        a.mul_(2)
        return a + b

    memory = tensor(numbers(5))
    f = compile(shift)
    for _ in range(2):
        yield f(memory[:-1], memory[1:]), memory


def training(compile: Any) -> Iterator[Any]:
    w, b = (tensor(a).requires_grad_() for a in (X, Y))

    def step(x: Any) -> Any:
        loss = ((w * x + b) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.01 * p.grad
        return loss.detach()

    f = compile(step)
    for _ in range(3):
        yield f(tensor(Y)), w, b, w.grad, b.grad


def zeroed(compile: Any) -> Iterator[Any]:
    w = tensor(X).requires_grad_()
    (w * 3).sum().backward()

    def clear(x: Any) -> Any:
        w.grad = None
        return w * x

    compile(clear)(tensor(Y))
    yield w.grad is None


def flagged(compile: Any) -> Iterator[Any]:
    def freeze(x: Any) -> Any:
        x.requires_grad_(True)
        return x * 2

    x = tensor(X)
    y = compile(freeze)(x)
    yield x.requires_grad, y


def counting(compile: Any) -> Iterator[Any]:
    self = SimpleNamespace(count=0, last=None)

    def forward(x: Any) -> Any:
        self.count += 1
        self.last = x * 2
        return self.last + self.count

    f = compile(forward)
    for _ in range(3):
        yield f(tensor(X)), self.count, self.last


def apart(x: Any, y: Any) -> Any:
    """Two results, each of one argument."""
    return x * 2, y * 3


def one_of_two(compile: Any) -> Iterator[Any]:
    x = tensor(X).requires_grad_()
    a, _ = compile(lambda x: (x.sin(), x.exp()))(x)
    a.sum().backward()
    yield x.grad


def used_twice(x: Any) -> Any:
    return x.sin() * x.cos() + x
