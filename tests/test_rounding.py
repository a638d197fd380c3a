"""Rounding explains what it does, and nothing else: 1e-4 of a number that is an answer is a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import eager as torch
from compare.judging.simulated import simulated
from tests import rounding, settings
from tests.eager.snippet_files import every_snippet, output_of
from tests.scenarios import harness, models, training  # noqa: F401  (programs)

PROGRAMS = pytest.param("models.a_transformer_block", marks=pytest.mark.deep), "training.rmsprop"
SNIPPETS = pytest.param("a Legendre polynomial as a Function", marks=pytest.mark.deep), "singular values"


def floats(snapshot: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Where a snapshot has arrays of finite floats that are not all small."""
    if isinstance(snapshot, np.ndarray):
        if snapshot.dtype.kind == "f" and np.isfinite(snapshot).all() and np.abs(snapshot).max(initial=0) > 0.1:
            yield path
    elif isinstance(snapshot, (list, tuple)):
        for i, item in enumerate(snapshot):
            yield from floats(item, (*path, i))


def planted(snapshot: Any, path: tuple[int, ...]) -> Any:
    """The snapshot with the largest number of the array at `path` off by 1e-4 of itself."""
    if not path:
        wrong = snapshot.copy()
        wrong.reshape(-1)[np.abs(wrong).argmax()] *= 1 + 1e-4
        return wrong
    items = list(snapshot)
    items[path[0]] = planted(items[path[0]], path[1:])
    return type(snapshot)(items)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wrong_digit_in_a_program_is_a_fault(name: str):
    program = harness.PROGRAMS[name]
    right, rounded = harness.run(program, harness._unchanged), harness.rounded_runs(program)
    places = list(floats(right))
    assert len(places) > 5
    assert all(harness.difference(right, planted(right, place), lambda: rounded) for place in places)


def test_what_adam_makes_of_rounding_is_none():
    """The bias of a layer before a normalization has no gradient; Adam steps by the learning rate all the same."""

    def program() -> np.ndarray:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8, affine=False), torch.nn.Tanh())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.linspace(-1, 1, 64).reshape(8, 8)).square().mean().backward()
            optimizer.step()
        return model[0].bias.detach().numpy().copy()

    found, others = program(), rounding.runs(program)
    assert rounding.explained(found + 0.01, found, others).all()
    assert not rounding.explained(found + 1.0, found, others).any()


@pytest.mark.parametrize("title", SNIPPETS)
def test_texts(title: str):
    snippet = next(s for s in every_snippet() if s.title == title)
    recorded = snippet.expected or ""
    others = rounding.runs(lambda: output_of(snippet, torch))
    texts = {recorded, *others}
    own = output_of(snippet, torch)
    assert all(rounding.text_explained(recorded, text, others) for text in texts - {own, recorded})
    for wrong in ("1.56", "3.6587"):
        assert not rounding.text_explained(recorded, recorded.replace("1.55", wrong).replace("3.6586", wrong), others)


def test_text_of_integers_and_words_is_exact():
    others = ["3 tensors: -0.00", "4 tensors: 0.00"]
    assert rounding.text_explained("3 tensors: 0.00", "3 tensors: -0.00", ["3 tensors: 0.00", "3 tensors: -0.00"])
    assert not rounding.text_explained("3 tensors: 0.00", "4 tensors: 0.00", others)
    assert not rounding.text_explained("3 tensors: 0.00", "3 floats: 0.00", others)


def test_simulated_rounding_ends_with_its_context():
    x = torch.linspace(0.1, 1, 10, requires_grad=True)

    def gradient() -> np.ndarray:
        return torch.autograd.grad(torch.exp(x * 1.1).sum(), x)[0].numpy()

    before = gradient()
    with simulated(0):
        inside = gradient()
    assert (inside != before).any() and np.allclose(inside, before, rtol=1e-5)
    assert (gradient() == before).all()


@pytest.mark.parametrize("name", settings.SETTINGS)
def test_settings_are_what_this_machine_can_be_told(name: str):
    assert all(isinstance(value, str) for value in settings.environment(name).values())
