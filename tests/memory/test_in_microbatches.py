"""`graphc.compile(step, microbatches=k)`: steps that compute their batch a part at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import eager.nn.functional as F
import graphc
from compare.judging.tolerance import Verdict
from compare.modes import Microbatched
from compare.selftest.planting import attribute
from eager import nn
from graphc.errors import MicrobatchError
from graphc.ir.structure import SCAN
from graphc.sharding import over_time
from tests.memory.programs import mlp
from tests.sharding import models

OWN = torch.randn(12, 4)  # a row for each sample
Made = tuple[Callable[..., Any], tuple[Any, ...], nn.Module]


def made(model: nn.Module, loss: Any, x: Any = None, result: Any = None) -> Made:
    """A step of training, its batch, and the model."""
    x = torch.randn(12, 8) if x is None else x
    y = torch.arange(12) % 4
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        out = model(x)
        value = loss(out, y)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return value if result is None else (value, result(out, y))

    return step, (x, y), model


class Rows(nn.Module):
    """A parameter with a row for each sample."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Parameter(OWN[:, :3].clone())
        self.linear = nn.Linear(8, 3)

    def forward(self, x):
        return self.linear(x).tanh() * self.rows


def masked() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 4))


def weighted(out, y):
    return F.cross_entropy(out, y, weight=torch.tensor([1.0, 2.0, 3.0, 4.0]), ignore_index=2, label_smoothing=0.1)


CASES: dict[str, Callable[[], Made]] = {
    "cross entropy": lambda: made(masked(), F.cross_entropy),
    "weights of classes": lambda: made(mlp(8, 1, 4), weighted),
    "a sum": lambda: made(mlp(8, 1, 4), lambda out, y: F.cross_entropy(out, y, reduction="sum") / 7),
    "results of samples": lambda: made(masked(), F.cross_entropy, result=lambda out, y: (out.detach(), out.argmax(1))),
    "a metric": lambda: made(mlp(8, 1, 4), F.cross_entropy, result=lambda out, y: (out.argmax(1) == y).sum()),
    "a transposed result": lambda: made(mlp(8, 1, 4), F.cross_entropy, result=lambda out, y: out.detach().T * 2),
    "standardized inputs": lambda: made(mlp(8, 1, 4), F.cross_entropy, result=lambda out, y: y.float().mean()),
    "parameters of samples": lambda: made(Rows(), lambda out, y: out.square().mean() + (OWN * 2).mean()),
    "norm in eval mode": lambda: made(
        nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6).eval(), nn.Linear(6, 4)), F.cross_entropy),
    "images": lambda: made(
        nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 4)),
        F.cross_entropy, torch.randn(12, 2, 4, 4)),
    "words": lambda: made(nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 4)), F.cross_entropy,
                          torch.arange(36).reshape(12, 3) % 9),
    "attention": lambda: made(models.Block(), lambda out, y: out.square().mean(), torch.randn(12, 3, models.D)),
    "a recurrent net": lambda: made(models.Recurrent(), F.cross_entropy, torch.randn(12, 3, 8)),
}  # fmt: skip

DEEP = ("attention", "images", "a recurrent net")


def run(case: Callable[[], Made], **options: Any) -> tuple[list[np.ndarray], Any]:
    """What three steps return and leave behind, and the compiled step."""
    torch.manual_seed(0)
    step, batch, model = case()
    compiled = graphc.compile(step, **options)
    found = [np.asarray(t) for _ in range(3) for t in compare_leaves(compiled(*batch))]
    for p in model.parameters():
        assert p.grad is not None
        found += [p.detach().numpy().copy(), p.grad.numpy().copy()]
    return found, compiled


def compare_leaves(result: Any) -> list[Any]:
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in compare_leaves(part)]
    return [result.detach().numpy().copy()]


@pytest.mark.on_numpy
@pytest.mark.parametrize("case", [pytest.param(c, id=name, marks=[pytest.mark.deep] if name in DEEP else [])
                                  for name, c in CASES.items()])  # fmt: skip
def test_a_step_is_that_of_the_whole_batch(case: Callable[[], Made]):
    expected, _ = run(case)
    found, compiled = run(case, microbatches=4)
    assert SCAN in compiled.graph.ops
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6)


@pytest.mark.on_numpy
@pytest.mark.parametrize("count", [1, 2, 12])
def test_any_number_of_parts(count: int):
    for a, b in zip(run(CASES["cross entropy"], microbatches=count)[0], run(CASES["cross entropy"])[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6)


def test_one_part_at_a_time_is_in_memory():
    def wide() -> Made:
        step, _, model = made(mlp(32, 4, 4), F.cross_entropy)
        return step, (torch.randn(1024, 32), torch.arange(1024) % 4), model

    torch.manual_seed(0)
    step, batch, _ = wide()
    whole = graphc.memory(step, *batch).peak
    parts = graphc.memory(graphc.compile(step, microbatches=16), *batch).programs[0]
    assert parts.peak < 0.4 * whole
    assert parts.estimate == pytest.approx(parts.peak, rel=0.1)


def batch_norm() -> Made:
    return made(nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 4)), F.cross_entropy)


def undifferentiated() -> Made:
    model = mlp(8, 1, 4)
    return lambda x, y: F.cross_entropy(model(x), y), (torch.randn(12, 8), torch.arange(12) % 4), model


REFUSED: dict[str, tuple[Callable[[], Made], int, str]] = {
    "statistics of the batch": (batch_norm, 4, r"mean at .*test_in_microbatches.py:\d+ \[1\] takes the whole .*Group"),
    "a root of a mean": (lambda: made(mlp(8, 1, 4), lambda out, y: out.square().mean().sqrt()), 4,
                         "mean at .* takes the whole batch"),
    "a maximum": (lambda: made(mlp(8, 1, 4), lambda out, y: out.mean(1).max()), 4, "amax at .* takes the whole batch"),
    "no backward": (undifferentiated, 4, r"call backward\(\) inside the function"),
    "uneven": (CASES["cross entropy"], 5, "microbatches=5 does not divide a batch of 12"),
    "other sizes": (lambda: (lambda x, y: (x.sum(), y.sum()), (torch.ones(4), torch.ones(6)), nn.Identity()), 2,
                    r"one and the same first dimension, got \[\(4,\), \(6,\)\]"),
    "no batch": (lambda: (lambda x: x * 2, (torch.ones(()),), nn.Identity()), 2, "first dimension, got \\[\\]"),
}  # fmt: skip


@pytest.mark.on_numpy
@pytest.mark.parametrize(("case", "count", "message"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_parts_is_refused(case: Callable[[], Made], count: int, message: str):
    torch.manual_seed(0)
    step, batch, model = case()
    before = [p.detach().numpy().copy() for p in model.parameters()]
    state = torch.get_rng_state().numpy().copy()
    with pytest.raises(MicrobatchError, match=message):
        graphc.compile(step, microbatches=count)(*batch)
    assert all(np.array_equal(a, b.detach().numpy()) for a, b in zip(before, model.parameters(), strict=True))
    assert np.array_equal(state, torch.get_rng_state().numpy())


@pytest.mark.parametrize("count", [0, True, 2.0])
def test_the_number_is_one(count: Any):
    with pytest.raises(ValueError, match="microbatches must be a positive integer"):
        graphc.compile(torch.relu, microbatches=count)


def test_a_check_holds_it_and_finds_a_mean_of_parts_that_is_added():
    torch.manual_seed(0)
    step, batch, _ = made(mlp(8, 1, 4), lambda out, y: out.square().mean())
    assert compare.check(step, *batch, modes=[Microbatched(4)]).ok
    with attribute(over_time, "coefficient", lambda *_: 1):
        report = compare.check(step, *batch, modes=[Microbatched(4)], locate=False)
    assert {f.what for f in report.findings if f.verdict is Verdict.BUG} >= {"result"}
