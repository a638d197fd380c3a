"""Leaves that a compiled function makes and hands out, with results that depend on them, as eager does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc
from eager import nn

pytestmark = pytest.mark.on_numpy

X = torch.tensor([1.0, 2.0])
Made = Callable[[], Any]
PROGRAMS: dict[str, Callable[[Callable[..., Any]], Made]] = {}


def program(fn: Callable[[Callable[..., Any]], Made]) -> Callable[[Callable[..., Any]], Made]:
    PROGRAMS[fn.__name__] = fn
    return fn


@program
def a_constant(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        p = torch.ones(2, requires_grad=True)
        return p, (p * x).sum()

    def call() -> Any:
        p, loss = f(X)
        loss.backward()
        return p, p.grad, p.is_leaf

    return call


@program
def several_of_the_same_values(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        p, q = nn.Parameter(x * 2), nn.Parameter(x * 2)
        r, s = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        return p, q, p, r, s, (p * x * q * r).sum(), (s.exp() * p).sum()

    def call() -> Any:
        p, q, again, r, s, first, second = f(X)
        first.backward()
        second.backward()
        return p.grad, q.grad, p is again, r.grad, s.grad

    return call


@program
def differentiated_twice(compile: Any) -> Made:
    w = torch.ones(2, requires_grad=True)

    @compile
    def f(x: Any) -> Any:
        p = nn.Parameter(x * 2)
        return p, (p * w).pow(3).sum()

    def call() -> Any:
        p, y = f(X)
        gradients = torch.autograd.grad(y, (p, w), create_graph=True)
        (gradients[0] * gradients[1]).sum().backward()
        return gradients, p.grad, w.grad

    return call


@program
def a_layer_made_at_the_first_call(compile: Any) -> Made:
    m = nn.Module()

    @compile
    def f(x: Any) -> Any:
        if not hasattr(m, "layer"):
            m.layer = nn.Linear(2, 3)
        return m.layer(x).tanh()

    def call() -> Any:
        y = f(X)
        y.sum().backward()
        return y, m.layer.weight.grad, m.layer.bias.grad

    return call


@program
def with_a_gradient_from_inside(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        p = nn.Parameter(x * 2)
        (p * p).sum().backward()
        return p, (p * x).sum()

    def call() -> Any:
        p, loss = f(X)
        before = p.grad.clone()
        loss.backward()
        return p, before, p.grad

    return call


@program
def written_inside(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        p = nn.Parameter(x * 2)
        first = (p * x).sum()
        with torch.no_grad():
            p.mul_(3)
        return p, first, (p * x).sum()

    def call() -> Any:
        p, first, second = f(X)
        (first + second).backward()
        return p, p.grad

    return call


@program
def over_the_memory_of_an_argument(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        p = nn.Parameter(x)
        return p, (p * p).sum()

    def call() -> Any:
        x = torch.ones(3)
        p, loss = f(x)
        loss.backward()
        x.add_(1)
        return p, p.grad, x

    return call


@program
def over_the_memory_of_another_result(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        base = x * 1
        p = nn.Parameter(base)
        return p, base, (p * p).sum()

    def call() -> Any:
        p, base, loss = f(X)
        loss.backward()
        base.add_(1)
        return p, p.grad, base

    return call


@program
def in_the_history_of_an_argument(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        p = nn.Parameter(x * 2)
        x.mul_(p)
        return p

    def call() -> Any:
        x = torch.ones(2)
        p = f(x)
        x.sum().backward()
        return p, p.grad, x

    return call


@program
def with_a_hook(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        p = torch.zeros(2, requires_grad=True)
        p.register_hook(lambda g: g * 2)
        return p, (p * x).sum()

    def call() -> Any:
        p, loss = f(X)
        loss.backward()
        return p.grad

    return call


@program
def with_a_differentiable_gradient(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        leaf = x.clone().requires_grad_()
        y = (leaf**3).sum()
        return leaf, torch.autograd.grad(y, leaf, create_graph=True)[0]

    def call() -> Any:
        leaf, gradient = f(X)
        gradient.sum().backward()
        return gradient, leaf.grad

    return call


@program
def trained_outside(compile: Any) -> Made:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = None

        def forward(self, x: Any) -> Any:
            if self.w is None:
                self.w, self.b = nn.Parameter(torch.randn(2)), nn.Parameter(torch.zeros(2))
            return (self.w * x + self.b).pow(2).sum()

    m = Lazy()
    f = compile(m)

    def call() -> Any:
        loss = f(X)
        m.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in m.parameters():
                p -= 0.1 * p.grad
        return loss, m.w, m.b

    return call


@program
def kept_by_nobody(compile: Any) -> Made:
    @compile
    def f(x: Any) -> Any:
        leaf = x.clone().requires_grad_()
        return (leaf**3).sum()

    def call() -> Any:
        y = f(X)
        y.backward()
        return y, y.requires_grad, y.is_leaf

    return call


def _seen(name: str, compile: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    call = PROGRAMS[name](compile)
    return [_snapshot(call()) for _ in range(3)]


def _snapshot(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone(), value.requires_grad, type(value).__name__
    return [_snapshot(v) for v in value] if isinstance(value, (list, tuple)) else value


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.allclose(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    return a == b


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_does_what_eager_does(name: str):
    expected, found = _seen(name, lambda fn: fn), _seen(name, graphc.compile)
    assert _equal(expected, found), f"{expected}\n{found}"


def _seed_written_after_backward(x, g):
    (x + 1).backward(g)
    g.mul_(2)
    return x.grad.clone()


def _seed_of_a_leaf_written(x, g):
    x.backward(g)
    g.mul_(2)
    return x.grad.clone()


def _gradient_written(x, g):
    (h,) = torch.autograd.grad(x.clone(), x, g)
    h.add_(1)
    return h, g.clone()


def _gradient_of_itself_written(x, g):
    (h,) = torch.autograd.grad(x, x, g)
    h.add_(1)
    return h, g.clone()


@pytest.mark.parametrize(
    "fn", [_seed_written_after_backward, _seed_of_a_leaf_written, _gradient_written, _gradient_of_itself_written]
)
def test_a_gradient_has_memory_of_its_own_and_not_that_of_the_seed(fn):
    found = []
    for run in (fn, graphc.compile(fn)):
        x, g = torch.ones(3, requires_grad=True), torch.tensor([1.0, 2.0, 3.0])
        found.append((run(x, g), x.grad, g))
    assert str(found[0]) == str(found[1])
