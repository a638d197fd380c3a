"""A few programs that between them have what programs have: what a mode of one's own is tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import eager as torch
import graphc
from eager.core.tensor import Tensor


def specimens(seed: int = 0) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """(name, function, arguments), with new tensors each time."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int, grad: bool = True) -> Tensor:
        made = Tensor._wrap(rng.standard_normal(shape).astype(np.float32))
        return made.requires_grad_() if grad else made

    yield "a model", _model, (numbers(4, 3), numbers(3, 2), numbers(2))
    yield "a nest of results", _nest, (numbers(3), {"scale": 2.0, "shift": numbers(3)})
    yield "writes in place", _writes, (numbers(4, 2, grad=False), numbers(2))
    yield "Python decides", lambda x, y: torch.exp(x) if x.sum() > y.sum() else x * y, (numbers(3), numbers(3))
    yield "a loop in the graph", _scan, (numbers(2), numbers(5, 2))
    yield "a loop while something holds", _while, (numbers(3), numbers(3))
    yield "a branch in the graph", _switch, (torch.tensor(1), numbers(3), numbers(3))
    yield "a gradient of the user's", _Product.apply, (numbers(3), numbers(3))
    yield "random numbers", lambda x: x * torch.rand(3) + torch.randn(3), (numbers(3),)
    yield "an exception", lambda x, index: x[index], (numbers(3), torch.tensor([0, 7]))
    yield "state", _Counter(numbers(3)), (numbers(3),)
    yield "a training step", _training(numbers(3, 1)), (numbers(4, 3, grad=False),)


def _model(x: Any, w: Any, b: Any) -> Any:
    return torch.log_softmax(torch.tanh(x @ w + b), 1).mean()


def _nest(x: Any, options: dict[str, Any]) -> Any:
    y = x * options["scale"] + options["shift"]
    return {"y": y, "parts": [y[0], (y.sum(), 3)], "largest": y.argmax(), "kept": x}


def _writes(x: Any, row: Any) -> Any:
    x[1:3] += 1.0
    x.mul_(2.0)
    y = x.clone()
    y[0] = row
    return y.sum(0)


def _scan(state: Any, rows: Any) -> Any:
    return graphc.scan(lambda carry, row: (torch.tanh(carry + row), carry * row), state, rows)


def _while(x: Any, w: Any) -> Any:
    return graphc.while_loop(lambda c: c[0].abs().sum() < 50, lambda c: (c[0] * 1.5 + w, c[1] + 1), (x, 0))[0]


def _switch(index: Any, x: Any, y: Any) -> Any:
    return graphc.switch(index, (lambda a, b: a * b, lambda a, b: a.sin() - b, lambda a, b: b.exp()), x, y)


class _Product(torch.autograd.Function):
    """x * y, with its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x


class _Counter:
    """Keeps a number, a tensor and a list from call to call."""

    def __init__(self, weight: Any):
        self.weight, self.calls, self.mean, self.seen = weight, 0, torch.zeros(3), []

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        y = x * self.weight * self.calls
        self.mean = 0.9 * self.mean + 0.1 * y.detach()
        self.seen.append(y.detach().sum())
        return y


def _training(weight: Any) -> Callable[..., Any]:
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((x @ weight) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step
