"""Operations that a user declares: run, differentiated and compiled, as PyTorch's are."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import compare
import eager
import graphc
from tests.oracle import torch_or_skip


def declared(torch: ModuleType, name: str) -> Any:
    def scaled(x, k: float = 2.0, *, shift: float = 0.0):
        return x * x * k + shift

    scaled.__annotations__["x"] = scaled.__annotations__["return"] = torch.Tensor
    scaled.__annotations__.update(k=float, shift=float)
    return torch.library.custom_op(name, scaled, mutates_args=())


def differentiated(torch: ModuleType, name: str) -> Any:
    op = declared(torch, name)

    def setup(ctx, inputs, output, keyword_only_inputs):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1] + keyword_only_inputs["shift"]

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * ctx.k * g, None

    op.register_autograd(backward, setup_context=setup)
    return op


def said(torch: ModuleType, name: str) -> list[str]:
    """What a program with custom operations prints."""
    lines = []
    plain = declared(torch, f"{name}::plain")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    lines += [repr(plain), str(plain(x)), str(getattr(torch.ops, name).plain(x.detach(), 3.0, shift=1.0))]
    for act in (
        lambda: plain(x).sum().backward(),
        lambda: getattr(torch.ops, name).nothing,
    ):
        with pytest.raises(Exception) as caught:
            act()
        lines.append(f"{type(caught.value).__name__}: {caught.value}")
    op = differentiated(torch, f"{name}::given")
    y = op(x, k=3.0, shift=0.5)
    y.sum().backward()
    lines += [type(y.grad_fn).__name__, str(y), str(x.grad)]

    @op.register_fake
    def fake(x, k=2.0, *, shift=0.0):
        return torch.empty_like(x)

    lines.append(str(op(torch.ones(3, 4, device="meta")).shape))
    return lines


def test_custom_operations_are_pytorchs():
    assert said(eager, "of_eager") == [
        line.replace("of_torch", "of_eager") for line in said(torch_or_skip(), "of_torch")
    ]


def test_custom_operations_run_differentiate_and_compile():
    op = differentiated(eager, "of_tests::given")
    x = eager.tensor([1.0, -2.0, 3.0], requires_grad=True)

    def loss(x):
        return op(x.sin(), 3.0, shift=0.5).sum()

    loss(x).backward()
    expected = 2 * np.sin(x.detach().numpy()) * 3.5 * np.cos(x.detach().numpy())
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
    eagerly, x.grad = x.grad, None
    graphc.compile(loss)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), eagerly.numpy(), rtol=1e-6)
    assert compare.check(loss, x.detach().requires_grad_(), modes=["graph", "compiled"]).ok


def test_profiling_leaves_the_operations_alone():
    with eager.profiler.profile():
        eager.ones(2) + 1
    assert eager.ops is eager.autograd.custom_ops.ops


def test_names_have_a_namespace():
    with pytest.raises(ValueError, match=r'form "namespace::name", but got foo'):
        eager.library.custom_op("foo", lambda x: x, mutates_args=())


def test_a_result_that_is_an_operand_is_refused():
    op = eager.library.custom_op("of_tests::same", lambda x: x, mutates_args=())
    with pytest.raises(RuntimeError, match="must not also be an input"):
        op(eager.ones(2))


def test_functions_find_operations_by_name():
    eager.library.custom_op("of_tests::found", lambda x: x + 1, mutates_args=())
    eager.library.register_fake("of_tests::found", lambda x: eager.empty_like(x))
    eager.library.register_kernel("of_tests::found", "cpu", lambda x: x + 2)
    assert eager.ops.of_tests.found(eager.zeros(1)).tolist() == [2.0]
    assert eager.ops.of_tests.found(eager.zeros(3, device="meta")).is_meta
    with pytest.raises(RuntimeError, match="does not exist"):
        eager.library.register_fake("of_tests::lost", lambda x: x)
