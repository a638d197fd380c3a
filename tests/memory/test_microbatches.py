"""A loss and its gradients by parts of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F
import graphc
from eager import nn
from tests.memory.programs import mlp


def steps(parts: int, compiled: bool, dtype: Any = None) -> tuple[list[float], list[np.ndarray], Any, Any]:
    """Three training steps: losses and parameters; the step and its arguments."""
    torch.manual_seed(0)
    model = mlp(16, 3, 4)
    batch = torch.randn(48, 16), torch.arange(48) % 4
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(x, y):
        return F.cross_entropy(model(x), y)

    mean = graphc.microbatched(loss, model, parts) if parts else loss

    def step(x, y):
        optimizer.zero_grad()
        value = mean(x, y)
        value.backward()
        optimizer.step()
        return value

    run = graphc.compile(step) if compiled else step
    losses = [run(*batch).item() for _ in range(3)]
    return losses, [p.detach().numpy().copy() for p in model.parameters()], run, batch


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("parts", [1, 6, 48])
def test_steps_are_those_of_the_whole_batch(parts: int, compiled: bool):
    losses, parameters, *_ = steps(parts, compiled)
    expected, others, *_ = steps(0, False)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for a, b in zip(parameters, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_one_part_at_a_time_is_in_memory():
    torch.manual_seed(0)
    model = mlp(32, 6, 4)
    x, y = torch.randn(1024, 32), torch.randn(1024, 4)

    def loss(x, y):
        return F.mse_loss(model(x), y)

    def gradients(mean):
        def run(x, y):
            model.zero_grad()
            mean(x, y).backward()
            return [p.grad for p in model.parameters()]

        return run

    whole, parts = (
        graphc.memory(gradients(mean), x, y).programs[0] for mean in (loss, graphc.microbatched(loss, model, 16))
    )
    assert parts.peak < 0.4 * whole.peak
    assert parts.estimate == pytest.approx(parts.peak, rel=0.15)


def test_gradients_can_be_weighted_and_frozen_parameters_get_none():
    model = mlp(4, 1, 2)
    model[0].weight.requires_grad_(False)
    x = torch.randn(6, 4)
    (3 * graphc.microbatched(lambda x: model(x).mean(), model, 3)(x)).backward()
    found = model[2].weight.grad.clone()
    assert model[0].weight.grad is None
    model.zero_grad()
    (3 * model(x).mean()).backward()
    assert torch.allclose(found, model[2].weight.grad)


def test_a_model_without_parameters_that_learn_is_evaluated():
    model = mlp(4, 1, 2).requires_grad_(False)
    x = torch.randn(6, 4)
    assert torch.equal(graphc.microbatched(lambda x: model(x).mean(), model, 3)(x), model(x).mean())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: graphc.microbatched(lambda x: m(x).mean(), m, 0), "count must be a positive integer, got 0"),
        (lambda m, x: graphc.microbatched(lambda x: m(x).mean(), m, 4)(x), "a batch of 6 does not divide into 4"),
        (lambda m, x: graphc.microbatched(lambda x: m(x).sum(1), m, 3)(x), "a tensor of shape"),
        (lambda m, x: graphc.microbatched(lambda x, y: m(x).mean(), m, 3)(x, x[:3]), "one and the same first"),
        (lambda m, x: graphc.microbatched(lambda x: m(x).mean(), m, 3)(), "one and the same first"),
        (lambda m, x: graphc.microbatched(lambda x: m(x).mean(), nn.Sequential(m, nn.BatchNorm1d(2)), 3)(x),
         "BatchNorm1d '1' computes statistics of the batch"),
    ],
)  # fmt: skip
def test_what_has_no_parts_is_refused(call: Any, message: str):
    with pytest.raises(ValueError, match=message):
        call(mlp(4, 1, 2), torch.randn(6, 4))
