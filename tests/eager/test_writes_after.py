"""What may be written after an operation has read or made it: all that PyTorch lets be written, and more."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager
from tests.oracle import torch_or_skip

Function = Callable[[Any, Any], Any]
VALUES = [[0.5, -1.2, 2.0], [0.3, 0.7, -0.4], [1.0, 2.0, -0.3]]

_OF_FUNCTIONAL = (
    "celu selu elu leaky_relu hardtanh softplus logsigmoid gelu silu mish hardshrink softshrink tanhshrink softsign "
    "relu relu6 hardswish hardsigmoid normalize pdist"
).split()
_OF_LINALG = (
    "qr svd svdvals eigh eigvalsh inv det slogdet pinv lu lu_factor matrix_exp cond matrix_norm norm vander"
).split()
_OF_TORCH = (
    "exp tanh sigmoid reciprocal sinc erf lgamma i0 trace std var var_mean aminmax nansum cumsum sort sum prod norm "
    "square sin cos abs asinh atan expm1 frac frexp"
).split()
FUNCTIONS: dict[str, Function] = {
    **{name: lambda t, x, name=name: getattr(t.nn.functional, name)(x) for name in _OF_FUNCTIONAL},
    **{f"linalg.{name}": lambda t, x, name=name: getattr(t.linalg, name)(x) for name in _OF_LINALG},
    **{name: lambda t, x, name=name: getattr(t, name)(x, *[0] * (name == "cumsum")) for name in _OF_TORCH},
    "elu below": lambda t, x: t.nn.functional.elu(x, 0.3),
    "qr of wide matrices": lambda t, x: t.linalg.qr(x[:2] * 1.0),
    **{f"norm_except_dim {dim}": lambda t, x, dim=dim: t.norm_except_dim(x[None] * 1.0, 2, dim) for dim in (-1, 0, 1)},
    "x of norm_except_dim": lambda t, x: t.norm_except_dim(x.view(3, 1, 3).transpose(0, 1), 2, 1),
    "wide x of qr": lambda t, x: t.linalg.qr(x[:2])[1],
    "cholesky": lambda t, x: t.linalg.cholesky(x @ x.mT + t.eye(3)),
    "solve": lambda t, x: t.linalg.solve(x, x * 2),
    "matrix_power": lambda t, x: t.linalg.matrix_power(x, -2),
    "softmax": lambda t, x: x.softmax(1),
    "log_softmax": lambda t, x: x.log_softmax(1),
    "logsumexp": lambda t, x: x.logsumexp(1),
    "cumprod": lambda t, x: x.cumprod(1),
    "amax": lambda t, x: x.amax(1),
    "topk": lambda t, x: x.topk(2)[0],
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (3,)),
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
    "huber": lambda t, x: t.nn.functional.huber_loss(x, x * 2, reduction="none"),
    "pow": lambda t, x: x**3,
    "clamp": lambda t, x: x.clamp(-0.5, 0.5),
    "maximum": lambda t, x: t.maximum(x, x * 2),
    "atan2": lambda t, x: t.atan2(x, x * 2),
    "lerp": lambda t, x: t.lerp(x, x * 2, x * 3),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "max_pool1d": lambda t, x: t.nn.functional.max_pool1d(x[None], 2),
}  # fmt: skip


def gradient(t: Any, function: Function, operand: bool) -> np.ndarray | None:
    """The gradient if the operand, or the result, is written before backward runs; None if that is refused."""
    x = t.tensor(VALUES, requires_grad=True)
    given = x * 1.0
    made = function(t, given)
    results = [made] if hasattr(made, "backward") else list(made)
    (given if operand else results[0]).mul_(2.0)
    try:
        sum((y.sum() for y in results if y.requires_grad), t.zeros(())).backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return None
    return x.grad.numpy()


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_results_of_which_the_operand_tells_the_slope_may_be_written(name: str):
    assert gradient(eager, FUNCTIONS[name], operand=False) is not None


@pytest.mark.deep
def test_what_pytorch_lets_be_written_may_be_written():
    torch = torch_or_skip()
    with warnings.catch_warnings(action="ignore"):
        for name, function in FUNCTIONS.items():
            for operand in (True, False):
                expected = gradient(torch, function, operand)
                if expected is not None:
                    found = gradient(eager, function, operand)
                    assert found is not None, f"{name}: refused"
                    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4, err_msg=name)
