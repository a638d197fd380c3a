"""Rows for PyTorch: checked against eager like every other mode, and refused where they cannot be compared."""

from __future__ import annotations

from typing import Any

import pytest

import compare
import eager
from compare.benchmarking import BOTH, FORWARD, DisagreementError

torch = pytest.importorskip("torch")


def loss(w: Any, x: Any) -> Any:
    return (x @ w).tanh().sum()


def arguments() -> tuple[Any, Any]:
    return eager.ones(3, 2, requires_grad=True), eager.ones(4, 3)


def test_the_same_function_runs_on_tensors_of_pytorch():
    report = compare.bench(loss, *arguments(), modes=("eager", "torch"), torch_fn=loss, min_time=0.0)
    assert [(t.what, t.mode) for t in report.timings] == [(w, m) for w in (FORWARD, BOTH) for m in ("eager", "torch")]


@pytest.mark.parametrize(
    "other",
    [lambda w, x: (x @ w).sin().sum(), lambda w, x: (x @ w).tanh().sum().detach() + 0 * w.sum(), lambda w, x: x.nope],
    ids=["value", "gradient", "exception"],
)
def test_another_function_is_not_timed(other: Any):
    with pytest.raises(DisagreementError, match="torch: "):
        compare.bench(loss, *arguments(), modes=("eager", "torch"), torch_fn=other, min_time=0.0)


def test_modules_are_matched_by_the_names_of_their_parameters():
    ours, theirs = eager.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            dict(theirs.named_parameters())[name].copy_(torch.from_numpy(parameter.detach().numpy()))
    report = compare.bench(ours, eager.ones(4, 3), modes=("eager", "torch"), torch_fn=theirs, min_time=0.0)
    assert report.timing("torch", BOTH).steady.median > 0


def test_a_parameter_that_pytorch_does_not_get_is_named():
    w = eager.ones(3, requires_grad=True)
    with pytest.raises(DisagreementError, match="torch_fn does not get 'w'"):
        compare.bench(
            lambda x: x * w, eager.ones(3), modes=("eager", "torch"), torch_fn=lambda x: x * torch.ones(3), min_time=0.0
        )


def test_dtypes_are_compared():
    with pytest.raises(DisagreementError, match="dtype"):
        compare.bench(
            loss, *arguments(), modes=("eager", "torch"), torch_fn=lambda w, x: loss(w, x).double(), min_time=0.0
        )


def test_cotangents_are_those_of_the_results_whatever_rules_read():
    ours, theirs = (_weighted(library, library.tensor([2.0, 3.0, 5.0])) for library in (eager, torch))
    x = eager.ones(3, requires_grad=True)
    report = compare.bench(ours, x, modes=("eager", "torch"), torch_fn=theirs, min_time=0.0)
    assert report.timing("torch", BOTH).steady.median > 0


def _weighted(library: Any, weight: Any) -> Any:
    """A function whose gradient rule reads a tensor that its value does not."""

    class Weighted(library.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * weight

    return Weighted.apply
