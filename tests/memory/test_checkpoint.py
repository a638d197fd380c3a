"""`torch.utils.checkpoint` in compiled programs: what a segment computes is computed again, and memory shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from eager import nn
from eager.nn import functional as F
from eager.utils.checkpoint import checkpoint
from graphc.ops import OPS

ROWS, WIDTH, DEPTH = 1024, 32, 6


class Program(NamedTuple):
    """What is trained: by steps that are compiled whole, or by a loss alone; with masks or without."""

    nested: bool = False
    reentrant: bool = False
    masks: bool = False
    whole: bool = True


PROGRAMS = {
    "nested": Program(nested=True),
    "masks": Program(masks=True, reentrant=True),
    "a loss": Program(whole=False),
}
deep = pytest.mark.deep
CASES = [pytest.param(p, id=name, marks=[deep] if name == "masks" else []) for name, p in PROGRAMS.items()]


def _block(masks: bool) -> nn.Module:
    layers = [layer for _ in range(3) for layer in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
    return nn.Sequential(*layers, *([nn.Dropout(0.3)] if masks else []))


def _made(p: Program, checkpointed: bool) -> tuple[Callable[..., Any], nn.Module, Any, Any]:
    torch.manual_seed(0)
    blocks = nn.ModuleList([_block(p.masks) for _ in range(DEPTH)])
    x, y = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)

    def segment(function: Any, h: Any, wanted: bool) -> Any:
        return checkpoint(function, h, use_reentrant=p.reentrant) if wanted else function(h)

    def some(h: Any, blocks: Any) -> Any:
        for block in blocks:
            h = segment(block, h, checkpointed)
        return h

    def loss(x: Any, y: Any) -> Any:
        h = x
        for half in (blocks[: DEPTH // 2], blocks[DEPTH // 2 :]):
            h = segment(lambda h, half=half: some(h, half), h, checkpointed and p.nested)
        return F.mse_loss(h, y)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        found = loss(x, y)
        found.backward()
        optimizer.step()
        return found

    return step if p.whole else loss, blocks, x, y


def _trained(p: Program, checkpointed: bool) -> tuple[list[np.ndarray], list[Any]]:
    """Gradients after two calls, and the memory of the programs."""
    f, model, x, y = _made(p, checkpointed)
    memory = graphc.memory(f, x, y)
    torch.manual_seed(1)
    run = graphc.compile(f)
    for _ in range(2):
        loss = run(x, y)
        if not p.whole:
            model.zero_grad()
            loss.backward()
    return [q.grad.numpy() for q in model.parameters() if q.grad is not None], list(memory.programs)


@pytest.mark.parametrize("p", CASES)
def test_values_are_computed_again(p: Program):
    expected, before = _trained(p, False)
    found, after = _trained(p, True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    for less, more in zip(after, before, strict=True):
        assert less.exact < (0.6 if p.nested else 0.65) * more.exact
        assert abs(less.estimate / less.exact - 1) < (0.3 if p.masks else 0.15)


def test_a_captured_program_says_where_segments_are():
    f, _, x, y = _made(Program(whole=False), True)
    places = [n.params["place"] for n in graphc.trace(f, x, y).operations() if n.op is OPS["segment"]]
    assert places == ["begin", "end"] * DEPTH


def _given_back(x: Any) -> Any:
    return checkpoint(lambda x: (x, x.sin()), x, use_reentrant=False)[0] * 2


def _nests(x: Any) -> Any:
    found = checkpoint(lambda a, *, b: {"sum": (a["x"] + b).sin(), "n": 3}, {"x": x}, b=x * 2, use_reentrant=False)
    return found["sum"] * found["n"]


def _of_nothing(x: Any) -> Any:
    return checkpoint(lambda: x.sin().exp(), use_reentrant=False)


def _decided(x: Any) -> Any:
    return checkpoint(lambda x: x.topk(2)[0].exp() * x[torch.tensor([0, 1])], x, use_reentrant=False).sin()


def _looped(x: Any) -> Any:
    return graphc.scan(lambda c, row: (checkpoint(torch.sin, c * row, use_reentrant=False), c), x[0], x)[0]


@pytest.mark.parametrize("f", [_given_back, _nests, _of_nothing, _decided, _looped])
def test_modes_agree(f: Callable[..., Any]):
    x = torch.tensor([0.3, -0.7, 1.1], requires_grad=True)
    report = compare.check(f, x, modes=["graph", "compiled", "jax.grad"], order=1)
    assert report.ok, str(report)


def test_an_argument_that_is_written():
    """Its gradients are wrong in eager mode, as in PyTorch: the second run writes again."""

    def f(x: Any) -> Any:
        y = x * 1
        z = checkpoint(lambda y: y.mul_(2).sin(), y, use_reentrant=False)
        return y + z

    report = compare.check(f, torch.tensor([0.3, -0.7]), modes=["graph", "compiled"])
    assert report.ok, str(report)


def test_second_gradients():
    def f(x: Any) -> Any:
        y = checkpoint(lambda x: (x.sin() * x).exp(), x, use_reentrant=False)
        (g,) = torch.autograd.grad(y.sum(), [x], create_graph=True)
        return g * y

    report = compare.check(f, torch.tensor([0.3, -0.7], requires_grad=True), modes=["graph", "compiled"])
    assert report.ok, str(report)
