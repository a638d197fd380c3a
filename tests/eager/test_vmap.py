"""`vmap` is a loop over slices: for every op of the registry, batched in every way; and under the other transforms."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager import autograd
from eager.core.tensor import Tensor
from eager.engine.dispatch import apply
from eager.func import batch_rules, grad, hessian, jacfwd, jacrev, vmap
from graphc.ops import OPS
from graphc.ops.aval import results_of
from tests.eager.tensors import leaf, tensor
from tests.ops.cases import Case, each_case, every_case

SIZE = 3
WITH_OPERANDS = [c for c in every_case() if c.op.args and not c.strided]


def stacked(case: Case, batched: tuple[bool, ...]) -> list[Tensor]:
    """The operands of `case`, those that are batched as SIZE different ones along a new first dim."""
    draws = [case.arrays(np.random.default_rng(seed)) for seed in range(SIZE)]
    return [tensor(np.stack([draw[k] for draw in draws]) if b else draws[0][k].copy()) for k, b in enumerate(batched)]


def slices(operands: list[Tensor], batched: tuple[bool, ...], k: int) -> list[Tensor]:
    return [x[k] if b else x for x, b in zip(operands, batched, strict=True)]


def ways(case: Case) -> list[tuple[bool, ...]]:
    count = len(case.arrays(np.random.default_rng(0)))
    return [way for way in itertools.product((True, False), repeat=count) if any(way)]


def compare(got: Any, expected: list[Any]) -> None:
    for result, *each in zip(results_of(got), *map(results_of, expected), strict=True):
        wanted = np.stack([t._array() for t in each])
        assert result._dtype() == wanted.dtype
        np.testing.assert_allclose(result._array(), wanted, rtol=1e-12, atol=1e-12)


def squares(case: Case, xs: Any) -> Tensor:
    found = [t for t in results_of(apply(case.op, xs, case.sample.params)) if t._dtype().kind == "f"]
    return sum(((t**2).sum() for t in found[1:]), (found[0] ** 2).sum())


@each_case(WITH_OPERANDS)
def test_an_op_on_a_batch_is_the_op_on_each_slice(case: Case):
    for batched in ways(case):
        operands = stacked(case, batched)
        run = lambda *xs: apply(case.op, xs, case.sample.params)
        got = vmap(run, tuple(0 if b else None for b in batched))(*operands)
        compare(got, [run(*slices(operands, batched, k)) for k in range(SIZE)])


@each_case(every_case(differentiable=True))
def test_gradients_of_slices(case: Case):
    numbers = tuple(
        k for k, x in enumerate(case.arrays(np.random.default_rng(0))) if case.op.arg_of(k) in case.op.vjp
        and x.dtype.kind == "f"
    )  # fmt: skip
    results = results_of(apply(case.op, stacked_one(case), case.sample.params))
    if not numbers or any(t._dtype().kind == "c" for t in results):
        return  # `grad` takes real functions
    batched = tuple(True for _ in case.arrays(np.random.default_rng(0)))
    operands = stacked(case, batched)
    run = grad(lambda *xs: squares(case, xs), numbers)
    got = vmap(run)(*operands)
    each = [run(*slices(operands, batched, k)) for k in range(SIZE)]
    for number in range(len(numbers)):
        compare(got[number], [found[number] for found in each])


def stacked_one(case: Case) -> list[Tensor]:
    return [tensor(a) for a in case.arrays(np.random.default_rng(0))]


# those without operands or with graphs for parameters apart: what has no batch, checks or is seen by nobody
ONE_BY_ONE = frozenset(
    "all_gather all_reduce all_to_all as_strided as_strided_add as_strided_scatter assume bitcast broadcast decided "
    "dirichlet draw from_local held in_range overwritten reduce_scatter reduce_to regular required row segment shard "
    "sparse_mm standard_gamma to_local valid with_row".split()
)


def test_ops_are_not_done_one_by_one():
    ops = [op for op in OPS.values() if op.args and not op.structured]
    assert {op.name for op in ops if batch_rules.rule_of(op) is batch_rules.one_by_one} == ONE_BY_ONE


def test_a_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(batch_rules.RULES, "sum", batch_rules.unchanged)
    case = next(c for c in WITH_OPERANDS if c.op.name == "sum" and c.sample.params["axis"])
    with pytest.raises((AssertionError, ValueError)):
        test_an_op_on_a_batch_is_the_op_on_each_slice([case])


# Views and in-place writes


def test_in_place_writes_reach_the_argument():
    x = torch.zeros(2, 3)
    vmap(lambda row: row[1:].add_(1))(x)
    assert x.tolist() == [[0, 1, 1], [0, 1, 1]]


def test_history_goes_through_in_place_writes():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])

    def double_first(row: Any) -> Any:
        row = row * 1
        row[0] *= 2
        return row

    vmap(double_first)(x).sum().backward()
    assert x.grad.tolist() == [[2, 1], [2, 1]]


@pytest.mark.parametrize("name", ["add_", "mul_", "div_", "sin_", "exp_", "tanh_", "pow_", "clamp_", "sqrt_", "fill_"])
def test_gradients_through_in_place_writes(name: str):
    operands = {"pow_": (2,), "clamp_": (0.5, 1.0), "fill_": (2.0,), "div_": (3.0,)}

    def write(row: Any) -> Any:
        return (getattr(row + 0, name)(*operands.get(name, (row,) if name in ("add_", "mul_") else ())) * row).sum()

    x = tensor(np.random.default_rng(0).uniform(0.2, 1.5, (2, 3)))
    compare(vmap(grad(write))(x), [grad(write)(row) for row in x])


# Nested with gradients


def test_rows_of_a_jacobian_inside_vmap():
    x = tensor(np.random.default_rng(0).normal(size=(2, 3)))
    function = lambda row: row.sin() * row.sum()
    for jacobian in (jacrev, jacfwd):
        compare(vmap(jacobian(function))(x), [jacobian(function)(row) for row in x])
    compare(vmap(hessian(lambda row: (row**3).prod()))(x), [hessian(lambda row: (row**3).prod())(row) for row in x])


def test_two_batches_over_a_jacobian():
    x = tensor(np.random.default_rng(0).normal(size=(2, 4, 3)))
    got = vmap(vmap(jacrev(torch.tanh)))(x)
    compare(got, [torch.stack([jacrev(torch.tanh)(row) for row in rows]) for rows in x])


def test_is_grads_batched():
    x = leaf([1.0, 2.0, 3.0])
    y = x * x.sum()
    (rows,) = autograd.grad(y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
    assert torch.equal(rows, jacrev(lambda x: x * x.sum())(x.detach()))


def test_inside_a_compiled_function():
    def loss(w: Any, x: Any) -> Any:
        return ((w * x).sum() ** 2).tanh()

    w, xs = tensor([0.1, 0.2]), tensor(np.random.default_rng(0).normal(size=(3, 2)))
    for function in (
        lambda w, xs: vmap(loss, (None, 0))(w, xs),
        lambda w, xs: vmap(grad(loss), (None, 0))(w, xs),
        lambda w, xs: jacrev(lambda w: w.sin() * w.sum())(w),
        lambda w, xs: hessian(lambda w: (w**3).sum())(w),
    ):
        np.testing.assert_allclose(graphc.compile(function)(w, xs)._array(), function(w, xs)._array(), rtol=1e-12)


def test_a_compiled_function_inside():
    compiled = graphc.compile(lambda x: x.sin() * 2)
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.allclose(vmap(compiled)(x), x.sin() * 2)
