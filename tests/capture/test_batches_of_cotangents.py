"""Gradients of one traced program for many cotangents: one graph for all of them, whatever their number."""

import numpy as np
import pytest

import eager as torch
import graphc
from eager import func

pytestmark = pytest.mark.on_numpy


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2


def scanned(x):
    return graphc.scan(lambda c, row: (c * torch.cos(row), c + row), x[:2], torch.stack([x[:2], x[:2]]))[1].flatten()


def by_slices(x):
    y = torch.sin(x)
    y = torch.cat([y[1:], y[:1] * 3])
    return torch.logsumexp(y[:, None] * x[None], 0)


INSIDE = {
    "products": lambda x: torch.outer(x, x) @ torch.tanh(x),
    "a number": lambda x: x.prod(),
    "a matrix": lambda x: torch.outer(x, torch.exp(x)),
    "slices": by_slices,
    "an op on each": lambda x: torch.sort(x * x).values.cumsum(0),
    "several results": lambda x: torch.linalg.eigh(torch.outer(x, x) + torch.diag(torch.arange(1, 6.0))).eigenvalues,
    "a normalization": lambda x: torch.nn.functional.layer_norm(x, (5,)),
    "softmax": lambda x: torch.softmax(x, 0) * torch.log_softmax(2 * x, 0),
    "a batch of products": lambda x: torch.outer(x, x) @ torch.stack([torch.outer(x, x), torch.eye(5)]),
    "indices": lambda x: x[torch.tensor([0, 0, 3])] * x[2],
    "independent": lambda x: torch.ones(3),
    "a write": lambda x: x.clone().index_fill_(0, torch.tensor([1]), 2.0) ** 2,
    "a Function": lambda x: Doubled.apply(x) * x,
    "a loop": scanned,
}
OUTSIDE = {
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "hessian": lambda f: func.hessian(lambda x: (f(x) ** 2).sum()),
    "rows in parts": lambda f: func.jacrev(f, chunk_size=2),
    "twice reverse": lambda f: func.jacrev(func.jacrev(f)),
    "of a batch": lambda f: lambda x: torch.vmap(func.jacrev(f))(torch.stack([x, 2 * x])),
    "differentiated": lambda f: func.grad(lambda x: (func.jacrev(f)(x) ** 2).sum()),
    "row by row": lambda f: lambda x: torch.autograd.functional.jacobian(f, x),
    "vectorized": lambda f: lambda x: torch.autograd.functional.jacobian(f, x, vectorize=True),
}
ONCE = {"a Function", "a loop"}  # which are asked for each cotangent: their other transforms are tested elsewhere


@pytest.mark.parametrize(
    ("inside", "outside"), [(i, o) for i in INSIDE for o in OUTSIDE if i not in ONCE or o == "jacrev"]
)
def test_compiled_is_eager(inside, outside):
    x = torch.tensor([0.3, -1.2, 0.8, 2.0, 0.5])
    f = OUTSIDE[outside](INSIDE[inside])
    expected = f(x)
    found = graphc.compile(f)(x)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("outside", [o for o in OUTSIDE if o != "rows in parts"])
def test_the_graph_does_not_grow(outside):
    def nodes(n):
        A = torch.randn(n, n)
        f = OUTSIDE[outside](lambda x: torch.tanh(A @ x) * x)
        return len(graphc.trace(f, torch.randn(n)).nodes)

    assert nodes(4) == nodes(9)


def test_no_cotangents():
    x = torch.randn(3)
    f = func.jacrev(lambda x: torch.cat([x, x])[:0])
    assert graphc.compile(f)(x).shape == f(x).shape == (0, 3)


def test_batched_cotangents_of_autograd():
    x, v, more = torch.randn(4, requires_grad=True), torch.randn(6, 4), torch.randn(9, 4)

    def f(x, v):
        y = torch.sin(x).cumsum(0)
        (g,) = torch.autograd.grad(y, x, v, is_grads_batched=True, create_graph=True)
        return torch.autograd.grad((g**3).sum(), (x, v))

    v.requires_grad_()
    for found, expected in zip(graphc.compile(f)(x, v), f(x, v), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    assert len(graphc.trace(f, x, v).nodes) == len(graphc.trace(f, x, more.requires_grad_()).nodes)


def test_hooks_see_each():
    seen = []

    def f(x):
        y = torch.sin(x)
        y.register_hook(lambda g: seen.append(1) or g * 2)
        return torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)[0]

    x = torch.randn(3, requires_grad=True)
    expected = f(x)
    np.testing.assert_allclose(graphc.compile(f)(x).numpy(), expected.numpy(), rtol=1e-6)
