"""Layers whose sizes or places depend on their input, in compiled programs."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc

F, nn = torch.nn.functional, torch.nn


def agree(function, inputs, wrt):
    """Values and gradients of the compiled `function` are eager's, with the same random numbers."""
    torch.manual_seed(0)
    expected = function(*inputs)
    torch.manual_seed(0)
    got = graphc.compile(function)(*inputs)
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-5)
    for a, b in zip(torch.autograd.grad(got.sum(), wrt), torch.autograd.grad(expected.sum(), wrt), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_fractional_pools_draw_what_eager_draws():
    image = torch.rand(2, 2, 7, 6, requires_grad=True)
    agree(lambda x: F.fractional_max_pool2d(x, (2, 3), (4, 3)), (image,), [image])
    volume = torch.rand(2, 5, 6, 4, requires_grad=True)
    agree(lambda x: F.fractional_max_pool3d(x, 2, output_ratio=0.5), (volume,), [volume])


def test_adaptive_softmax_has_no_shape_that_depends_on_the_targets():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10, 15], div_value=2.0)
    x, target = torch.randn(6, 8, requires_grad=True), torch.tensor([0, 3, 5, 12, 19, 4])
    agree(lambda x, t: layer(x, t).output, (x, target), [x, layer.head.weight, layer.tail[0][1].weight])
    agree(layer.log_prob, (x,), [x])
    assert graphc.compile(layer.predict)(x).tolist() == layer.predict(x).tolist()
    with pytest.raises(RuntimeError, match="Target values should be in"):
        graphc.compile(lambda x, t: layer(x, t).loss)(x, target + 1)


def test_lazy_layers_begin_while_they_are_traced():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(2))
    step = graphc.compile(lambda x: model(x))
    x = torch.randn(6, 8)
    first = step(x)
    assert [type(m) for m in model] == [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear]
    np.testing.assert_allclose(step(x).detach().numpy(), first.detach().numpy(), rtol=1e-6)
    assert int(model[1].num_batches_tracked) == 2


@pytest.mark.parametrize("function", [F.relu, F.hardsigmoid, F.logsigmoid, F.hardswish])
def test_gradients_at_nan_and_edges(function):
    x = torch.tensor([float("nan"), -4.0, -3.0, 0.0, 3.0, 4.0], requires_grad=True)
    agree(function, (x,), [x])
