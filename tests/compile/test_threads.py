"""Many threads compile and call at once: right results, no deadlock, a bounded cache.

GRAPHC_TEST_SECONDS=30 is the long run.
"""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from graphc.compiling.specializations import LARGEST

THREADS = 8

SECONDS = float(os.environ.get("GRAPHC_TEST_SECONDS", "0.5"))


def together(work, seconds=SECONDS):
    """Call `work(thread, turn)` in all threads for some seconds, once at least; the first exception is raised here."""
    failures: list[BaseException] = []
    start, end = threading.Barrier(THREADS), time.monotonic() + seconds

    def run(thread):
        try:
            start.wait()
            turn = 0
            while (not turn or time.monotonic() < end) and not failures:
                work(thread, turn)
                turn += 1
        except BaseException as error:  # it is raised in the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


def test_the_harness_sees_a_failure():
    def work(thread, turn):
        assert thread != 3, "planted"

    with pytest.raises(AssertionError, match="planted"):
        together(work, 0.2)


def test_one_function_with_many_shapes_and_values():
    f = graphc.compile(lambda x, k: (x * k).sum() if x.sum() > 0 else x.sum() - k)

    def work(thread, turn):
        n, k, sign = 1 + (thread + turn) % 5, turn % 3, 1 if turn % 2 else -1
        got = f(torch.full((n,), float(sign)), k).item()
        assert got == (n * k if sign > 0 else -n - k), (n, k, sign, got)

    together(work)
    assert len(f._specializations) <= LARGEST


def test_more_signatures_than_the_cache_holds():
    f = graphc.compile(lambda x, k: x + k, dynamic=False)

    def work(thread, turn):
        k = (thread * 31 + turn) % (2 * LARGEST)
        assert f(torch.zeros(2), k).tolist() == [k, k]

    together(work)
    assert len(f._specializations) <= LARGEST


def test_functions_made_by_each_thread():
    def work(thread, turn):
        k = thread * 100 + turn
        f = graphc.compile(lambda x: torch.tanh(x) * k)
        np.testing.assert_allclose(f(torch.ones(3)).numpy(), np.tanh(np.ones(3)) * k, rtol=1e-5)

    together(work)


def test_a_shared_module_with_gradients():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    f = graphc.compile(net)
    inputs = [torch.randn(3, 4) for _ in range(THREADS)]
    want = []
    for x in inputs:
        x = x.clone().requires_grad_()
        y = net(x).sum()
        want.append((y.item(), torch.autograd.grad(y, x)[0].numpy()))

    def work(thread, turn):
        k = (thread + turn) % THREADS
        x = inputs[k].clone().requires_grad_()
        y = f(x).sum()
        np.testing.assert_allclose(y.item(), want[k][0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(torch.autograd.grad(y, x)[0].numpy(), want[k][1], rtol=1e-4, atol=1e-5)

    together(work)
    assert len(f._compiled._log) <= 2


def test_training_with_state_of_each_thread():
    def trainer(seed):
        w = torch.full((3,), float(seed), requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)

        def step(x):
            opt.zero_grad()
            loss = ((w - x) ** 2).sum()
            loss.backward()
            opt.step()
            return loss

        return step, w

    x = torch.tensor([1.0, 2.0, 3.0])
    compiled = [(graphc.compile(step), w) for step, w in map(trainer, range(THREADS))]
    plain = [trainer(k) for k in range(THREADS)]

    def work(thread, turn):
        if turn < 20:
            got, want = compiled[thread][0](x).item(), plain[thread][0](x).item()
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(
                compiled[thread][1].detach().numpy(), plain[thread][1].detach().numpy(), rtol=1e-4
            )
        else:
            time.sleep(0.01)

    together(work)


def test_a_counter_in_a_tensor_that_all_threads_add_to():
    total = torch.zeros(())
    done = [0] * THREADS

    @graphc.compile
    def add(x):
        total.add_(x)

    one = torch.ones(())

    def work(thread, turn):
        if turn < 200:
            add(one)
            done[thread] += 1
        else:
            time.sleep(0.01)

    together(work)
    assert total.item() == sum(done)


def test_functions_that_call_one_another_are_compiled_from_both_ends():
    @graphc.compile
    def a(x, n):
        return x if n == 0 else b(x + 1, n - 1)

    @graphc.compile
    def b(x, n):
        return x if n == 0 else a(x * 2, n - 1)

    def work(thread, turn):
        n, fn = turn % 4, (a, b)[thread % 2]
        want = 1.0
        for i in range(n):
            want = want + 1 if (i % 2 == 0) == (fn is a) else want * 2
        assert fn(torch.ones(()), n).item() == want

    together(work)
