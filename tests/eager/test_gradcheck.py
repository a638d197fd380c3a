"""`gradcheck` and `gradgradcheck` pass every differentiable op of the registry, and catch planted wrong gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.autograd import Function, gradcheck, gradgradcheck
from eager.core.tensor import Tensor
from eager.engine.dispatch import apply
from eager.engine.language import refresh
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact
from graphc.ops.spec import Vjp
from tests.eager.tensors import leaf, tensor
from tests.ops.cases import Case, each_case, every_case

FAILURE = gradcheck.GradcheckError  # type: ignore[attr-defined]
SMOOTH = [c for c in every_case(differentiable=True) if not c.strided]
FIRST = list({case.op.name: case for case in reversed(SMOOTH)}.values())
QUICK = FIRST[::4]  # the gradients of all are held against finite differences in tests/ops


def operands(case: Case) -> list[Tensor]:
    found = []
    for k, array in enumerate(case.arrays(np.random.default_rng(7))):
        wanted = case.op.arg_of(k) in case.op.vjp and is_inexact(array.dtype)
        found.append(leaf(array) if wanted else tensor(array))
    return found


def call(case: Case) -> Any:
    return lambda *xs: apply(case.op, xs, case.sample.params)


def check_gradients(case: Case) -> None:
    xs = operands(case)
    assert gradcheck(call(case), xs, check_batched_grad=True)
    assert gradcheck(call(case), xs, fast_mode=True)
    assert gradcheck(call(case), xs, check_forward_ad=True, check_backward_ad=False)


@each_case(QUICK)
def test_gradients_of_ops(case: Case):
    check_gradients(case)


@pytest.mark.deep
@each_case([case for case in SMOOTH if case not in QUICK])
def test_gradients_of_every_case(case: Case):
    check_gradients(case)


@pytest.mark.deep  # test_engine.py has the second derivatives of all cases
@each_case(FIRST)
def test_second_derivatives_of_every_op(case: Case):
    assert gradgradcheck(call(case), operands(case))


def test_a_wrong_rule_is_caught(monkeypatch: pytest.MonkeyPatch):
    op = OPS["tanh"]
    wrong = Vjp(lambda F, g, r: g * (1 - r), ("g", "r"))
    with monkeypatch.context() as patch:
        patch.setattr(op, "vjp", {"input": wrong})
        refresh(op)
        x = leaf([0.3, 0.5])
        with pytest.raises(FAILURE, match="Jacobian mismatch for output 0 with respect to input 0"):
            gradcheck(torch.tanh, x)
        with pytest.raises(FAILURE):
            gradcheck(torch.tanh, x, fast_mode=True)
        assert gradcheck(torch.tanh, x, raise_exception=False) is False
    refresh(op)
    assert gradcheck(torch.tanh, leaf([0.3, 0.5]))


class Lenient(Function):
    """x^2, whose gradient's own gradient is cut."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2 * ctx.saved_tensors[0].detach()


def test_a_wrong_second_derivative_is_caught():
    x = leaf([0.3, 0.5])
    assert gradcheck(Lenient.apply, x)
    with pytest.raises(FAILURE):
        gradgradcheck(Lenient.apply, x)


class Noisy(Function):
    """x, with a gradient that is another each time."""

    calls = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        Noisy.calls += 1
        return g * (1 + 1e-9 * Noisy.calls)


def test_a_gradient_that_changes_is_caught():
    with pytest.raises(FAILURE, match="not reentrant"):
        gradcheck(Noisy.apply, leaf([1.0]))
    assert gradcheck(Noisy.apply, leaf([1.0]), nondet_tol=1e-6)


class Offset(Function):
    """x, with a gradient that is not linear in the cotangent."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return torch.ones_like(g)


def test_a_gradient_without_the_cotangent_is_caught():
    with pytest.raises(FAILURE, match="backward not multiplied by grad_output"):
        gradcheck(Offset.apply, leaf([1.0]))


def test_an_input_whose_elements_are_one_place_is_refused():
    x = torch.ones(2, 1, dtype=torch.float64, requires_grad=True).expand(2, 3)
    with pytest.raises(RuntimeError, match="stride"):
        torch.autograd.gradcheck(torch.sin, (x,))
    assert torch.autograd.gradcheck(torch.sin, (x[:, :1],))  # a dim of one element repeats nothing


def test_complex_functions():
    z = leaf([1 + 2j, -0.5j], np.complex128)
    for function in (torch.conj, torch.abs, torch.sin, lambda z: z * z.conj(), lambda z: z.real * z):
        assert gradcheck(function, z)
        assert gradgradcheck(function, z)
        assert gradcheck(function, z, fast_mode=True)


def test_the_input_is_as_it_was():
    x = leaf([0.1, 0.7])
    before = x._array().copy()
    gradcheck(torch.sin, x)
    assert (x._array() == before).all() and x.grad is None
