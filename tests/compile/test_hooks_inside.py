"""Hooks that a compiled function registers on tensors from before the call: they stay there, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc
from eager import nn
from graphc.errors import CaptureError

pytestmark = pytest.mark.on_numpy

Compile = Callable[[Any], Any]
PROGRAMS: dict[str, Callable[[Compile], Any]] = {}


def program(fn: Callable[[Compile], Any]) -> Callable[[Compile], Any]:
    PROGRAMS[fn.__name__] = fn
    return fn


def ones() -> Any:
    return torch.ones(3, requires_grad=True)


@program
def on_a_leaf_that_is_returned(compile: Compile) -> Any:
    def fn(x: Any) -> Any:
        x.register_hook(lambda g: g * 2)
        return x

    v = ones()
    w = compile(fn)(v)
    w.backward(torch.tensor([1.0, 2.0, 3.0]))
    return v.grad, w is v


@program
def at_each_call_again(compile: Compile) -> Any:
    def fn(x: Any) -> Any:
        x.register_hook(lambda g: g * 2)
        return x, x * x

    f, v, found = compile(fn), ones(), []
    for _ in range(3):
        same, square = f(v)
        (same.sum() + square.sum()).backward()
        found.append(v.grad.clone())
    return found


@program
def on_what_is_used_elsewhere_too(compile: Compile) -> Any:
    def fn(x: Any) -> Any:
        handle = x.register_hook(lambda g: g * 5)
        y = x * x
        handle.remove()
        x.register_hook(lambda g: g * 3)
        return y

    f, w, found = compile(fn), ones(), []
    for _ in range(3):
        a = w * 2
        (f(a).sum() + a.sum()).backward()
        found.append(w.grad.clone())
    return found


@program
def that_use_what_is_computed(compile: Compile) -> Any:
    def fn(x: Any, s: Any) -> Any:
        k = s.exp()
        x.register_hook(lambda g: g * k)
        return x * 2

    f, w, found = compile(fn), ones(), []
    for i in range(3):
        f(w * 1, torch.tensor(float(i))).sum().backward()
        found.append(w.grad.clone())
    return found


@program
def before_a_backward_inside(compile: Compile) -> Any:
    def fn(x: Any) -> Any:
        x.register_hook(lambda g: g * 2)
        (x * x).sum().backward()
        return x.grad * 1

    f, v = compile(fn), ones()
    found = [f(v) for _ in range(3)]
    v.sum().backward()
    return found, v.grad


@program
def before_a_backward_that_goes_on_outside(compile: Compile) -> Any:
    def fn(a: Any) -> Any:
        a.register_hook(lambda g: g * 2)
        (a * a).sum().backward()
        return a * 1

    f, found = compile(fn), []
    for _ in range(2):
        w = ones()
        f(w * 3)
        found.append(w.grad)
    return found


@program
def on_a_captured_leaf(compile: Compile) -> Any:
    w = ones()

    def fn(x: Any) -> Any:
        w.register_hook(lambda g: g * 2)
        return (w * x).sum()

    f, found = compile(fn), []
    for _ in range(3):
        f(torch.ones(3)).backward()
        found.append(w.grad.clone())
    return found


class _Clamped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3, bias=False)
        nn.init.ones_(self.linear.weight)

    def forward(self, x: Any) -> Any:
        h = self.linear(x)
        x.register_hook(lambda g: g.clamp(max=0.5))
        h.register_hook(lambda g: g * 3)
        return h.tanh()


@program
def of_a_module(compile: Compile) -> Any:
    module, found = _Clamped(), []
    f = compile(module)
    for i in range(3):
        v = torch.full((2, 3), 0.1 * i, requires_grad=True)
        f(v).sum().backward()
        found += [v.grad, module.linear.weight.grad.clone()]
    return found


@program
def of_a_function_inside_another(compile: Compile) -> Any:
    def inner(x: Any) -> Any:
        x.register_hook(lambda g: g * 2)
        return x * x

    compiled, found = compile(inner), []
    f = compile(lambda x: compiled(x * 3).sum())
    for _ in range(2):
        w = ones()
        f(w).backward()
        found.append(w.grad)
    return found


@program
def of_a_function_that_raises(compile: Compile) -> Any:
    def fn(x: Any) -> Any:
        x.register_hook(lambda g: g * 2)
        if x.sum() > 2:
            raise ValueError("too large")
        return x * 2

    v, f = ones(), compile(fn)
    with pytest.raises(ValueError, match="too large"):
        f(v)
    v.sum().backward()
    return v.grad


@program
def on_a_view_of_an_input_that_is_returned(compile: Compile) -> Any:
    def fn(x: Any) -> Any:
        y = x[1:]
        y.register_hook(lambda g: g * g)
        return y, y

    f, v, found = compile(fn), ones(), []
    for _ in range(3):
        y, same = f(v)
        (y * 3).sum().backward()
        found.append((v.grad.clone(), y is same))
    return found


@program
def on_a_view_of_a_result(compile: Compile) -> Any:
    def fn(x: Any) -> Any:
        y = x * 2
        part = y[1:]
        part.register_hook(lambda g: g * 5)
        return y, part

    v = ones()
    y, part = compile(fn)(v)
    (y.sum() + part.sum()).backward()
    return v.grad


@program
def where_gradients_of_one_result_come_after_those_of_another(compile: Compile) -> Any:
    def fn(x: Any) -> Any:
        y = x.clamp(-2, 2)
        z = y * 2
        z.register_hook(lambda g: g * 3)
        return y, z

    v = ones()
    y, z = compile(fn)(v)
    for result in (z, y, z + y):
        result.sum().backward(retain_graph=True)
    return v.grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name: str) -> None:
    assert str(PROGRAMS[name](graphc.compile)) == str(PROGRAMS[name](lambda f: f))


def test_a_handle_does_not_leave() -> None:
    with pytest.raises(CaptureError, match="handle of a hook"):
        graphc.compile(lambda x: (x.register_hook(lambda g: g * 2), x * 2))(ones())


def test_gradients_of_a_view_that_would_not_meet_are_refused() -> None:
    def fn(x: Any) -> Any:
        y = x[1:]
        y.register_hook(lambda g: g * g)
        return (y, y * 3) if x.dtype == torch.float32 else y.view(2, 1)

    for x in (ones(), ones().double().detach().requires_grad_()):
        with pytest.raises(CaptureError, match="hook on a view"):
            graphc.compile(fn)(x)


def test_a_gradient_that_is_kept_of_a_result_is_refused_unless_it_has_come() -> None:
    def features(x: Any, backward: bool) -> Any:
        y = x * 2
        y.retain_grad()
        z = (y * y).sum()
        if backward:
            z.backward()
            return y.detach(), y.grad
        return y, z

    with pytest.raises(CaptureError, match="retain_grad"):
        graphc.compile(features)(ones(), False)
    assert graphc.compile(features)(ones(), True)[1].tolist() == [4.0, 4.0, 4.0]


def test_hooks_after_the_accumulation_are_refused() -> None:
    def fn(x: Any) -> Any:
        x.register_post_accumulate_grad_hook(lambda t: None)
        return x * 2

    with pytest.raises(CaptureError, match="outlives the call"):
        graphc.compile(fn)(ones())


def test_a_graph_has_no_hooks_that_stay() -> None:
    def fn(x: Any) -> Any:
        x.register_hook(lambda g: g * 2)
        return x * 2

    with pytest.raises(CaptureError, match="outlives the call"):
        graphc.trace(fn, ones())
