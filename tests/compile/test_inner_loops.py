"""Leaves made inside a compiled function, of memory that other tensors show, trained there for several steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc
from eager import nn

pytestmark = pytest.mark.on_numpy

# from an argument of shape (2, 2): (a tensor over the same memory, the leaf)
LEAVES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "new": lambda a: (torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)),
    "computed": lambda a: _twice((a * 2).requires_grad_()),
    "detached": lambda a: _with(a * 2, lambda b: b.detach().requires_grad_()),
    "part": lambda a: _with(a * 2, lambda b: b[0].detach().requires_grad_()),
    "parameter of a constant": lambda a: _with(torch.ones(4), nn.Parameter),
    "parameter of a part of a constant": lambda a: _with(torch.ones(4), lambda b: nn.Parameter(b[1:3])),
    "parameter of what is computed": lambda a: _with(a + 1, nn.Parameter),
    "parameter of random numbers": lambda a: _with(torch.rand(3), nn.Parameter),
    "parameter of an argument's copy": lambda a: _with(a.clone(), nn.Parameter),
    "layer": lambda a: _twice(nn.Linear(2, 2).weight),
    "normalization": lambda a: _twice(nn.BatchNorm1d(3).weight),
}


def _twice(leaf: Any) -> tuple[Any, Any]:
    return leaf.detach(), leaf


def _with(base: Any, leaf: Callable[[Any], Any]) -> tuple[Any, Any]:
    return base, leaf(base)


def _trained(made: Callable[[Any], tuple[Any, Any]], fn: Callable[..., Any]) -> list[Any]:
    """What the leaf, its gradients and the other tensor are after three steps, in each of three calls."""

    def train(a: Any) -> Any:
        base, leaf = made(a)
        optimizer, gradients = torch.optim.SGD([leaf], lr=0.125, momentum=0.5), []
        for _ in range(3):
            optimizer.zero_grad()
            (leaf * leaf * leaf).sum().backward()
            gradients.append(leaf.grad.clone())
            optimizer.step()
            base.data.mul_(0.5)
        return leaf.detach(), base, gradients

    torch.manual_seed(0)
    run = fn(train)
    return [run(torch.ones(2, 2)) for _ in range(3)]


@pytest.mark.parametrize("kind", LEAVES)
def test_leaves_of_shared_memory_are_trained(kind: str):
    expected = _trained(LEAVES[kind], lambda f: f)
    found = _trained(LEAVES[kind], graphc.compile)
    for (leaf, base, gradients), (leaf2, base2, gradients2) in zip(expected, found, strict=True):
        torch.testing.assert_close(leaf2, leaf)
        torch.testing.assert_close(base2, base)
        assert len({g.sum().item() for g in gradients}) == 3  # they are gradients of different leaves
        torch.testing.assert_close(gradients2, gradients)


OPTIMIZERS: dict[str, Callable[[list[Any]], Any]] = {
    "Adam": lambda leaves: torch.optim.Adam(leaves, lr=0.125),
    "momentum": lambda leaves: torch.optim.SGD(leaves, lr=0.125, momentum=0.5),
    **{
        name: lambda leaves, name=name: getattr(torch.optim, name)(leaves)
        for name in "Adadelta Adagrad Adamax ASGD NAdam RAdam RMSprop Rprop".split()
    },
}


@pytest.mark.parametrize(
    "kind", [k if k in ("Adam", "momentum") else pytest.param(k, marks=pytest.mark.deep) for k in OPTIMIZERS]
)
def test_optimizers_made_inside_begin_anew_with_each_call(kind: str):
    def train(a: Any) -> Any:
        leaves = [(a * 2).detach().requires_grad_(), torch.complex(a, a).requires_grad_()]
        optimizer = OPTIMIZERS[kind](leaves)
        for _ in range(2):
            optimizer.zero_grad()
            ((leaves[0] ** 3).sum() + (leaves[1].abs() ** 3).sum()).backward()
            optimizer.step()
        return leaves[0].detach(), leaves[1].detach()

    compiled = graphc.compile(train)
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(2)), train(torch.ones(2)))
    assert len(compiled.explain().retraces) == 1


def test_the_first_step_with_momentum_is_the_program_of_all():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @graphc.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(torch.ones(3, 2))
    assert len(step.explain().retraces) == 1


@pytest.mark.parametrize("scheduled", [False, True])
def test_optimizers_made_at_the_first_call_are_kept(scheduled: bool):
    def steps(fn: Callable[..., Any]) -> list[Any]:
        torch.manual_seed(0)
        model, kept = nn.Linear(2, 1), {}

        def step(x: Any) -> Any:
            if not kept:
                kept["optimizer"] = torch.optim.Adam(model.parameters(), lr=0.1)
                if scheduled:
                    kept["schedule"] = torch.optim.lr_scheduler.StepLR(kept["optimizer"], 1, 0.5)
            kept["optimizer"].zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            kept["optimizer"].step()
            if scheduled:
                kept["schedule"].step()
            return loss

        run = fn(step)
        return [run(torch.ones(3, 2)) for _ in range(4)]

    torch.testing.assert_close(steps(graphc.compile), steps(lambda f: f))


def test_a_schedule_of_an_optimizer_made_inside_does_not_keep_it():
    def train(a: Any) -> Any:
        leaf = (a * 2).detach().requires_grad_()
        optimizer = torch.optim.Adam([leaf], lr=0.125)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for _ in range(2):
            optimizer.zero_grad()
            (leaf**3).sum().backward()
            optimizer.step()
            schedule.step()
        return leaf.detach()

    compiled = graphc.compile(train)
    for _ in range(2):
        torch.testing.assert_close(compiled(torch.ones(2)), train(torch.ones(2)))
