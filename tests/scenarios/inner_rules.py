"""Gradient rules of the user's in functions given to control flow, and differentiated more than once."""

from __future__ import annotations

import eager as torch
import graphc
from eager.engine.function import once_differentiable
from tests.scenarios.harness import attempt, program, refused

GLOBAL = torch.tensor([1.5, 2.5, -1.0])


class Both(torch.autograd.Function):
    """Two outputs, two inputs, a gradient that is not the true one, what was saved in two ways."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.twice = x * 2
        return x**3 * w, x + 1

    @staticmethod
    def backward(ctx, g, other):
        x, w = ctx.saved_tensors
        return g * 3 * x**2 * w * 0.5 + other * ctx.twice, (g * x**3).sum() * GLOBAL.sum()


class Exp(torch.autograd.Function):
    """Its rule is made of itself."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        return g * Exp.apply(ctx.saved_tensors[0])


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2


def _leaves():
    w = torch.tensor(0.7, requires_grad=True)
    h = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    xs = torch.linspace(-1, 1, 5).reshape(5, 1).repeat(1, 3).requires_grad_()
    return w, h, xs


def _step(w, h, x):
    a, b = Both.apply(h + x * w, w)
    a = a * 1.0
    a.register_hook(lambda g: g * 0.9 * w)
    h.register_hook(lambda g: g * 2)
    return torch.tanh(a) + b * 0.1


LOOPS = {
    "scan": lambda w, h, xs: sum(t.sum() for t in graphc.scan(lambda h, x: (_step(w, h, x), h * x), h, xs)),
    "cond": lambda w, h, xs: graphc.cond(h.sum() > 0, lambda h: _step(w, h * 1, xs[0]).sum(), lambda h: h.sum(), h),
    "while_loop": lambda w, h, xs: graphc.while_loop(
        lambda s: s[0] < 4, lambda s: (s[0] + 1, _step(w, s[1], xs[0])), (torch.tensor(0), h))[1].sum(),
    "fori_loop": lambda w, h, xs: graphc.fori_loop(0, 3, lambda i, h: _step(w, h, xs[1]), h).sum(),
    "map": lambda w, h, xs: graphc.map(lambda x: _step(w, x.clone(), h), xs).sum(),
    "nested": lambda w, h, xs: graphc.scan(
        lambda h, x: (graphc.cond(h.sum() > 0, lambda q: _step(w, q * 1, x), lambda q: q * 2, h), None), h, xs,
    )[0].sum(),
}  # fmt: skip


def _gradients(fn, leaves, order):
    """The gradients of that order, of the squares of those before."""
    y = fn(*leaves)
    for k in range(order):
        found = torch.autograd.grad(y, leaves, create_graph=k < order - 1, allow_unused=True)
        y = sum((g**2).sum() for g in found if g is not None)
    return found


def _register(name, order):
    def outside(compile):
        c = compile(LOOPS[name])
        return [_gradients(c, _leaves(), order) for _ in range(2)]

    def inside(compile):
        c = compile(lambda w, h, xs: _gradients(LOOPS[name], (w, h, xs), order))
        return [c(*_leaves()) for _ in range(2)]

    for fn in (outside, inside):
        fn.__name__ = f"rules_in_{name}_of_order_{order}_{fn.__name__}"
        program(fn)


for _name in LOOPS:
    for _order in (1, 2):
        _register(_name, _order)


@program
def rules_made_of_rules(compile):
    def f(x, w):
        return graphc.scan(lambda h, r: (h * Exp.apply(r) * w, h), torch.tensor(1.0), x)[0] + Exp.apply(x * w).sum()

    x, w = torch.tensor([0.5, 0.2, -0.3], requires_grad=True), torch.tensor(0.7, requires_grad=True)
    return [_gradients(compile(f), (x, w), order) for order in (1, 2, 3)]


@program
def rules_differentiated_twice_outside_of_control_flow(compile):
    def f(x, w):
        y, s = Both.apply(x * 1.5, w)
        y.register_hook(lambda g: (g * w).clamp(-3, 3))
        z = s.clone()
        z.mul_(w)
        return (y * z).sum()

    x, w = torch.tensor([0.5, 1.0, -1.5], requires_grad=True), torch.tensor(0.7, requires_grad=True)
    return [_gradients(compile(f), (x, w), order) for order in (1, 2, 3)]


@program
def a_rule_that_reads_what_forward_does_not(compile):
    w = torch.tensor([1.5, 2.5], requires_grad=True)

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * w

    c = compile(lambda x: Scaled.apply(x * x).sum())
    found = []
    for _ in range(3):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = c(x)
        with torch.no_grad():
            w.add_(1)  # backward reads the new value
        found.append(torch.autograd.grad(y, x))
        (g,) = torch.autograd.grad(c(x), x, create_graph=True)
        found.append(torch.autograd.grad(g.sum(), [x, w]))
    return found


@program
def hooks_that_are_not_linear(compile):
    w = torch.tensor(2.0, requires_grad=True)

    def step(h, x):
        h.register_hook(lambda g: g.clamp(-1, 1))
        return h * w + x, h

    x = torch.ones(4, requires_grad=True)
    c = compile(lambda x: sum(t.sum() for t in graphc.scan(step, x[0], x)))
    return [torch.autograd.grad(c(x), [x, w]) for _ in range(2)]


@program
def a_rule_that_is_differentiated_once(compile):
    c = compile(lambda x: graphc.map(Once.apply, x).sum() + Once.apply(x).sum())
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    return _gradients(c, (x,), 1), attempt(_gradients, c, (x,), 2)[0]


@program
def rules_that_raise(compile):
    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class Failing(Forward):
        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    x, found = torch.ones(2, requires_grad=True), []
    for kind in (Forward, Failing):
        c = compile(lambda x, kind=kind: kind.apply(x * 3).sum())
        inner = compile(lambda x, kind=kind: graphc.map(kind.apply, x).sum())
        for _ in range(2):
            y = c(x)
            found += [y, attempt(y.backward), inner(x), attempt(inner(x).backward)[0]]
    return found


@refused("is not linear in the gradient")
def gradients_of_gradients_through_a_clipping_hook_in_a_while_loop(compile):
    def step(h):
        h.register_hook(lambda g: g.clamp(-1, 1))
        return h * h

    def f(x):
        y = graphc.while_loop(lambda h: h.sum() < 100, step, x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return torch.autograd.grad(g.sum(), x)

    return compile(f)(torch.tensor([1.5, 2.0], requires_grad=True))


@refused("registers a hook on a tensor from outside")
def a_hook_in_a_loop_on_a_tensor_from_outside(compile):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g)

        def step(h, _):
            y.register_hook(lambda g: g * 2)
            return h + y, None

        return graphc.scan(step, y, length=3)[0].sum()

    compile(f)(torch.ones(2, requires_grad=True)).backward()


@refused("reads what is computed from the very tensor")
def a_hook_in_a_loop_that_reads_what_comes_later(compile):
    def step(h, _):
        y = h * 2
        s = y.sum()
        y.register_hook(lambda g: g * s)
        return y, None

    compile(lambda x: graphc.scan(step, x, length=3)[0].sum())(torch.ones(2, requires_grad=True)).backward()
