"""Every op under JAX: its lowering gives NumPy's value, `jax.eval_shape` the rule's type, `jax.grad` the vjp's result.

Derived from the registry: a new op is tested by being declared.
"""

from __future__ import annotations

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
from graphc.ops.aval import Aval
from graphc.ops.dtypes import is_inexact
from tests.ops.cases import Case, every_case

# In float64 the two libraries differ by rounding only: a few ULP in a function, a few hundred in a long reduction.
RTOL = 1e-11


def graph_of(op: Op, arrays: list[np.ndarray], params: dict[str, Any]) -> Graph:
    builder = Builder()
    inputs = [builder.input(f"x{i}", Aval(a.shape, a.dtype)) for i, a in enumerate(arrays)]
    return builder.graph("f", Ref(builder.apply(op, inputs, params).id)).check()


def check_lowering(op: Op, arrays: list[np.ndarray], params: dict[str, Any]) -> None:
    """Raise AssertionError, naming the op, unless its lowering agrees with its NumPy kernel and its shape rule."""
    graph = graph_of(op, arrays, params)
    expected, got = graph(*arrays), np.asarray(lower(graph)(*arrays))
    assert got.dtype == expected.dtype, f"{op.name}: lowered to {got.dtype}, NumPy gives {expected.dtype}"
    assert got.shape == expected.shape, f"{op.name}: lowered to shape {got.shape}, NumPy gives {expected.shape}"
    np.testing.assert_allclose(got, expected, rtol=RTOL, atol=1e-13, err_msg=f"{op.name}: lowering and NumPy kernel")
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in graph.input_avals()]
    with jax.enable_x64(True):
        inferred = jax.eval_shape(Source(graph).function(), *structs)[0]
    aval = graph.nodes[graph.outputs[0]].aval
    assert (inferred.shape, inferred.dtype) == (aval.shape, aval.dtype), f"{op.name}: rule {aval}, JAX {inferred}"


def check_gradient(op: Op, arrays: list[np.ndarray], params: dict[str, Any], rng: np.random.Generator) -> None:
    """Raise AssertionError, naming the op, unless its vjp agrees with JAX's own gradient of the lowered forward."""
    graph = graph_of(op, arrays, params)
    wrt = [k for k, a in enumerate(graph.input_avals()) if is_inexact(a.dtype) and op.arg_of(k) in op.vjp]
    out = graph.nodes[graph.outputs[0]].aval
    cotangent = np.asarray(rng.normal(size=out.shape))
    if out.dtype.kind == "c":
        cotangent = cotangent + 1j * rng.normal(size=out.shape)
    names = [f"x{k}" for k in wrt]
    ours = gradients(graph, names, cotangents=True)(*arrays, cotangent)
    _, theirs = ReverseMode(graph, wrt, [0])(arrays, [cotangent])
    for name, g in zip(names, theirs, strict=True):
        np.testing.assert_allclose(
            ours[name], np.asarray(g), rtol=1e-9, atol=1e-11, err_msg=f"{op.name}: vjp of {name}"
        )


@pytest.mark.usefixtures("quick_xla")
@pytest.mark.parametrize("case", every_case())
def test_lowering_is_numpys(case: Case, rng: np.random.Generator):
    check_lowering(case.op, case.arrays(rng), case.sample.params)


@pytest.mark.usefixtures("quick_xla")
@pytest.mark.parametrize("case", every_case(differentiable=True))
def test_vjp_is_jaxs(case: Case, rng: np.random.Generator):
    check_gradient(case.op, case.arrays(rng), case.sample.params, rng)


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
    check_lowering(op, arrays, {})
    check_gradient(op, arrays, {}, rng)
    checks.check_gradient(op, arrays, {}, rng)
    checks.check_reference(op, arrays, {}, checks.REFERENCE_TOLERANCE)


def test_planted_faults_are_caught(monkeypatch, declare, rng):
    from graphc.lowering.overrides import OVERRIDES
    from graphc.ops.rules import pointwise_float

    arrays = [rng.uniform(0.3, 2.0, (3, 4))]
    monkeypatch.setitem(OVERRIDES, "exp", lambda x: jax.numpy.exp(x) * 1.001)
    with pytest.raises(AssertionError, match="exp: lowering and NumPy kernel"):
        check_lowering(OPS["exp"], arrays, {})
    monkeypatch.setitem(OVERRIDES, "sin", lambda x: jax.numpy.sin(x.astype(np.float32)))
    with pytest.raises(AssertionError, match="sin: lowered to float32, NumPy gives float64"):
        check_lowering(OPS["sin"], arrays, {})
    wrong = declare("square_wrong", "input", impl="square", rule=pointwise_float,
                    vjp=dict(input=lambda F, g, input: g * (2.001 * input)))  # fmt: skip
    with pytest.raises(AssertionError, match="square_wrong: vjp of x0"):
        check_gradient(wrong, arrays, {}, rng)
