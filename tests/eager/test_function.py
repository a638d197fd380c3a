"""autograd.Function: errors leave the engine usable; capture by graphc.compile; second derivatives."""

import numpy as np
import pytest

import eager as torch
import graphc


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class Moments(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x.sum() * scale, (x * x).sum()

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return first * ctx.scale + second * 2 * x, None


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if Fails.broken:
            raise ValueError("no gradient today")
        return g * 2

    broken = True


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_an_error_in_backward_leaves_the_same_graph_usable(monkeypatch):
    x = leaf(1.0, 2.0)
    y = (Fails.apply(x) * x).sum()
    with pytest.raises(ValueError, match="today"):
        y.backward(retain_graph=True)
    other = leaf(3.0)
    (other * other).backward()
    assert other.grad.tolist() == [6.0]
    monkeypatch.setattr(Fails, "broken", False)
    x.grad = None
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_an_error_in_forward_records_nothing():
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("forward")

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(1.0)
    with pytest.raises(KeyError):
        Bad.apply(x)
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_captured_values_and_gradients_equal_eagers():
    def f(x):
        a, b = Moments.apply(Cube.apply(x), 2.5)
        return a + b

    plain, compiled = leaf(0.5, -1.5, 2.0), leaf(0.5, -1.5, 2.0)
    expected = f(plain)
    expected.backward()
    result = graphc.compile(f)(compiled)
    result.backward()
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(compiled.grad.numpy(), plain.grad.numpy(), rtol=1e-6)


def test_derivatives_of_any_order():
    x = leaf(2.0)
    values = [Cube.apply(x)]
    for _ in range(3):
        values.append(torch.autograd.grad(values[-1], x, create_graph=True)[0])
    assert [v.item() for v in values] == [8.0, 12.0, 12.0, 6.0]


def test_one_of_two_outputs():
    for pick, expected in ((0, [2.0, 2.0]), (1, [2.0, 6.0])):
        x = leaf(1.0, 3.0)
        Moments.apply(x, 2.0)[pick].backward()
        assert x.grad.tolist() == expected


def test_what_was_saved_is_freed_and_checked():
    x = leaf(1.0)
    y = Cube.apply(x * 1)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    z = x * 1
    y = Cube.apply(z)
    z.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of Add, is at version 1"):
        y.backward()
