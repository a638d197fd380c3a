"""Recurrent layers: values and gradients of every option are PyTorch's, and compiled layers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager
import graphc
from tests.oracle import asked_of_torch, torch_or_skip

KINDS = ("RNN", "LSTM", "GRU")
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "deep": {"num_layers": 3},
    "both directions": {"bidirectional": True, "num_layers": 2},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False},
}


def both(kind: str, options: dict[str, Any]) -> tuple[Any, Any]:
    torch = torch_or_skip()
    made = []
    for library in (torch, eager):
        library.manual_seed(0)
        made.append(getattr(library.nn, kind)(3, 4, **options))
    return made[0], made[1]


def flat(output: Any) -> list[Any]:
    y, state = output
    return [y, *(state if isinstance(state, tuple) else (state,))]


@asked_of_torch("options", OPTIONS.values(), ids=list(OPTIONS))
@asked_of_torch("kind", KINDS)
def test_values_and_gradients_are_pytorchs(kind: str, options: dict[str, Any], rng: np.random.Generator):
    torch = torch_or_skip()
    theirs, mine = both(kind, options)
    values = rng.standard_normal((5, 2, 3)).astype(np.float32)
    x, y = torch.tensor(values, requires_grad=True), eager.as_tensor(values.copy()).requires_grad_()
    expected, found = flat(theirs(x)), flat(mine(y))
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), atol=1e-6)
    sum(t.square().sum() for t in expected).backward()
    sum(t.square().sum() for t in found).backward()
    pairs = [(x, y), *zip(theirs.parameters(), mine.parameters(), strict=True)]
    for a, b in pairs:
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-4, atol=1e-5)


@asked_of_torch("kind", KINDS)
@asked_of_torch("sort", [True, False])
def test_packed_sequences(kind: str, sort: bool, rng: np.random.Generator):
    torch = torch_or_skip()
    theirs, mine = both(kind, {"bidirectional": True, "num_layers": 2})
    values, lengths = rng.standard_normal((4, 3, 3)).astype(np.float32), [4, 2, 1] if sort else [2, 4, 1]
    results = []
    for library, module in ((torch, theirs), (eager, mine)):
        rnn = library.nn.utils.rnn
        packed = rnn.pack_padded_sequence(library.tensor(values), lengths, enforce_sorted=sort)
        output, state = module(packed)
        padded, sizes = rnn.pad_packed_sequence(output)
        assert sizes.tolist() == lengths
        results.append([t.detach().numpy() for t in flat((padded, state))])
        padded.square().sum().backward()
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b, a, atol=1e-6)
    for a, b in zip(theirs.parameters(), mine.parameters(), strict=True):
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_layers_are_the_same(kind: str, rng: np.random.Generator):
    eager.manual_seed(0)
    module = getattr(eager.nn, kind)(3, 4, bidirectional=True)
    x = eager.as_tensor(rng.standard_normal((4, 2, 3)).astype(np.float32))
    loss = graphc.compile(lambda t: module(t)[0].square().sum())
    expected = module(x)[0].square().sum()
    expected.backward()
    gradients = [p.grad for p in module.parameters()]
    module.zero_grad()
    found = loss(x)
    found.backward()
    assert float(found) == pytest.approx(float(expected), rel=1e-5)
    for p, g in zip(module.parameters(), gradients, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
def test_a_cell_is_a_step_of_its_layer(kind: str):
    cell = getattr(eager.nn, kind)(3, 4)
    layer = getattr(eager.nn, kind.removesuffix("Cell"))(3, 4)
    layer.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    x, state, steps = eager.randn(3, 2, 3), None, []
    for row in x:
        state = cell(row, state)
        steps.append(state[0] if isinstance(state, tuple) else state)
    np.testing.assert_allclose(layer(x)[0].detach().numpy(), eager.stack(steps).detach().numpy(), atol=1e-6)
