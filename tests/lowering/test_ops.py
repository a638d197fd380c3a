"""Every op under JAX: its lowering gives NumPy's value, `jax.eval_shape` the rule's type, `jax.vjp` our vjp's result.

Derived from the registry: a new op is tested by being declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest

from graphc.autodiff import gradients
from graphc.ir import Builder, Graph, Ref
from graphc.lowering import lower
from graphc.lowering.reference import ReverseMode
from graphc.lowering.source import Source, jax_kernel
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval, results_of
from graphc.ops.dtypes import is_inexact
from tests.ops.cases import Case, by_op, every_case

# In float64 the two libraries differ by rounding only: a few ULP in a function, a few hundred in a long reduction.
RTOL = 1e-11
SLOW = {"special_zeta", "igamma", "igammac", "matrix_exp"}  # JAX's gradients of these take XLA 6 to 15 seconds each


Call = tuple[Op, list[np.ndarray], dict[str, Any]]  # an op, operands, parameters


def graph_of(*calls: Call) -> tuple[Graph, list[np.ndarray], list[list[int]], list[Call]]:
    """Calls of ops on operands of their own, in one graph.

    With all operands, the positions of those of each call, and the call of each result.
    """
    builder, given, places = Builder(), [], []
    results, made_by = [], []
    for op, arrays, params in calls:
        places.append(list(range(len(given), len(given) + len(arrays))))
        inputs = [builder.input(f"x{k}", Aval(a.shape, a.dtype)) for k, a in zip(places[-1], arrays, strict=True)]
        found = results_of(builder.apply(op, inputs, params))
        results += [Ref(symbol.id) for symbol in found]
        made_by += [(op, arrays, params)] * len(found)
        given += arrays
    return builder.graph("f", tuple(results)).check(), given, places, made_by


def check_lowering(*calls: Call) -> None:
    """Raise AssertionError, naming the op, unless its lowering agrees with its NumPy kernel and its shape rule."""
    graph, arrays, _, made_by = graph_of(*calls)
    check_values(made_by, graph, arrays, [np.asarray(a) for a in lower(graph)(*arrays)])


def check_values(calls: Sequence[Call], graph: Graph, arrays: list[np.ndarray], values: list[np.ndarray]) -> None:
    """Raise AssertionError unless `values`, of JAX, are NumPy's for the results of `graph`, by the call of each."""
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in graph.input_avals()]
    with jax.enable_x64(True):
        inferred = jax.eval_shape(Source(graph).function(), *structs)[: len(calls)]  # and the number of a failed check
    outputs = zip(calls, graph.outputs, graph(*arrays), values, inferred, strict=True)
    for (op, operands, params), id, expected, got, struct in outputs:
        what = f"{op.name}({', '.join(f'{a.dtype}{a.shape}' for a in operands)}, {params})"
        assert got.dtype == expected.dtype, f"{what}: lowered to {got.dtype}, NumPy gives {expected.dtype}"
        assert got.shape == expected.shape, f"{what}: lowered to shape {got.shape}, NumPy gives {expected.shape}"
        np.testing.assert_allclose(got, expected, rtol=RTOL, atol=1e-13, err_msg=f"{what}: lowering and NumPy kernel")
        aval = graph.nodes[id].aval
        assert (struct.shape, struct.dtype) == (aval.shape, aval.dtype), f"{what}: rule {aval}, JAX {struct}"


def check_gradient(rng: np.random.Generator, *calls: Call) -> None:
    """Raise AssertionError, naming the op, unless the values and the vjp are those of JAX's reverse mode."""
    graph, arrays, places, made_by = graph_of(*calls)
    wrt = [
        k
        for (op, *_), positions in zip(calls, places, strict=True)
        for i, k in enumerate(positions)
        if is_inexact(arrays[k].dtype) and op.arg_of(i) in op.vjp
    ]
    cotangents = []
    inexact = [k for k, id in enumerate(graph.outputs) if is_inexact(graph.nodes[id].dtype)]
    for out in (graph.nodes[graph.outputs[k]].aval for k in inexact):
        noise = np.asarray(rng.normal(size=out.shape))
        cotangents.append(noise + 1j * rng.normal(size=out.shape) if out.dtype.kind == "c" else noise)
    ours = gradients(graph, [f"x{k}" for k in wrt], cotangents=True)(*arrays, *cotangents)
    values, theirs = ReverseMode(graph, wrt, inexact)(arrays, cotangents)
    check_values(made_by, graph, arrays, [np.asarray(a) for a in values])
    for k, g in zip(wrt, theirs, strict=True):
        (op, _, params), positions = next(pair for pair in zip(calls, places, strict=True) if k in pair[1])
        what = f"{op.name}({params}): vjp of operand {positions.index(k)}"
        np.testing.assert_allclose(ours[f"x{k}"], np.asarray(g), rtol=1e-9, atol=1e-11, err_msg=what)


def calls_of(cases: list[Case], rng: np.random.Generator) -> list[Call]:
    return [(case.op, case.arrays(rng), case.sample.params) for case in cases]


SMOOTH = every_case(differentiable=True)
IN_REVERSE_MODE = {case.id for case in SMOOTH if case.op.name not in SLOW}


@pytest.mark.parametrize("cases", by_op(case for case in every_case() if case.id not in IN_REVERSE_MODE))
def test_lowering_is_numpys(cases: list[Case], rng: np.random.Generator):
    check_lowering(*calls_of(cases, rng))


@pytest.mark.parametrize("cases", by_op(SMOOTH, deep=SLOW))
def test_values_and_vjp_are_jaxs(cases: list[Case], rng: np.random.Generator):
    check_gradient(rng, *calls_of(cases, rng))


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("correction", [2, 3, 5])
def test_variances_of_too_few_numbers_are_infinite(correction: int, rng: np.random.Generator):
    params = {"axis": (1,), "keepdims": False, "correction": correction}
    check_lowering((OPS["var"], [rng.normal(size=(2, 3))], params))


def test_every_op_has_a_jax_kernel():
    for op in OPS.values():
        assert callable(jax_kernel(op)[1]), op


def test_a_new_pointwise_op_needs_one_declaration(declare, rng):
    """From the declaration alone: eager function, methods, graph, gradients, XLA, gradcheck."""
    import eager as torch
    import graphc
    from graphc.ops.rules import pointwise_float
    from tests.ops import checks

    op = declare("softsign_here", "input", impl=lambda xp, x: x / (1 + xp.abs(x)), rule=pointwise_float,
                 vjp=dict(input=lambda F, g, input: g / F.square(1 + F.abs(input))), domain=(0.3, 2.0),
                 ref=lambda x: x / (1 + np.abs(x)))  # fmt: skip
    x = torch.tensor([0.5, -2.0], requires_grad=True)
    y = torch.softsign_here(x)
    np.testing.assert_allclose(y.detach().numpy(), [1 / 3, -2 / 3], rtol=1e-6)
    np.testing.assert_allclose(x.softsign_here().detach().numpy(), y.detach().numpy())
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 / 2.25, 1 / 9], rtol=1e-6)
    assert x.detach().clone().softsign_here_().tolist() == pytest.approx([1 / 3, -2 / 3])
    assert y.grad_fn.name() == "SoftsignHereBackward0"
    graph = graphc.trace(lambda t: t.softsign_here(), x)
    assert "softsign_here(t)" in str(graph)
    assert Graph.parse(str(graph)) == graph
    fast = graphc.compile(lambda t: torch.softsign_here(t).sum())
    x.grad = None
    fast(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 / 2.25, 1 / 9], rtol=1e-6)
    arrays = [rng.uniform(0.3, 2.0, (3, 4))]
    check_lowering((op, arrays, {}))
    check_gradient(rng, (op, arrays, {}))
    checks.check_gradient(op, arrays, {}, rng)
    checks.check_reference(op, arrays, {}, checks.REFERENCE_TOLERANCE)


def test_a_new_op_with_parameters_needs_one_declaration(declare):
    import eager as torch
    import graphc
    from graphc.ops.rules import same_float

    declare("scaled_here", "input", params={"by": 2.0}, impl=lambda xp, x, by: x * by, rule=same_float,
            vjp=dict(input=lambda F, g, by: g * by))  # fmt: skip
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    assert torch.scaled_here(x).tolist() == [2.0, 6.0]
    assert graphc.compile(lambda t: torch.scaled_here(t, by=0.5))(x).tolist() == [0.5, 1.5]
    x.scaled_here(by=3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert not hasattr(x, "scaled_here_")  # only pointwise ops without parameters have an in-place form


def test_planted_faults_are_caught(monkeypatch, declare, rng):
    from graphc.lowering.overrides import OVERRIDES
    from graphc.ops.rules import pointwise_float

    arrays = [rng.uniform(0.3, 2.0, (3, 4))]
    monkeypatch.setitem(OVERRIDES, "exp", lambda x: jax.numpy.exp(x) * 1.001)
    with pytest.raises(AssertionError, match=r"exp\(.*: lowering and NumPy kernel"):
        check_lowering((OPS["exp"], arrays, {}))
    monkeypatch.setitem(OVERRIDES, "sin", lambda x: jax.numpy.sin(x.astype(np.float32)))
    with pytest.raises(AssertionError, match=r"sin\(.*: lowered to float32, NumPy gives float64"):
        check_lowering((OPS["sin"], arrays, {}))
    wrong = declare("square_wrong", "input", impl="square", rule=pointwise_float,
                    vjp=dict(input=lambda F, g, input: g * (2.001 * input)))  # fmt: skip
    with pytest.raises(AssertionError, match=r"square_wrong.*: vjp of operand 0"):
        check_gradient(rng, (wrong, arrays, {}))
