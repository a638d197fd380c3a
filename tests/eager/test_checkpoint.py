"""Checkpointing: the gradients of the plain run, fewer saved values, the same random numbers."""

import tracemalloc
from contextlib import contextmanager, nullcontext

import pytest

import eager as torch
from eager.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop


def deep(x):
    for _ in range(10):
        x = torch.tanh(x * 1.1)
    return x


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradients_are_the_same(use_reentrant):
    a, b = (torch.linspace(-1, 1, 5).requires_grad_() for _ in range(2))
    deep(a).sum().backward()
    checkpoint(deep, b, use_reentrant=use_reentrant).sum().backward()
    assert a.grad.tolist() == b.grad.tolist()


def test_it_saves_memory():
    x = torch.ones(100_000, requires_grad=True)

    def held(run):
        tracemalloc.start()
        result = run()
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del result
        return used

    plain = held(lambda: deep(x))
    saved = held(lambda: checkpoint(deep, x, use_reentrant=False))
    assert saved < plain / 4


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_random_numbers_are_drawn_again(use_reentrant):
    torch.manual_seed(3)
    x = torch.ones(50, requires_grad=True)
    out = checkpoint(lambda x: x * (torch.rand(50) > 0.5), x, use_reentrant=use_reentrant)
    torch.rand(7)
    out.sum().backward()
    assert out.tolist() == x.grad.tolist()


def test_another_second_run_is_an_error():
    calls = []

    def fickle(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()

    out = checkpoint(fickle, torch.ones(2, requires_grad=True), use_reentrant=False)
    with pytest.raises(CheckpointError, match="A different number of tensors"):
        out.sum().backward()


def test_the_second_run_stops_when_it_has_what_it_needs():
    ran = []

    def f(x):
        y = x.exp()
        ran.append("middle")
        y = y.sin()
        ran.append("end")
        return y * 2

    x = torch.ones(2, requires_grad=True)
    out = checkpoint(f, x, use_reentrant=False)
    ran.clear()
    out.sum().backward()
    assert ran == ["middle"]
    for settings, block in (({"early_stop": False}, nullcontext()), ({}, set_checkpoint_early_stop(False))):
        with block:
            out = checkpoint(f, x, use_reentrant=False, **settings)
        ran.clear()
        out.sum().backward()
        assert ran == ["middle", "end"]


def test_each_run_has_a_context_of_its_own():
    inside = []

    @contextmanager
    def noted(name):
        inside.append(name)
        yield
        inside.append(f"end of {name}")

    x = torch.ones(2, requires_grad=True)
    given = {"context_fn": lambda: (noted("first"), noted("second")), "debug": True}
    out = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False, **given)
    assert inside == ["first", "end of first"]
    out.sum().backward()
    assert inside[2:] == ["second"]  # which ends by an error, once all that is needed is there
    with pytest.raises(ValueError, match="is only supported when use_reentrant=False"):
        checkpoint(torch.exp, x, use_reentrant=True, **given)


def test_segments():
    layers = [torch.tanh, torch.sin, torch.exp, torch.cos, torch.sigmoid]
    a, b = (torch.linspace(-1, 1, 4).requires_grad_() for _ in range(2))
    y = a
    for layer in layers:
        y = layer(y)
    y.sum().backward()
    checkpoint_sequential(layers, 3, b, use_reentrant=False).sum().backward()
    assert a.grad.tolist() == b.grad.tolist()


def test_second_derivatives():
    x = torch.tensor(0.3, requires_grad=True)
    y = checkpoint(lambda x: x.sin() * x, x, use_reentrant=False)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert h.item() == pytest.approx(2 * torch.cos(x).item() - 0.3 * torch.sin(x).item(), rel=1e-6)
