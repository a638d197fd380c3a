"""Hooks, autograd.Functions, torch.func and checkpoints in compiled functions."""

from __future__ import annotations

import eager as torch
from eager.utils.checkpoint import checkpoint, checkpoint_sequential
from tests.scenarios.harness import attempt, program, state

nn = torch.nn


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


@program
def hooks_on_arguments_and_parameters_outside(compile):
    w = leaf(3)
    w.register_hook(lambda g: g * 2)
    c = compile(lambda x: (x * w).sum())
    found = []
    for _i in range(3):
        x = leaf(3)
        handle = x.register_hook(lambda g: g.clamp(max=0.1))
        y = c(x)
        y.register_hook(lambda g: g * 3)
        y.backward()
        handle.remove()
        found += [y, state(x), state(w)]
    return found


@program
def hooks_with_backward_inside(compile):
    w = leaf(3)
    handle = w.register_hook(lambda g: g * 2)

    def f(x):
        h = x * w
        h.register_hook(lambda g: g + 1)
        h.sum().backward()
        return w.grad * 1

    c = compile(f)
    found = [c(torch.ones(3)), c(torch.ones(3)), state(w)]
    handle.remove()
    found += [c(torch.ones(3)), state(w)]
    w.register_hook(lambda g: -g)
    return found, c(torch.ones(3)), state(w)


@program
def hooks_on_intermediates(compile):
    w = leaf(3)

    def f(x):
        h = x * w
        h.register_hook(lambda g: g * 10)
        return h.sum(), h

    c = compile(f)
    found = []
    for i in range(3):
        y, h = c(torch.ones(3) * i)
        (y + h.sum()).backward()
        found += [y, state(w)]
    return found


@program
def retained_grads(compile):
    w = leaf(3)

    def f(x):
        h = x * w
        h.retain_grad()
        (h**2).sum().backward()
        return h.grad, h.detach()

    c = compile(f)
    return [(c(torch.ones(3) * i), state(w)) for i in (1, 2)]


@program
def hooks_that_return_what_they_must_not(compile):
    w = leaf(3)
    w.register_post_accumulate_grad_hook(lambda p: p.grad)
    return attempt(compile(lambda x: (w * x).sum().backward()), torch.ones(3)), state(w)


@program
def module_hooks(compile):
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    net[0].register_forward_hook(lambda m, args, out: out * 2)
    net[1].register_forward_pre_hook(lambda m, args: (args[0] - 0.5,))
    c = compile(net)
    found = []
    for i in range(3):
        y = c(torch.ones(2, 3) * i)
        y.sum().backward()
        found += [y, [state(p) for p in net.parameters()]]
        if i == 1:
            net[2].register_forward_hook(lambda m, args, out: -out)
    return found


@program
def full_backward_hooks_of_modules(compile):
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    net[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,))

    def f(x):
        net.zero_grad()
        net(x).sum().backward()
        return [p.grad * 1 for p in net.parameters()]

    c = compile(f)
    return [c(torch.ones(2, 3) * i) for i in range(3)]


@program
def hooks_after_accumulation(compile):
    w = leaf(3)

    def halve(p):
        p.grad.mul_(0.5)

    w.register_post_accumulate_grad_hook(halve)

    def f(x):
        (w * x).sum().backward()
        return w.grad * 1

    c = compile(f)
    return [(c(torch.ones(3) * i), state(w)) for i in range(3)]


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x


class SumDifference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.scale = scale
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b)
        return (a + b) * scale, a - b, (a > b)

    @staticmethod
    def backward(ctx, gs, gd, _):
        a, _b = ctx.saved_tensors
        ga = torch.zeros_like(a)
        if gs is not None:
            ga = ga + gs * ctx.scale
        if gd is not None:
            ga = ga + gd
        return ga, None, None


class Clip(torch.autograd.Function):
    """Straight through."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-0.5, 0.5)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


@program
def functions_of_the_users(compile):
    w = leaf(3)
    c = compile(lambda x: (Square.apply(x * w) + Clip.apply(x)).sum())
    found = []
    for _i in range(3):
        x = leaf(3)
        y = c(x)
        y.backward()
        found += [y, state(x), state(w)]
    return found


@program
def functions_with_several_outputs(compile):
    def f(a, b, s):
        p, q, m = SumDifference.apply(a, b, s)
        return p.sum(), q.sum(), m

    c = compile(f)
    found = []
    for use in ((0,), (1,), (0, 1)):
        a, b = leaf(3), leaf(3)
        results = c(a, b, 3.0)
        sum(results[k] for k in use).backward()
        found += [results, state(a), state(b)]
    return found


@program
def functions_with_backward_inside(compile):
    w = leaf(3)

    def f(x):
        y = Square.apply(w) * x
        y.sum().backward()
        return y

    c = compile(f)
    return [(c(torch.ones(3) * i), state(w)) for i in range(3)]


@program
def functions_that_write(compile):
    def f(x):
        y = x * 1
        z = Doubled.apply(y)
        return z.sum(), z is y, y * 1

    c = compile(f)
    found = []
    for _i in range(2):
        x = leaf(3)
        y, same, copy = c(x)
        (y + copy[0]).backward()
        found += [y, same, copy, state(x)]
    return found


@program
def double_backward_of_functions_inside(compile):
    def f(x):
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(Square.apply(x).pow(2).sum(), x, create_graph=True)
        return torch.autograd.grad(g.sum(), x)[0]

    c = compile(f)
    return [c(torch.ones(3) * i) for i in range(3)]


@program
def func_transforms_inside(compile):
    def loss(w, x):
        return ((x @ w).tanh() ** 2).sum()

    w, x = torch.randn(3), torch.randn(4, 3)
    grad = compile(lambda w, x: torch.func.grad(loss)(w, x))
    both = compile(lambda w, x: torch.func.grad_and_value(loss, argnums=(0, 1))(w, x))
    rows = compile(lambda w, x: torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x))
    jac = compile(lambda w, x: torch.func.jacrev(lambda w: (x @ w).exp())(w))
    hess = compile(lambda w, x: torch.func.hessian(loss)(w, x))
    found = []
    for i in range(2):
        found += [grad(w, x), both(w, x), rows(w, x), jac(w, x), hess(w, x)]
        x = x + i + 1
    return found


@program
def vjp_and_jvp_inside(compile):
    def f(x, v):
        y, pull = torch.func.vjp(lambda x: x.sin() * x.sum(), x)
        z, dz = torch.func.jvp(lambda x: x.sin() * x.sum(), (x,), (v,))
        return y, pull(v), z, dz

    c = compile(f)
    return [c(torch.randn(3), torch.randn(3)) for _ in range(3)]


@program
def vmap_of_the_compiled(compile):
    w = torch.randn(3)
    c = compile(lambda x: (x * w).softmax(0))
    x = torch.randn(4, 3)
    return torch.func.vmap(c)(x), torch.func.grad(lambda x: c(x)[0])(x[0]), torch.func.jacrev(c)(x[0])


@program
def functional_calls(compile):
    net = nn.Linear(3, 2)
    params = {name: p.detach() for name, p in net.named_parameters()}

    def loss(params, x):
        return torch.func.functional_call(net, params, (x,)).pow(2).sum()

    c = compile(torch.func.grad(loss))
    found = []
    for i in range(3):
        g = c(params, torch.ones(4, 3) * (i + 1))
        found.append(g)
        params = {k: params[k] - 0.01 * g[k] for k in params}
    return found, params


@program
def checkpoints(compile):
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3), nn.Tanh())

    def f(x):
        y = checkpoint(net, x, use_reentrant=False)
        z = checkpoint_sequential(net, 2, y, use_reentrant=False)
        return z.sum()

    c = compile(f)
    found = []
    for i in range(3):
        net.zero_grad()
        y = c(torch.ones(2, 3) * i)
        y.backward()
        found += [y, [state(p) for p in net.parameters()]]
    return found


@program
def checkpoints_with_backward_inside(compile):
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 3))

    def f(x):
        net.zero_grad()
        y = checkpoint(net, x, use_reentrant=False).pow(2).sum()
        y.backward()
        return y

    c = compile(f)
    return [(c(torch.ones(2, 3) * i), [state(p) for p in net.parameters()]) for i in range(3)]


@program
def an_error_in_a_users_backward(compile):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise KeyError("bad")

    w = leaf(3)

    def f(x):
        y = Bad.apply(w * x).sum()
        y.backward()
        return y

    return attempt(compile(f), torch.ones(3)), state(w)
