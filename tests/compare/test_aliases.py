"""Inputs that share memory, in all ways, with writes through each: no mode is called wrong where it equals eager."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.judging.tolerance import Verdict

MODES = ("graph", "passes", "compiled", "jax.grad", "finite differences")
Pair = Callable[[Any], tuple[Any, Any]]

# two tensors that lie in a memory of 12 numbers
PAIRS: dict[str, Pair] = {
    "one tensor twice": lambda m: (m, m),
    "a view of all": lambda m: (m, m.view(3, 4)),
    "windows with an offset": lambda m: (m[:8].view(2, 4), m[4:].view(2, 4)),
    "windows, the later one first": lambda m: (m[4:].view(2, 4), m[:8].view(2, 4)),
    "neighbours": lambda m: (m[:4].view(2, 2), m[4:].view(2, 4)),
    "interleaved": lambda m: (m[::2].view(2, 3), m[1::2].view(2, 3)),
    "every second in all": lambda m: (m[::2].view(2, 3), m.view(4, 3)),
    "a transpose": lambda m: (m.view(3, 4), m.view(3, 4).t()),
    "a row and a column": lambda m: (m.view(3, 4)[1], m.view(3, 4)[:, 2]),
    "a diagonal": lambda m: (m.view(3, 4), m.view(3, 4).diagonal()),
    "a number in it": lambda m: (m.view(3, 4), m[5]),
    "by strides": lambda m: (m.as_strided((2, 3), (4, 1), 1), m.as_strided((3, 2), (2, 5))),
    "strides that overlap, read": lambda m: (m.view(3, 4), m.as_strided((4, 3), (2, 1), 1)),
    "expanded, read": lambda m: (m.view(3, 4), m[2:5].expand(2, 3)),
    "other bits": lambda m: (m.view(3, 4), m.view(torch.int32).view(4, 3)),
    "apart": lambda m: (m.view(3, 4), m.clone().view(4, 3)),
}
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "the first": lambda a, b: (a.add_(1), b.sum(-1))[1],
    "the second": lambda a, b: (b.add_(1), a.sum(-1))[1],
    "both": lambda a, b: (a.mul_(2), b.add_(1), a.sum(), b.sum())[2:],
    "part of the first": lambda a, b: (a[..., :1].fill_(7), b * 2)[1],
    "read before and after": lambda a, b: (b * 1, a.neg_(), b * 1)[::2],
    "a view comes back": lambda a, b: (a.add_(1), b.view(-1) if b.is_contiguous() else b.t())[1],
    "both come back": lambda a, b: (a.add_(1), b),
    "a copy of the other": lambda a, b: (a.copy_(b.sum().to(a.dtype)), b * 2)[1],
}
REFUSED = "other bits"  # by name: a graph has no value that is two dtypes
CASES = list(itertools.product(PAIRS, WRITES))
SAMPLE = [case for k, case in enumerate(CASES) if k % 9 == 0]


def tensors(pair: str) -> tuple[Any, Any]:
    return PAIRS[pair](torch.from_numpy(np.random.default_rng(3).uniform(0.5, 1.5, 12).astype(np.float32)))


def agrees(fn: Callable[..., Any], *args: Any, modes: Any = MODES) -> None:
    report = compare.check(fn, *args, modes=modes, locate=False)
    assert report.verdict < Verdict.UNSUPPORTED, str(report)


def agrees_or_is_refused(pair: str, fn: Callable[..., Any], *args: Any, modes: Any = MODES) -> None:
    report = compare.check(fn, *args, modes=modes, locate=False)
    assert report.verdict < Verdict.UNSUPPORTED or (pair == REFUSED and report.verdict < Verdict.BUG), str(report)


@pytest.mark.parametrize(("pair", "write"), SAMPLE, ids=str)
def test_arguments_that_share_memory(pair: str, write: str):
    agrees_or_is_refused(pair, WRITES[write], *tensors(pair), modes=["graph", "compiled"])


@pytest.mark.deep
@pytest.mark.parametrize(("pair", "write"), CASES, ids=str)
def test_arguments_that_share_memory_in_every_way(pair: str, write: str):
    agrees_or_is_refused(pair, WRITES[write], *tensors(pair))


@pytest.mark.deep
@pytest.mark.parametrize(("pair", "write"), CASES, ids=str)
def test_one_is_captured_and_one_is_passed(pair: str, write: str):
    a, b = tensors(pair)
    agrees_or_is_refused(pair, lambda a: WRITES[write](a, b), a, modes=["graph", "compiled"])
    agrees_or_is_refused(pair, lambda b: WRITES[write](a, b), b, modes=["graph", "compiled"])
    agrees_or_is_refused(pair, lambda: WRITES[write](a, b), modes=["graph", "compiled"])


@pytest.mark.parametrize("write", ["the first", "both", "read before and after"])
def test_gradients_flow_past_shared_memory(write: str):
    a, b = tensors("windows with an offset")
    w = torch.ones(2, 4, requires_grad=True)
    agrees(lambda w, a, b: WRITES[write](a, b)[0].sum() * (w * b).sum(), w, a, b)


def test_a_parameter_and_its_view():
    w = torch.ones(2, 3, requires_grad=True)
    view = w.detach().view(-1)
    agrees(lambda x, w, v: (v.mul_(1), (w * x).sum(), v.sum())[1:], torch.ones(2, 3), w, view)
    agrees(lambda x, v: (v[1:].add_(1), v * x)[1], torch.ones(6), view)


def test_a_gradient_that_shares_memory_is_refused_by_name():
    def tensors_with_grad() -> tuple[Any, Any]:
        w, memory = torch.ones(3, requires_grad=True), torch.zeros(6)
        w.grad = memory[:3]
        return w, memory

    w, memory = tensors_with_grad()

    def step(x: Any, m: Any) -> Any:
        (w * x).sum().backward()
        return m.sum()

    report = compare.check(step, torch.ones(3), memory[2:], modes=["graph", "compiled"])
    assert report.verdict is Verdict.UNSUPPORTED and "a .grad that shares memory" in str(report), str(report)
    agrees(step, torch.ones(3), memory[3:], modes=["graph", "compiled"])  # its neighbour
    agrees(step, torch.ones(3), torch.zeros(3), modes=["graph", "compiled"])
