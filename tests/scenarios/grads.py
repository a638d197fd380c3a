"""Gradients through compiled functions: whose, how often, to which order, and backward() inside."""

from __future__ import annotations

import eager as torch
from tests.scenarios.harness import attempt, program, state

nn = torch.nn


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


@program
def several_results_are_used_in_part(compile):
    w = leaf(3)
    c = compile(lambda x: (x * w, (x + w).exp(), x.sum(), w.detach() * x))
    found = []
    for use in ((0,), (1,), (0, 1), (0, 2), (2, 3), (0, 1, 2, 3)):
        x = leaf(3)
        results = c(x)
        total = sum(results[k].sum() for k in use)
        found += [[r.requires_grad for r in results], attempt(total.backward), state(x), state(w)]
    return found


@program
def results_that_are_differentiated_one_after_another(compile):
    w = leaf(3)
    c = compile(lambda x: (x * w, (x * w * w).sum()))
    found = []
    for keep in (True, False):
        a, b = c(torch.ones(3))
        a.sum().backward(retain_graph=keep)
        found += [attempt(b.backward), state(w), attempt(a.sum().backward), state(w)]
    return found


@program
def accumulated_over_calls(compile):
    w = leaf(2, 2)
    c = compile(lambda x: (x @ w).tanh().sum())
    for i in range(4):
        c(torch.ones(2) * i).backward()
        if i == 2:
            w.grad.zero_()
    (c(torch.ones(2)) + c(torch.zeros(3, 2))).backward()
    return state(w)


@program
def retain_graph_and_freed_graphs(compile):
    w = leaf(3)
    c = compile(lambda x: (x * w).pow(2).sum())
    y = c(torch.ones(3))
    y.backward(retain_graph=True)
    y.backward()
    return state(w), attempt(y.backward), state(w)


@program
def vector_cotangents(compile):
    w = leaf(3)
    c = compile(lambda x: x * w)
    y = c(torch.ones(3))
    y.backward(torch.arange(3.0))
    return state(w), attempt(c(torch.ones(3)).backward), torch.autograd.grad(c(torch.ones(3)), w, torch.ones(3))


@program
def gradients_of_gradients_outside(compile):
    w = leaf(3)
    c = compile(lambda x: (x.sin() * w).prod() + (w**3).sum())
    x = leaf(3)
    gx, gw = torch.autograd.grad(c(x), (x, w), create_graph=True)
    (gx.pow(2).sum() + gw.sum()).backward()
    h = torch.autograd.grad(torch.autograd.grad(c(x), x, create_graph=True)[0].sum(), x, create_graph=True)[0]
    return gx, gw, state(x), state(w), h, torch.autograd.grad(h.sum(), x)


@program
def gradients_of_gradients_inside(compile):
    def penalty(x, w):
        y = (x @ w).tanh().sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return (g.norm() - 1) ** 2 + y

    c = compile(penalty)
    found = []
    for _ in range(3):
        x, w = leaf(4, 3), leaf(3)
        y = c(x, w)
        y.backward()
        found += [y, state(x), state(w)]
    return found


@program
def a_gradient_penalty_step(compile):
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    @compile
    def step(x):
        x = x.clone().requires_grad_()
        y = net(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        loss = ((g.norm(dim=1) - 1) ** 2).mean() + y.mean()
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                if p.grad is not None:
                    p -= 0.1 * p.grad
        return loss

    return [step(torch.randn(5, 3)) for _ in range(6)], [state(p) for p in net.parameters()]


@program
def hessian_vector_products_inside(compile):
    def hvp(x, v):
        x = x.detach().requires_grad_()
        y = (x**3).sum() + x.prod()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return torch.autograd.grad((g * v).sum(), x)[0]

    c = compile(hvp)
    return [c(torch.randn(3), torch.randn(3)) for _ in range(3)]


@program
def backward_inside_on_arguments(compile):
    def f(x, w):
        y = (x * w).sum()
        y.backward()
        return y, x.grad

    c = compile(f)
    x, w = leaf(3), leaf(3)
    found = []
    for _ in range(3):
        y, g = c(x, w)
        found += [y, g.clone(), g is x.grad, state(x), state(w)]
    x.grad = None
    found += [c(x, w)[0], state(x), state(w)]
    return found


@program
def backward_inside_on_captured(compile):
    w, b = leaf(3), leaf(1)

    def f(x):
        loss = ((x * w + b) ** 2).mean()
        loss.backward()
        return loss.item(), w.grad.norm(), b.grad * 1

    c = compile(f)
    found = []
    for i in range(4):
        found += [c(torch.ones(3) * i), state(w), state(b)]
        if i == 1:
            w.grad, b.grad = None, torch.ones(1)
        if i == 2:
            w.grad.zero_()
    return found


@program
def backward_inside_into_a_history_outside(compile):
    a = leaf(3)

    def f(h, x):
        loss = (h * x).pow(2).sum()
        loss.backward()
        return loss.detach()

    c = compile(f)
    found = []
    for i in range(3):
        h = a.exp()
        found += [c(h, torch.ones(3) * i), state(a), attempt(c, h, torch.ones(3))]
    return found, state(a)


@program
def eager_around_compiled_around_eager(compile):
    w, v = leaf(3), leaf(3)
    inner = compile(lambda x: x.tanh() * w)
    outer = compile(lambda x: inner(x * v) + inner(x).sum())
    found = []
    for _ in range(3):
        x = leaf(3)
        y = (outer(x.exp()) * inner(x)).sum()
        y.backward()
        found += [y, state(x), state(w), state(v)]
    return found


@program
def no_grad_inside_and_around(compile):
    w = leaf(3)

    def f(x):
        with torch.no_grad():
            scale = (x * w).sum()
        with torch.enable_grad():
            y = w * x
        return y * scale, scale

    c = compile(f)
    found = []
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            y, s = c(torch.ones(3))
        found += [y, s, y.requires_grad, y.is_inference(), torch.is_grad_enabled()]
    y.sum().backward()
    return found, state(w)


@program
def inference_mode_inside(compile):
    w = leaf(3)

    def f(x):
        with torch.inference_mode():
            y = x * w
        return y, y.requires_grad

    c = compile(f)
    return c(torch.ones(3)), c(torch.ones(3))


@program
def requires_grad_is_toggled(compile):
    w, v = leaf(3), leaf(3)
    c = compile(lambda x: (x * w + v).sum())
    found = []
    for on in (True, False, True, False):
        w.requires_grad_(on)
        y = c(torch.ones(3))
        y.backward()
        found += [y, state(w), state(v)]
    v.requires_grad = False
    y = c(torch.ones(3))
    return found, y, y.requires_grad, attempt(y.backward)


@program
def requires_grad_is_set_inside(compile):
    def f(x):
        x.requires_grad_()
        y = (x * x).sum()
        return torch.autograd.grad(y, x)[0], y

    c = compile(f)
    x = torch.ones(3)
    g, y = c(x)
    return g, x.requires_grad, y.requires_grad, c(x)[0], c(torch.ones(3) * 2)[0]


@program
def frozen_and_tied_weights(compile):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 4)
            self.mid = nn.Linear(4, 4)
            self.out = nn.Linear(4, 5, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, i):
            return self.out(self.mid(self.embed(i)).relu())

    net = Tied()
    c = compile(net)
    found = []
    for frozen in (False, True, False):
        net.mid.requires_grad_(not frozen)
        net.zero_grad()
        y = c(torch.tensor([1, 2, 2]))
        y.pow(2).sum().backward()
        found += [y, [state(p) for p in net.parameters()]]
    return found


@program
def grad_is_read_and_changed_inside(compile):
    w = leaf(4)

    def f(x):
        (w * x).sum().backward()
        with torch.no_grad():
            n = w.grad.norm()
            w.grad.mul_(1 / (n + 1e-6))
            w.grad[0] = 0
            w.grad += 1
            w.sub_(0.1 * w.grad)
        seen = w.grad.clone()
        w.grad = None
        return seen, w.grad is None

    c = compile(f)
    return [(c(torch.arange(4.0) + i), state(w)) for i in range(3)]


@program
def grad_is_swapped_and_kept(compile):
    w = leaf(2)
    kept = []

    def f(x):
        (w * x).sum().backward()
        return w.grad

    c = compile(f)
    for i in range(3):
        kept.append(c(torch.ones(2) * (i + 1)))
        kept.append(kept[-1] is w.grad)
    old = w.grad
    w.grad = torch.full((2,), 7.0)
    c(torch.ones(2))
    return kept, old, state(w)


@program
def gradients_with_respect_to_captured_tensors(compile):
    w, unused = leaf(3), leaf(3)
    h = w * 2

    def f(x):
        y = (h * x).exp().sum()
        return torch.autograd.grad(y, [h, unused], allow_unused=True)[0]

    c = compile(f)
    return c(torch.ones(3)), attempt(compile(lambda x: torch.autograd.grad((w * x).sum(), unused)), torch.ones(3))


@program
def backward_of_inputs_only(compile):
    w, v = leaf(3), leaf(3)

    def f(x):
        y = (x * w * v).sum()
        y.backward(inputs=[w])
        return y.detach()

    c = compile(f)
    return [(c(torch.ones(3) * i), state(w), state(v)) for i in (1, 2)]


@program
def in_place_with_history(compile):
    w = leaf(3)

    def f(x):
        y = x * w
        y[0] = 0
        y[1:] *= w[1:]
        y.add_(w)
        z = y.clone()
        z.t().mul_(2) if z.dim() == 2 else z.exp_()
        return (y * z).sum()

    c = compile(f)
    found = []
    for _i in range(3):
        x = leaf(3)
        y = c(x)
        y.backward()
        found += [y, state(x), state(w)]
    return found


@program
def arguments_are_written_with_history(compile):
    w = leaf(3)

    def f(x):
        x.mul_(w)
        return x.sum()

    c = compile(f)
    found = []
    for _i in range(2):
        x = torch.ones(3)
        y = c(x)
        found += [x.requires_grad, x.is_leaf]
        (y + x[0]).backward()
        found += [y, x, state(w)]
    x = leaf(3)
    found.append(attempt(c, x))
    x = leaf(3).clone()
    before = x * 1
    y = c(x)
    (y + before.sum()).backward()
    return found, state(w), x


@program
def leaves_cannot_be_written(compile):
    w = leaf(3)

    def f(x):
        w.add_(x)
        return w * 1

    def g(x):
        w[0] = 1
        return w * x

    return attempt(compile(f), torch.ones(3)), attempt(compile(g), torch.ones(3)), state(w), attempt(compile(f), 1)


@program
def saved_values_are_overwritten(compile):
    w = leaf(3)

    def inside(x):
        y = (w * x).exp()
        z = y.sum()
        y.mul_(2)
        z.backward()
        return z

    outside = compile(lambda x: (w * x).exp())
    y = outside(torch.ones(3))
    x = torch.ones(3)
    z = compile(lambda x: (w * x).sum())(x)
    x.add_(1)
    return attempt(compile(inside), torch.ones(3)), attempt(z.backward), state(w), y.detach()


@program
def detached_and_reattached(compile):
    w = leaf(3)

    def f(x):
        h = (w * x).detach().requires_grad_()
        y = (h**2).sum()
        y.backward()
        (w * x).backward(h.grad)
        return y.detach(), h.grad

    c = compile(f)
    return [(c(torch.ones(3) * i), state(w)) for i in range(3)]


@program
def complex_gradients(compile):
    w = torch.randn(3, dtype=torch.complex64, requires_grad=True)
    c = compile(lambda x: (x * w).abs().pow(2).sum() + torch.fft.fft(w).real.sum())
    found = []
    for i in range(2):
        y = c(torch.ones(3) * i)
        y.backward()
        found += [y, state(w)]
    return found


@program
def data_dependent_paths_with_gradients(compile):
    w = leaf(3)

    def f(x):
        y = x * w
        return y.sum() if y.sum() > 0 else (y * y).sum()

    c = compile(f)
    found = []
    for s in (1.0, -1.0, 2.0, -2.0):
        y = c(torch.ones(3) * s)
        y.backward()
        found += [y, state(w)]
    return found
