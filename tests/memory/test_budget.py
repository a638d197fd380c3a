"""Programs within a budget of memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from graphc.errors import MemoryBudgetError
from graphc.execution.budget import SLACK, Candidate, fitted
from graphc.execution.prices import Recomputation
from graphc.execution.recompute import recomputed
from graphc.footprint.liveness import liveness
from graphc.ir import Builder, Ref
from graphc.lowering import barriers, overrides
from tests.memory.programs import GPTBlock, Made, ResNetBlock, mlp, step


def deep(dropout: float = 0.0) -> Made:
    torch.manual_seed(0)
    model = mlp(32, 6, 4)
    if dropout:
        model = nn.Sequential(*(part for layer in model for part in (layer, nn.Dropout(dropout))))
    return step(model, torch.optim.Adam, torch.randn(512, 32), torch.randn(512, 4))


def blocks(make: Callable[[], nn.Module], *shape: int) -> Made:
    torch.manual_seed(0)
    model = nn.Sequential(*(make() for _ in range(3)))
    return step(model, torch.optim.SGD, torch.randn(*shape), torch.randn(*shape))


def peak(compiled: Any, args: tuple[Any, ...]) -> int:
    """XLA's figure."""
    return graphc.memory(compiled, *args).peak


def kept(make: Callable[[], Made], fraction: float) -> None:
    """The budget is kept, by XLA's figure, and three steps give the losses of eager mode."""
    plain, small = make(), make()
    whole = peak(plain.fn, plain.args)
    compiled = graphc.compile(small.fn, memory=int(fraction * whole))
    losses: list[list[float]] = []
    for run, args in ((plain.fn, plain.args), (compiled, small.args)):
        torch.manual_seed(1)
        losses.append([run(*args).item() for _ in range(3)])
    assert peak(compiled, small.args) <= fraction * whole
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert re.search(r"memory: .* values are computed again, [\d,]+ operations, which saves", str(compiled.explain()))


def test_a_step_keeps_its_budget_and_its_values():
    kept(deep, 0.85)


@pytest.mark.deep
def test_random_masks_are_drawn_once():
    kept(lambda: deep(dropout=0.3), 0.85)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("make", "fraction"),
    [
        (lambda: blocks(lambda: GPTBlock(32, 2), 4, 32, 32), 0.75),
        (lambda: blocks(lambda: ResNetBlock(8), 4, 8, 16, 16), 0.85),
    ],
    ids=["gpt", "resnet"],
)  # fmt: skip
def test_deeper_models_keep_theirs(make: Callable[[], Made], fraction: float):
    kept(make, fraction)


def test_a_forward_and_a_backward_program_keep_theirs():
    torch.manual_seed(0)
    model, x = mlp(32, 6, 4), torch.randn(512, 32)
    plain = graphc.compile(lambda x: model(x).square().mean())
    plain(x).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    whole = peak(plain, (x,))
    small = graphc.compile(lambda x: model(x).square().mean(), memory=int(0.9 * whole))
    small(x).backward()
    assert peak(small, (x,)) <= 0.9 * whole
    for p, d in zip(model.parameters(), expected, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), d.numpy(), rtol=1e-4, atol=1e-7)


def test_a_budget_that_is_large_enough_changes_nothing():
    made = deep()
    compiled = graphc.compile(made.fn, memory="1GiB")
    compiled(*made.args)
    assert "nothing is computed again" in str(compiled.explain())
    assert compiled.graph == graphc.compile(deep().fn).prepare(*made.args).forward.graph


def test_what_cannot_be_kept_is_refused_before_anything_has_changed():
    made = deep(dropout=0.5)
    state = torch.get_rng_state()
    with pytest.raises(MemoryBudgetError, match=r"memory=16.0 KiB, but the least that was found is .* KiB") as caught:
        graphc.compile(made.fn, memory="16KiB")(*made.args)
    assert "programs.py" in str(caught.value)  # the lines of the largest
    assert torch.equal(torch.get_rng_state(), state)
    assert caught.value.least <= graphc.memory(made.fn, *made.args).peak


def test_programs_that_are_not_of_xla_have_no_budget():
    with pytest.raises(ValueError, match="backend 'numpy' is not"):
        graphc.compile(lambda x: x, memory=0.5, backend="numpy")


def a_way_to_save(make: Callable[[], Made]) -> tuple[Any, Any, dict[int, int]]:
    """The graph of a step, one of the same that takes less, and what is donated."""
    made = make()
    runner = graphc.compile(made.fn).prepare(*made.args)
    graph, donated = runner.forward.graph, runner.forward.aliases
    found = recomputed(graph, liveness(graph, donated), Recomputation(3000, 48, True))
    assert found is not None
    return graph, found.graph.check(), donated


def figure(graph: Any, donated: dict[int, int]) -> int:
    program = graphc.lower(graph, donate=tuple(donated), restore={k: p for p, k in donated.items()})
    return program.plan().peak  # type: ignore[union-attr]


def test_without_a_barrier_xla_merges_the_copies(monkeypatch: pytest.MonkeyPatch):
    graph, less, donated = a_way_to_save(deep)
    whole, held = figure(graph, donated), figure(less, donated)
    assert held < 0.9 * whole
    monkeypatch.setitem(overrides.OVERRIDES, "held", lambda x, until: x)
    assert figure(less, donated) > 0.98 * whole
    assert barriers.OVERRIDES["held"] is barriers.held


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "bool", "complex64"])
def test_held_is_the_value(dtype: str):
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    for until in (x, x.real if dtype == "complex64" else x[:1], torch.tensor(float("nan")), torch.ones(0)):
        graph = graphc.trace(lambda x, u: (x.clone(), u), x, until)
        with_held = _held(graph)
        np.testing.assert_array_equal(np.asarray(graphc.lower(with_held)(x, until)[0]), x.numpy())


def _held(graph: Any) -> Any:
    builder = Builder(graph.nodes)
    x, until = (builder.symbol(id) for id in graph.inputs)
    result = builder.language.held(x, until)
    return builder.graph(graph.name, (Ref(result.id), graph.result[1]), graph.inputs)


def test_what_fits_by_the_model_is_compiled_first_and_then_what_may():
    """XLA's figures are the model's here, but for one program that is smaller than foretold."""
    built: list[str] = []

    def candidate(name: str, predicted: int, work: float, exact: int | None = None) -> Candidate:
        program = SimpleNamespace(
            compile=lambda: None, plan=lambda: None if exact is None else SimpleNamespace(peak=exact)
        )
        return Candidate(predicted, work, 1, lambda: (built.append(name), ((program,), name))[1])

    base, almost = candidate("base", 200, 0), candidate("almost", int(SLACK * 100), 1, exact=99)
    fits = candidate("fits", 90, 5)
    graph = graphc.trace(lambda x: x + 1, torch.ones(2))
    assert fitted("f", 100, base, lambda: [almost, fits], graph).made_of == "fits"
    assert fitted("f", 100, base, lambda: [candidate("no", 130, 0), almost], graph).made_of == "almost"
    assert built == ["fits", "almost"]
    with pytest.raises(MemoryBudgetError):
        fitted("f", 80, base, lambda: [almost, fits], graph)
    assert built[2:] == ["fits"]  # the smallest, at the end
