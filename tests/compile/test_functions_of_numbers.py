"""Functions of counters, as schedules are written, are computed by the program: it is compiled no more often."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import exp
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc

SCHEDULES: dict[str, Callable[[int], Any]] = {
    "decay": lambda n: math.exp(-n / 10) + 0.99**n,
    "imported by name": lambda n: exp(-n / 10),
    "cosine": lambda n: 0.5 * (1 + math.cos(math.pi * n / 20)) + math.hypot(n, 1.0) + math.log(n + 1),
    "numpy": lambda n: np.sqrt(n) * np.maximum(0.3, np.minimum(1.0, n / 4)) + np.tanh(np.float64(0.1) * n),
    "ramp": lambda n: np.interp(n, [0, 9, 20], [0.0, 1.0, 0.1]) + np.clip(n / 20, 0.1, 1.0),
    "stairs": lambda n: 0.5 ** math.floor(n / 3) + round(n / 2) + math.ceil(n / 2.5) + (n / 2.5) % 1.5 + n / 3 // 0.5,
}
pytestmark = pytest.mark.on_numpy


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_compiled_once(name: str) -> None:
    def step(x: torch.Tensor, state: SimpleNamespace) -> torch.Tensor:
        state.count += 1
        return x * SCHEDULES[name](state.count)

    ours, theirs, x = SimpleNamespace(count=0), SimpleNamespace(count=0), torch.ones(2, dtype=torch.float64)
    compiled = graphc.compile(lambda x: step(x, ours))
    for _ in range(6):
        torch.testing.assert_close(compiled(x), step(x, theirs), rtol=1e-12, atol=0)
    assert len(compiled.explain().programs) <= 2
    assert "built-in" in repr(math.exp) and "built-in" in repr(exp)


@pytest.mark.parametrize(
    ("function", "error"), [(math.sqrt, ValueError), (math.log, ValueError), (math.exp, OverflowError)]
)
def test_what_raises_is_left_to_python(function: Callable[[float], float], error: type[Exception]) -> None:
    values = SimpleNamespace(x=1.0)
    compiled = graphc.compile(lambda t: t * function(values.x))
    for values.x in (1.0, 2.0, 3.0):
        assert compiled(torch.ones(1)).item() == pytest.approx(function(values.x))
    values.x = -1.0 if error is ValueError else 1e4
    with pytest.raises(error):
        compiled(torch.ones(1))
    values.x = 4.0
    assert compiled(torch.ones(1)).item() == pytest.approx(function(4.0))


def test_tables_have_a_program_for_each_piece() -> None:
    state = SimpleNamespace(count=0)
    compiled = graphc.compile(lambda x: x * np.interp(state.count, [2, 4, 7], [0.5, 1.0, 0.1]))
    for state.count in range(10):
        known = np.interp(state.count, [2, 4, 7], [0.5, 1.0, 0.1])
        assert compiled(torch.ones(1, dtype=torch.float64)).item() == pytest.approx(known, rel=1e-12)
    assert len(compiled.explain().programs) <= 5


def test_a_loss_is_taken_as_well() -> None:
    compiled = graphc.compile(lambda x: x * math.exp(-x.sum().item()))
    for k in range(4):
        x = torch.full((2,), k / 4, dtype=torch.float64)
        assert compiled(x).tolist() == pytest.approx([k / 4 * math.exp(-k / 2)] * 2)
    assert len(compiled.explain().programs) == 1


def test_numbers_of_numpy_stay_what_they_are() -> None:
    def f(x: torch.Tensor) -> Any:
        root = np.sqrt(x.sum().item())
        return x * root.astype(np.float32).item(), root, 2 * root, isinstance(root, np.floating), repr(root)

    compiled = graphc.compile(f)
    for x in (torch.ones(4), torch.ones(4) * 4):
        (ours, *found), (theirs, *known) = compiled(x), f(x)
        assert found == known and list(map(type, found)) == list(map(type, known))
        torch.testing.assert_close(ours, theirs)
