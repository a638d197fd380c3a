"""`torch.nn.functional`, call by call: values, gradients and node names are PyTorch's, and a compiled call is the same.

The calls are the lines of nn_expressions.txt: expressions of `T` (torch), `F` (its nn.functional), `g(*shape)`, which
makes a leaf of uniform numbers, and `I`, two indices.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
import graphc
from tests.oracle import asked_of_torch, torch_or_skip

X = eager.ones(3, 2)
CALLS = (Path(__file__).parent / "nn_expressions.txt").read_text().splitlines()
# what draws random numbers between its leaves, or depends on values that a trace does not have
NOT_COMPILED = ("rand(", "randn", "dropout", "rrelu", "gumbel", "max_norm", "scale_grad_by_freq")
# one call of each function, the last: it has the most options
COMPILED = {
    call.partition("(")[0]: call for call in CALLS if "g(" in call and not any(word in call for word in NOT_COMPILED)
}


def evaluate(torch: Any, call: str, make: Any) -> Any:
    scope = {"T": torch, "F": torch.nn.functional, "g": make, "I": torch.tensor([0, 1])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(call, scope)


def run(torch: Any, call: str) -> tuple[Any, list[Any]]:
    torch.manual_seed(0)
    leaves: list[Any] = []

    def make(*shape: int) -> Any:
        leaves.append(torch.rand(*shape, requires_grad=True))
        return leaves[-1]

    return evaluate(torch, call, make), leaves


def weights(torch: Any, result: Any) -> Any:
    return torch.arange(1, result.numel() + 1).reshape(result.shape).to(result.dtype) * 0.1


@asked_of_torch("call", CALLS)
def test_a_call_is_pytorchs(call: str):
    torch = torch_or_skip()
    (a, theirs), (b, mine) = run(torch, call), run(eager, call)
    expected, found = a.detach().numpy(), b.detach().numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if a.grad_fn is None:
        assert b.grad_fn is None
        return
    assert b.grad_fn.name() == a.grad_fn.name()
    (a * weights(torch, a)).sum().backward()
    (b * weights(eager, b)).sum().backward()
    for x, y in zip(theirs, mine, strict=True):
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=2e-4, atol=3e-5)


@pytest.mark.on_numpy
@pytest.mark.parametrize("call", COMPILED.values(), ids=list(COMPILED))
def test_a_compiled_call_is_the_same(call: str):
    expected, leaves = run(eager, call)

    def program(*given: Any) -> Any:
        remaining = iter(given)
        return evaluate(eager, call, lambda *shape: next(remaining))

    found = graphc.compile(program)(*(leaf.detach() for leaf in leaves))
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("padding_mode", ["border", "reflection"])
@pytest.mark.parametrize("d", [2, 3])
def test_points_on_the_border_of_an_image_have_the_value_of_its_pixels(compiled: bool, padding_mode: str, d: int):
    image = eager.ones(1, 1, *(3,) * d)
    image[(0, 0, *(1,) * (d - 1), 2)] = np.inf  # on the border: what would be beside it has no weight
    grid = eager.zeros(1, *(1,) * (d - 1), 2, d)
    grid[..., 0, 0], grid[..., 1, 0] = 1.0, -1.0

    def sampled(image, grid):
        return eager.nn.functional.grid_sample(image, grid, padding_mode=padding_mode, align_corners=True).flatten()

    assert (graphc.compile(sampled) if compiled else sampled)(image, grid).tolist() == [np.inf, 1.0]


def test_pixels_of_no_images_are_shuffled():
    assert eager.nn.PixelShuffle(2)(eager.ones(0, 8, 3, 2)).shape == (0, 2, 6, 4)
    assert eager.nn.PixelUnshuffle(2)(eager.ones(0, 2, 6, 4)).shape == (0, 8, 3, 2)


def test_an_empty_batch_gives_the_parameters_gradients_of_zeros():
    norm = eager.nn.BatchNorm1d(2)
    norm(eager.zeros(0, 2)).sum().backward()
    assert [p.grad.tolist() for p in norm.parameters()] == [[0.0, 0.0]] * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n: n.BatchNorm1d(2, 0.0)(X), "batch_norm eps must be positive during training, but got 0.0"),
        (lambda n: n.BatchNorm1d(2, -1.0).eval()(X), "batch_norm eps must be non-negative, but got -1.0"),
        (lambda n: n.CircularPad1d(1)(eager.ones(1, 2, 3, 4)), "expected 2D or 3D input (got 4D input)"),
        (lambda n: n.CircularPad3d(1)(eager.ones(2, 3, 4)), "expected 4D or 5D input (got 3D input)"),
    ],
)  # fmt: skip
def test_what_a_layer_refuses(call: Any, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call(eager.nn)
