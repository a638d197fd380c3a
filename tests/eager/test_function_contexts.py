"""What the methods of `ctx` take in an autograd.Function, when they say so, and what they do: PyTorch is asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager
from tests.oracle import asked_of_torch, torch_or_skip

METHODS = ("save_for_backward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads", "save_for_forward")
VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "an integer": lambda torch, x: 1,
    "a float": lambda torch, x: 1.5,
    "a bool": lambda torch, x: True,
    "None": lambda torch, x: None,
    "a string": lambda torch, x: "a",
    "a tuple": lambda torch, x: (x, x),
    "a list": lambda torch, x: [x],
    "a dict": lambda torch, x: {},
    "the input": lambda torch, x: x,
    "another tensor": lambda torch, x: torch.ones(2),
    "a parameter": lambda torch, x: torch.nn.Parameter(torch.ones(2)),
    "a size": lambda torch, x: x.shape,
    "a dtype": lambda torch, x: torch.float32,
    "a type": lambda torch, x: int,
    "an ndarray": lambda torch, x: np.ones(2),
}
# PyTorch's own sentence ends there: the number in it is a zero byte
CUT_SHORT = ("mark_dirty can only accept variables, but argument ", "mark_non_differentiable only accepts variable")


def outcome(call: Callable[[], Any]) -> str:
    try:
        return repr(call())
    except Exception as error:
        text = str(error)
        for beginning in CUT_SHORT:
            text = beginning if text.startswith(beginning) else text
        return f"{type(error).__name__}: {text.partition(' - got ')[0].partition(' (Triggered')[0]}"


def function(torch: Any, forward: Any, backward: Any = lambda ctx, g: g) -> Any:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("MyFn", (torch.autograd.Function,), members)


@asked_of_torch(("method", "value"), list(itertools.product(METHODS, VALUES)))
def test_each_method_takes_what_pytorch_does(method: str, value: str) -> None:
    theirs = torch_or_skip()

    def run(torch: Any, grad: bool, extra: bool) -> Any:
        x = torch.ones(2, requires_grad=grad)

        def forward(ctx: Any, x: Any) -> Any:
            given = VALUES[value](torch, x)
            assert getattr(ctx, method)(given) is None
            if extra and method != "set_materialize_grads":
                getattr(ctx, method)(x, given)
            return x * 2

        y = function(torch, forward, lambda ctx, g: g * len(ctx.saved_tensors)).apply(x)
        if grad:
            y.sum().backward()
            return y.requires_grad, x.grad.tolist()
        return y.requires_grad

    for grad, extra in itertools.product((False, True), repeat=2):
        assert outcome(lambda: run(eager, grad, extra)) == outcome(lambda: run(theirs, grad, extra)), (grad, extra)  # noqa: B023


def test_nothing_is_asked_of_what_is_not_saved() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(1)
        return x * 2

    assert function(eager, forward).apply(eager.ones(2)).tolist() == [2.0, 2.0]
    x = eager.ones(2, requires_grad=True)
    with eager.no_grad():
        assert not function(eager, forward).apply(x).requires_grad
    with pytest.raises(TypeError, match="argument 0 is of type int"):
        function(eager, forward).apply(x)


def dirty_full(torch, t):
    def f(ctx, x):
        ctx.mark_dirty(x)
        x.add_(1)
        return x

    return function(torch, f).apply(t)


def dirty_notreturned(torch, t):
    def f(ctx, x):
        ctx.mark_dirty(x)
        x.add_(1)
        return x * 2

    return function(torch, f).apply(t)


def dirty_other(torch, t):
    def f(ctx, x):
        o = torch.zeros(2)
        ctx.mark_dirty(o)
        return o

    return function(torch, f).apply(t)


def nondiff_other(torch, t):
    def f(ctx, x):
        ctx.mark_non_differentiable(torch.ones(2))
        return x * 2

    return function(torch, f).apply(t)


def mat_false_attr(torch, t):
    def f(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    r = function(torch, f).apply(t)
    return r


def later(torch, t):
    keep = []

    def f(ctx, x):
        keep.append(ctx)
        ctx.save_for_backward(x)
        return x * 2

    y = function(torch, f).apply(t)
    a = outcome(lambda: [tuple(s.shape) for s in keep[0].saved_tensors])
    if t.requires_grad:
        y.sum().backward()
    return a, outcome(lambda: keep[0].saved_tensors), outcome(lambda: keep[0].needs_input_grad)


def bwd_twice(torch, t):
    def f(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def b(ctx, g):
        assert ctx.saved_tensors is not None
        return g

    y = function(torch, f, b).apply(t).sum()
    y.backward(retain_graph=True)
    a = t.grad.tolist()
    y.backward()
    return a, t.grad.tolist(), outcome(lambda: y.backward())


def save_none(torch, t):
    def f(ctx, x):
        ctx.save_for_backward(None, x, None)
        return x * 2

    def b(ctx, g):
        s = ctx.saved_tensors
        assert s[0] is None
        return g * s[1]

    y = function(torch, f, b).apply(t).sum()
    y.backward()
    return t.grad.tolist()


def save_replaced(torch, t):
    keep = []

    def f(ctx, x):
        ctx.save_for_backward(1)
        ctx.save_for_backward(x)
        return x * 2

    def b(ctx, g):
        keep.append(len(ctx.saved_tensors))
        return g

    y = function(torch, f, b).apply(t).sum()
    if t.requires_grad:
        y.backward()
    return keep


def save_intermediate(torch, t):
    def f(ctx, x):
        m = x.exp()
        ctx.save_for_backward(m)
        return m * 2

    def b(ctx, g):
        return g * ctx.saved_tensors[0]

    y = function(torch, f, b).apply(t).sum()
    y.backward()
    return [round(v, 3) for v in t.grad.tolist()]


def save_modified(torch, t):
    def f(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def b(ctx, g):
        return g * ctx.saved_tensors[0]

    z = t * 1
    y = function(torch, f, b).apply(z).sum()
    z.add_(1)
    y.backward()
    return t.grad.tolist()


def save_in_backward(torch, t):
    def f(ctx, x):
        return x * 2

    def b(ctx, g):
        ctx.save_for_backward(g)
        return g

    y = function(torch, f, b).apply(t).sum()
    y.backward()
    return t.grad.tolist()


def mark_in_backward(torch, t):
    def f(ctx, x):
        return x * 2

    def b(ctx, g):
        ctx.mark_dirty(g)
        ctx.set_materialize_grads(False)
        return g

    y = function(torch, f, b).apply(t).sum()
    y.backward()
    return t.grad.tolist()


def nondiff_all(torch, t):
    def f(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    y = function(torch, f).apply(t)
    return y.requires_grad, y.is_leaf


def nondiff_and_dirty(torch, t):
    def f(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x

    z = t * 1
    y = function(torch, f).apply(z)
    return y.requires_grad, y is z


def nondiff_input(torch, t):
    def f(ctx, x):
        ctx.mark_non_differentiable(x)
        return x

    y = function(torch, f).apply(t)
    return y.requires_grad, t.requires_grad, y is t


def ret_nontensor(torch, t):
    def f(ctx, x):
        return 3

    return function(torch, f).apply(t)


def ret_mixed(torch, t):
    def f(ctx, x):
        return x * 2, 3, None

    y = function(torch, f, lambda ctx, a, b, c: (a,)).apply(t)
    return y[0].requires_grad, y[1:]


def ret_str(torch, t):
    def f(ctx, x):
        return x * 2, "a"

    return function(torch, f).apply(t)[1]


def ret_list(torch, t):
    def f(ctx, x):
        return [x * 2, x * 3]

    r = function(torch, f).apply(t)
    return type(r).__name__


def no_backward_save(torch, t):
    class NB(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(2)
            return x

    return NB.apply(t).requires_grad


def setup(torch, t):
    class S(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(5)

        @staticmethod
        def backward(ctx, g):
            return g

    return S.apply(t).requires_grad


def nograd(torch, t):
    def f(ctx, x):
        ctx.save_for_backward(1)
        return x * 2

    with torch.no_grad():
        return function(torch, f).apply(t).requires_grad


def star(torch, t):
    def f(ctx, x):
        ctx.save_for_backward(*[x, x])
        return len(ctx.to_save) * x

    return function(torch, f).apply(t).sum().item()


def dirty_leaf_view(torch, t):
    def f(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    z = t * 1
    v = z[:1]
    function(torch, f).apply(v)
    return z.tolist()


def dirty_twice(torch, t):
    def f(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x, x)
        return x

    z = t * 1
    return function(torch, f).apply(z) is z


def dirty_nograd(torch, t):
    def f(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    with torch.no_grad():
        z = t * 1
        return function(torch, f).apply(z) is z


def dirty_mult(torch, t):
    def f(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x, x * 2

    z = t * 1
    r = function(torch, f, lambda ctx, a, b: a + b).apply(z)
    return r[0] is z, r[1].requires_grad


def setneeds(torch, t):
    def f(ctx, x):
        ctx.needs_input_grad = (False,)
        return x * 2

    y = function(torch, f).apply(t)
    return y.requires_grad


PROGRAMS = (
    dirty_full,
    dirty_notreturned,
    dirty_other,
    nondiff_other,
    mat_false_attr,
    later,
    bwd_twice,
    save_none,
    save_replaced,
    save_intermediate,
    save_modified,
    save_in_backward,
    mark_in_backward,
    nondiff_all,
    nondiff_and_dirty,
    nondiff_input,
    ret_nontensor,
    ret_mixed,
    ret_str,
    ret_list,
    no_backward_save,
    setup,
    nograd,
    star,
    dirty_leaf_view,
    dirty_twice,
    dirty_nograd,
    dirty_mult,
    setneeds,
)


@asked_of_torch("program", PROGRAMS, ids=lambda program: program.__name__)
def test_contexts_live_as_in_pytorch(program: Any) -> None:
    theirs = torch_or_skip()
    for grad in (False, True):
        found = [outcome(lambda: program(torch, torch.ones(2, requires_grad=grad))) for torch in (eager, theirs)]  # noqa: B023
        assert found[0] == found[1], grad
