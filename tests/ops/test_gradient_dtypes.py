"""Gradients have the dtype and the shape of what they are for, in both modes and every precision."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from eager import autograd
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.autodiff import pullback
from graphc.ir import Builder
from graphc.ops import OPS
from graphc.ops.aval import Aval, aval_of, results_of
from graphc.ops.dtypes import FLOAT16, FLOAT32, FLOAT64, bfloat16, is_inexact
from tests.ops.cases import Case, cases_of

DTYPES = {"float16": FLOAT16, "bfloat16": bfloat16(), "float32": FLOAT32, "float64": FLOAT64}
DIFFERENTIABLE = [op.name for op in OPS.values() if op.differentiable and not op.structured]


def by_tape(case: Case, arrays: list[np.ndarray], wanted: list[int]) -> dict[int, Aval]:
    tensors = [Tensor._wrap(a) for a in arrays]
    for k in wanted:
        tensors[k].requires_grad_()
    results = results_of(getattr(E, case.op.name)(*tensors, **case.sample.params))
    outputs = [t for t in results if t._n is not None] if case.op.several else results
    ones = [Tensor._wrap(np.ones(t._d.shape, t._dtype())) for t in outputs]
    found = autograd.grad(outputs, [tensors[k] for k in wanted], ones, allow_unused=True)
    return {k: aval_of(g._array()) for k, g in zip(wanted, found, strict=True) if g is not None}


def by_graph(case: Case, arrays: list[np.ndarray], wanted: list[int]) -> dict[int, Aval]:
    builder = Builder()
    inputs = [builder.input(f"x{k}", aval_of(a)) for k, a in enumerate(arrays)]
    first = builder.next_id
    results = [s for s in results_of(builder.apply(case.op, inputs, case.sample.params)) if is_inexact(s.dtype)]
    recorded = range(first, builder.next_id) if case.op.several else [s.id for s in results]
    seeds = {s.id: builder.input(f"ct{k}", s.aval) for k, s in enumerate(results)}
    found = pullback(builder, seeds, [inputs[k].id for k in wanted], recorded)
    return {k: found[inputs[k].id].aval for k in wanted if inputs[k].id in found}


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES.keys())
def test_gradients_are_of_the_type_of_their_operands(dtype: np.dtype):
    rng, tried = np.random.default_rng(0), 0
    for case in (case for name in DIFFERENTIABLE for case in cases_of(OPS[name])):
        arrays = [np.asarray(a) for a in case.arrays(rng, dtype)]
        wanted = [k for k, a in enumerate(arrays) if is_inexact(a.dtype) and case.op.arg_of(k) in case.op.vjp]
        try:
            with np.errstate(all="ignore"), autograd.no_grad():
                getattr(E, case.op.name)(*map(Tensor._wrap, arrays), **case.sample.params)
        except RuntimeError:
            assert dtype.itemsize == 2, case.id  # PyTorch refuses 16 bits there
            continue
        with np.errstate(all="ignore"):
            for gradients in (by_tape, by_graph):
                for k, aval in gradients(case, arrays, wanted).items():
                    assert aval == aval_of(arrays[k]), (case.id, k, gradients.__name__)
                    tried += 1
    assert tried > 400


def test_what_gradient_rules_have_on_their_way_may_leave_the_range_of_16_bits():
    def tape(x, g):
        (dx,) = torch.autograd.grad(E.pow(x, exponent), x, g)
        return dx

    def twice(x, g):
        (dx,) = torch.autograd.grad(E.pow(x, exponent), x, g, create_graph=True)
        return dx.detach()

    dtype = torch.float16
    exponent = torch.tensor([60.0, 3.0], dtype=dtype)  # 1.25 ** 59 is infinite
    x = torch.tensor([1.25, 2.0], dtype=dtype, requires_grad=True)
    g = torch.tensor([0.0, 1.0], dtype=dtype)
    compiled = graphc.compile(lambda x: E.pow(x, exponent))
    (by_xla,) = torch.autograd.grad(compiled(x), x, g)
    graph = graphc.gradients(graphc.trace(lambda x, g: (E.pow(x, exponent) * g).sum(), x, g), wrt=("x",))
    by_graph = Tensor._wrap(graph(x._array(), g._array(), exponent._array())["x"])
    for found in (tape(x, g), twice(x, g), by_xla, by_graph):
        assert found.dtype is dtype
        assert found.tolist() == [0, 12]
