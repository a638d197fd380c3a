"""What is interrupted: compiled steps and calls that change as much as they can."""

from __future__ import annotations

from typing import Any

import eager as torch
import graphc
from tests.compile.interrupted import Subject


def training() -> Subject:
    """A step with Adam, running statistics, dropout and a counter."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5),
                                torch.nn.ReLU(), torch.nn.Linear(8, 2))  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model.steps = 0
    x, y = torch.randn(6, 4), torch.randn(6, 2)

    @graphc.compile
    def step() -> Any:
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        model.steps += 1
        return loss

    def state() -> Any:
        kept = [dict(sorted(s.items())) for s in optimizer.state_dict()["state"].values()]
        return list(model.parameters()), list(model.buffers()), kept, model.steps

    return Subject(lambda k: step(), state)


def views() -> Subject:
    """Writes in place into views of an argument, of a captured tensor, and to a list."""
    whole, captured, seen = torch.arange(12.0).reshape(3, 4), torch.ones(5), [torch.zeros(2)]

    @graphc.compile
    def f(x: Any) -> Any:
        x[1].mul_(1.5)
        x.t()[2] += captured[:3]
        captured[1:3].sub_(0.5)
        seen[0] = seen[0] + 1
        return x.sum()

    return Subject(lambda k: f(whole), lambda: (whole, captured, seen))


def wide() -> Subject:
    """The state in 64 bits, with momentum, and a run-time check."""
    w = torch.ones(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    steps = torch.zeros((), dtype=torch.int64)

    @graphc.compile
    def step(i: Any) -> Any:
        optimizer.zero_grad()
        loss = (w[i] * w).square().sum()
        loss.backward()
        optimizer.step()
        steps.add_(1)
        return loss.detach()

    places = torch.tensor([0, 2, 2, 1])
    return Subject(
        lambda k: step(places), lambda: (w, [dict(s) for s in optimizer.state_dict()["state"].values()], steps)
    )


def branches() -> Subject:
    """A path that the values decide, and that changes from call to call."""
    total, ways = torch.zeros(3), {"up": 0, "down": 0}

    @graphc.compile
    def f(x: Any) -> Any:
        if x.sum() > 0:
            total.add_(x)
            ways["up"] += 1
        else:
            total.sub_(torch.rand(3))
            ways["down"] += 1
        return total * 2

    return Subject(lambda k: f(torch.ones(3) * (-1) ** (k // 2)), lambda: (total, ways))


def gradients() -> Subject:
    """Backward through a compiled function that changes a buffer and draws."""
    w, buffer = torch.ones(3, requires_grad=True), torch.zeros(3)

    @graphc.compile
    def f(x: Any) -> Any:
        buffer.add_(x)
        return (w * x * torch.rand(3)).sum()

    return Subject(lambda k: f(torch.ones(3)), lambda: (w, buffer))


def sizes() -> Subject:
    """Another size at each call."""
    total = torch.zeros(4)

    @graphc.compile(dynamic=False)
    def f(x: Any) -> Any:
        total.add_(x.sum(0))
        return x * 2

    return Subject(lambda k: f(torch.ones(k % 7 + 2, 4)), lambda: total)


PROGRAMS = (training, views, wide, branches, gradients, sizes)
