"""Writes, gradients, results and exceptions together: what one does to the other."""

from __future__ import annotations

import numpy as np

import eager as torch
from tests.scenarios.harness import attempt, program, refused, state

nn = torch.nn


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


@program
def a_leaf_is_used_before_and_after_it_is_written(compile):
    w = leaf(3)

    def f(x):
        a = (w * x).sum()
        with torch.no_grad():
            w.add_(1)
        b = (w * w * x).sum()
        return a, b, torch.autograd.grad(a + b, w, retain_graph=True)[0]

    c = compile(f)
    found = []
    for i in range(3):
        a, b, g = c(torch.ones(3) * i)
        (a * 2 + b).backward()
        found += [a, b, g, state(w)]
    return found


@program
def backward_inside_after_a_write_of_the_leaf(compile):
    w = leaf(3)

    def f(x):
        first = (w * x).sum()
        with torch.no_grad():
            w.mul_(2)
        ((w**2).sum() + first).backward()
        return w.grad[0], w.grad

    c = compile(f)
    found = []
    for i in range(3):
        part, g = c(torch.ones(3) * i)
        part.add_(100)
        found += [part, g, state(w)]
    return found


@program
def an_argument_requires_grad_inside_and_gets_its_gradient(compile):
    def f(x):
        x.requires_grad_(True)
        (x**3).sum().backward()
        return x.grad

    c = compile(f)
    x = torch.ones(3)
    g = c(x)
    return g, g is x.grad, state(x), c(x), state(x), state(torch.ones(1)), c(torch.ones(3) * 2)


@program
def a_captured_tensor_requires_grad_inside(compile):
    w = torch.randn(3)

    def f(x):
        w.requires_grad_(True)
        y = (w * x).sum()
        y.backward()
        return y.detach()

    c = compile(f)
    return [(c(torch.ones(3)), state(w)) for _ in range(3)]


@program
def requires_grad_is_taken_away_inside(compile):
    def f(x):
        y = (x * 2).sum()
        x.requires_grad_(False)
        return y, (x * 3).sum()

    c = compile(f)
    x = leaf(3)
    y, z = c(x)
    y.backward()
    return y, z, x.requires_grad, y.requires_grad, z.requires_grad


@program
def nested_compiled_functions_write(compile):
    count, w = torch.zeros(3), leaf(3)

    @compile
    def inner(x):
        count.add_(x)
        return (w * count.clone()).sum()

    @compile
    def outer(x):
        a = inner(x)
        count.mul_(2)
        return a + inner(x * 2)

    found = []
    for _i in range(3):
        y = outer(torch.ones(3))
        z = inner(torch.ones(3))
        (y + z).backward()
        found += [y, z, count.clone(), state(w)]
    return found


@program
def an_exception_after_writes(compile):
    w, p = torch.zeros(3), leaf(3)

    def f(x, n):
        w.add_(x)
        (p * x).sum().backward()
        x.mul_(2)
        if n > 1:
            raise ValueError(f"n is {n}")
        return w * x

    c = compile(f)
    found = []
    for n in (1, 2, 1, 3, 2):
        x = torch.ones(3)
        found += [attempt(c, x, n), x, w.clone(), state(p)]
    return found


@program
def an_exception_from_an_op_after_writes(compile):
    w = torch.zeros(3)

    def f(x, y):
        w.add_(1)
        z = x @ y
        w.add_(1)
        return z

    c = compile(f)
    return [(attempt(c, torch.ones(2, 3), torch.ones(n, 2)), w.clone()) for n in (3, 2, 3, 4)]


@program
def views_of_history_are_arguments(compile):
    w = leaf(4, 3)
    c = compile(lambda row, rest: (row * rest).sum())
    found = []
    for _i in range(3):
        h = w * 1
        y = c(h[0], w[1:])
        y.backward()
        found += [y, state(w)]
    return found


@program
def the_caller_writes_what_was_given_and_got(compile):
    w = leaf(3)
    c = compile(lambda x: ((x * w), x.exp()))
    found = []
    x = torch.ones(3)
    for i in range(4):
        y, e = c(x)
        x.add_(1)
        e.zero_()
        found += [y.detach().clone(), e]
        array = np.full(3, float(i), np.float32)
        z, _ = c(torch.from_numpy(array))
        array[:] = -1
        found.append(z.detach())
    return found


@program
def state_that_was_returned_stays_what_eager_makes_it(compile):
    w = torch.zeros(3)

    def f(x):
        w.add_(x)
        return w, w.detach(), w[1:], w * 1, w.clone()

    c = compile(f)
    return [c(torch.ones(3)) for _ in range(4)], w


@program
def results_of_each_call_are_kept(compile):
    w = leaf(3)
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    @compile
    def step(x):
        opt.zero_grad()
        loss = (w * x).pow(2).sum()
        loss.backward()
        opt.step()
        return loss.detach(), w.detach().clone(), w.grad.clone(), opt.state[w]["momentum_buffer"].clone()

    return [step(torch.ones(3)) for _ in range(5)], state(w)


@program
def a_gradient_is_shared_by_two_tensors(compile):
    a, b = leaf(3), leaf(3)

    def f(x):
        (a * x).sum().backward()
        b.grad = a.grad
        b.grad.mul_(2)
        return a.grad * 1

    c = compile(f)
    first = c(torch.ones(3))
    return first, state(a), state(b), a.grad is b.grad


@program
def gradients_of_a_copy_of_the_argument(compile):
    def f(x):
        x = x.detach().clone().requires_grad_(True)
        for _ in range(3):
            loss = (x - 2).pow(2).sum()
            (g,) = torch.autograd.grad(loss, x)
            x = (x - 0.1 * g).detach().requires_grad_(True)
        return x, loss

    c = compile(f)
    x = torch.zeros(3)
    for _ in range(3):
        x, loss = c(x)
    return x, loss, x.requires_grad, x.is_leaf


@program
def an_adversarial_example(compile):
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    @compile
    def attack(x, y):
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(3):
            loss = nn.functional.cross_entropy(net(x + delta), y)
            loss.backward()
            delta.data = (delta + 0.1 * delta.grad.sign()).clamp(-0.2, 0.2)
            delta.grad.zero_()
        return delta.detach()

    found = [attack(torch.randn(4, 3), torch.randint(0, 2, (4,))) for _ in range(3)]
    return found, [state(p) for p in net.parameters()]


@program
def a_step_inside_the_step(compile):
    """One step of MAML: gradients through an update."""
    w = leaf(3)
    outer = torch.optim.Adam([w], lr=0.1)

    @compile
    def step(x, y):
        inner = ((w * x).sum() - y) ** 2
        (g,) = torch.autograd.grad(inner, w, create_graph=True)
        adapted = w - 0.1 * g
        loss = ((adapted * x).sum() - y - 1) ** 2
        outer.zero_grad()
        loss.backward()
        outer.step()
        return loss.item()

    return [step(torch.ones(3) * i, torch.tensor(float(i))) for i in range(6)], state(w)


@program
def a_parameter_is_replaced(compile):
    net = nn.Linear(2, 2)
    c = compile(lambda x: net(x).sum())
    found = []
    for i in range(3):
        y = c(torch.ones(2))
        y.backward()
        found += [y, state(net.weight)]
        net.weight = nn.Parameter(torch.full((2, 2), float(i)))
    del net.weight
    return found, attempt(c, torch.ones(2))


@program
def grads_are_moved_between_models(compile):
    a, b = nn.Linear(2, 1), nn.Linear(2, 1)

    @compile
    def step(x):
        for p in a.parameters():
            p.grad = None
        a(x).pow(2).sum().backward()
        for p, q in zip(a.parameters(), b.parameters(), strict=True):
            q.grad = p.grad.clone()
            q.data.add_(q.grad, alpha=-0.1)

    for _ in range(3):
        step(torch.ones(3, 2))
    return [state(p) for p in (*a.parameters(), *b.parameters())]


@refused("assigning to .data")
def data_of_another_tensor(compile):
    a, b = torch.ones(2), torch.zeros(2)

    def f(x):
        a.data = b
        a.add_(x)
        return a

    return compile(f)(torch.ones(2)), a, b


@program
def a_leaf_made_inside_and_what_depends_on_it(compile):
    def f(x):
        w = x.clone().requires_grad_(True)
        return w, (w * 2).sum()

    w, y = compile(f)(torch.ones(2))
    y.backward()
    return state(w)


@program
def leaves_made_inside(compile):
    def f(x):
        w = x.clone().requires_grad_(True)
        y = (x * 2).detach()
        return w, y, y[1:].detach().requires_grad_(True), x.sum()

    w, y, part, total = compile(f)(torch.ones(3))
    (w * 3).sum().backward()
    (part * 2).sum().backward()
    y.zero_()
    return state(w), w.is_leaf, y, state(part), total
