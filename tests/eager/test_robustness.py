"""Long graphs, memory, threads."""

import gc
import threading
import tracemalloc

import numpy as np
import pytest

import eager as torch

LENGTH = 200_000
MEGABYTE = 1 << 20


def test_a_long_chain():
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(LENGTH):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0 and y.item() == LENGTH + 1
    del y  # must not recurse either
    assert gc.collect() < LENGTH


def test_a_long_chain_dropped_before_backward():
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(LENGTH):
        y = y * 1.0
    del y


def test_a_long_chain_of_in_place_writes():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    for _ in range(20_000):
        y.add_(1)
    y[0].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 1.0]


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * 2 + 0 * x + 0 * y


def plain(x):
    ((x * x).exp() * x).sum().backward()


def hooked(x):
    y = x * x
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_hook(lambda gi, go: None)
    (y.exp() * x).sum().backward()


def retained(x):
    y = x * x
    y.retain_grad()
    y.exp().sum().backward()


def custom(x):
    Twice.apply(Twice.apply(x) * x).sum().backward()


def views(x):
    y = x * 1
    y[: len(x) // 2].mul_(2)
    y.view(2, -1)[0].add_(x[: len(x) // 2])
    a, b = y.chunk(2)
    (a * b).sum().backward()


def second_order(x):
    (g,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (g * g).sum().backward()


def never_run_backward(x):
    ((x * x).exp() * Twice.apply(x)).sum()


def failed(x):
    y = x * x
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.exp().sum().backward()


@pytest.mark.parametrize(
    "run", [plain, hooked, retained, custom, views, second_order, never_run_backward, failed], ids=lambda f: f.__name__
)
def test_memory_is_released_at_once(run):
    x = torch.ones(MEGABYTE // 4, requires_grad=True)
    run(x)  # imports, caches
    x.grad = None
    gc.disable()
    try:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        run(x)
        x.grad = None
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert after - before < MEGABYTE // 4


def test_saved_values_are_released_while_the_result_lives():
    x = torch.ones(MEGABYTE // 4, requires_grad=True)
    x.grad = torch.zeros_like(x)
    tracemalloc.start()
    total = ((x * x).exp() * x).sum()
    held = tracemalloc.get_traced_memory()[0]
    total.backward()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held > 3 * MEGABYTE // 4 and after < MEGABYTE // 4


def test_threads_with_graphs_of_their_own():
    errors, results = [], {}

    def work(k):
        try:
            rng = np.random.default_rng(k)
            for _ in range(50):
                x = torch.from_numpy(rng.normal(size=20)).requires_grad_()
                y = x
                for _ in range(10):
                    y = torch.tanh(y * 1.5 + k)
                y.sum().backward()
                (g,) = torch.autograd.grad((x * x).sum(), x)
                assert torch.equal(g, 2 * x.detach())
            results[k] = x.grad
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and len(results) == 8


def test_threads_that_share_a_leaf():
    x = torch.ones(50, requires_grad=True)
    errors = []

    def work(k):
        try:
            for _ in range(100):
                (x * (k + 1)).sum().backward()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert x.grad.tolist() == [100.0 * sum(range(1, 9))] * 50


def test_threads_in_other_modes():
    seen = {}

    def work(k):
        with torch.set_grad_enabled(k % 2 == 0):
            x = torch.ones(2, requires_grad=True)
            seen[k] = [(x * 2).requires_grad for _ in range(200)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(set(flags) == {k % 2 == 0} for k, flags in seen.items())
