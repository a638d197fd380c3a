"""Results whose shape the values decide: a program for each count, up to a bound, and as in eager throughout."""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import eager as torch
import graphc
from graphc.compiling import paths
from graphc.compiling.paths import MOST_COUNTS
from graphc.errors import CaptureError
from tests.samples import digest, recorder
from tests.samples.operands import make
from tests.samples.recorder import Sample

pytestmark = pytest.mark.on_numpy

VARIANTS: dict[str, Callable[[Any], Any]] = {
    "as recorded": lambda x: x,
    "none": torch.zeros_like,
    "all": torch.ones_like,
    "turned": lambda x: x.flip(list(range(x.dim()))) if x.dtype == torch.bool else (x != x.flip(-1)).to(x.dtype),
    "few": lambda x: (torch.arange(x.numel()).reshape(x.shape) % 5 == 1).to(x.dtype),
}


def operands(sample: Sample, variant: str) -> dict[str, Any] | None:
    """The operands of a sample with other values; None if there are none, or they do not make sense."""
    made = {o.name: make(torch, o) for o in sample.operands}
    change = VARIANTS[variant]
    try:
        return {name: change(x.detach()).requires_grad_(x.requires_grad) for name, x in made.items()}
    except (RuntimeError, IndexError, NotImplementedError):
        return None


def results(sample: Sample, given: dict[str, Any]) -> list[Any]:
    found = digest.expression(sample.call)(torch, **given)
    return [t for t in (found if isinstance(found, (tuple, list)) else [found]) if isinstance(t, torch.Tensor)]


def shapes(sample: Sample, variant: str) -> Any:
    given = operands(sample, variant)
    try:
        return None if given is None else [tuple(t.shape) for t in results(sample, given)]
    except Exception:  # values that the function refuses
        return None


@functools.cache
def sized_by_values() -> dict[str, Sample]:
    """A sample of each recorded call whose results have another shape for other values of the same shapes."""
    found: dict[str, Sample] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in (s for family in recorder.FAMILIES for s in recorder.recorded(family)):
            small = all(0 < make(torch, o).numel() <= 64 for o in sample.operands)
            if sample.call in found or not small or any(text.startswith("! ") for text in sample.recorded):
                continue
            known = [s for s in (shapes(sample, v) for v in VARIANTS) if s is not None]
            if any(s != known[0] for s in known[1:]):
                found[sample.call] = sample
    return found


@pytest.mark.deep
def test_the_functions_are_found() -> None:
    names = {sample.name for sample in sized_by_values().values()}
    assert names >= {"nonzero", "argwhere", "unique", "unique_consecutive", "masked_select", "bincount", "one_hot"}


def plain(f: Callable[..., Any], given: list[Any]) -> list[Any]:
    return [t.detach() for t in f(*given)]


def gradients(f: Callable[..., Any], given: list[Any]) -> list[Any]:
    leaves = [t.detach().clone().requires_grad_(t.dtype.is_floating_point) for t in given]
    live = [t for t in f(*leaves) if t.requires_grad and t.dtype.is_floating_point]
    if live:
        try:
            sum((t * t).sum() for t in live).backward()
        except (RuntimeError, NotImplementedError) as error:  # of a function without a derivative
            return [type(error).__name__]
    return [t.grad for t in leaves]


def consumed_in_place(f: Callable[..., Any], given: list[Any]) -> list[Any]:
    return [given[0].detach().clone(), *f(*given)]


def _filled(call: Callable[..., Any]) -> Callable[..., Any]:
    def write(*given: Any) -> list[Any]:
        board = torch.zeros(4096)
        for t in call(*given):
            board[: t.numel()] += t.detach().reshape(-1).float()
            board[t.numel() :] -= 1
        return [board]

    return write


def _step(call: Callable[..., Any]) -> Callable[..., Any]:
    w = torch.ones((), requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.5)

    def step(*given: Any) -> list[Any]:
        optimizer.zero_grad()
        loss = sum(((w * t.detach().float()).tanh() + w).sum() for t in call(*given))
        loss.backward()
        optimizer.step()
        return [loss.detach(), w.detach().clone()]

    return step


USES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "plain": (lambda call: call, plain),
    "grad": (lambda call: call, gradients),
    "consumed in place": (_filled, consumed_in_place),
    "in a step": (_step, plain),
}


def differences(sample: Sample, use: str) -> Iterator[str]:
    """What a compiled function does otherwise than eager, over the variants and back."""
    names = [o.name for o in sample.operands]
    wrap, observe = USES[use]

    def call(*given: Any) -> list[Any]:
        return results(sample, dict(zip(names, given, strict=True)))

    eagerly, compiled = wrap(call), graphc.compile(wrap(call))
    for variant in [*VARIANTS, "as recorded"]:
        if shapes(sample, variant) is None:
            continue
        expected, found = (observe(f, [*(operands(sample, variant) or {}).values()]) for f in (eagerly, compiled))
        for a, b in zip(expected, found, strict=True):
            if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
                if a is not b and a != b:
                    yield f"{variant}: {a} and {b}"
                continue
            try:
                torch.testing.assert_close(b, a, equal_nan=True)
            except AssertionError as error:
                yield f"{variant}: {error}"


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("use", USES)
def test_as_in_eager(use: str) -> None:
    found = {call: [*differences(sample, use)] for call, sample in sized_by_values().items()}
    assert not {call: texts for call, texts in found.items() if texts}


def some(n: int, count: int) -> tuple[Any, Any]:
    x = torch.arange(float(n)).reshape(2, -1).sin().requires_grad_()
    return x, (torch.arange(n) < count).reshape(2, -1)


def test_beyond_the_bound_calls_run_eagerly() -> None:
    """Counts from none to all, and beyond what is compiled: values, gradients, writes and random numbers."""

    def run(compile: Callable[..., Any]) -> list[Any]:
        torch.manual_seed(0)
        kept, found = torch.zeros(12), []

        @compile
        def f(x: Any, mask: Any) -> Any:
            part = x[mask] + torch.rand(1)
            kept[: part.shape[0]] += part.detach()
            return (part * part).sum()

        for count in [*range(13), 3, 0, 12]:
            x, mask = some(12, count)
            f(x, mask).backward()
            found += [x.grad, kept.clone()]
        found.append(torch.rand(2))
        if compile is graphc.compile:
            assert str(f.explain()).count("because:") == MOST_COUNTS
            assert "size by values (mask): 0 at" in f.explain()
            assert str(f.explain()).splitlines()[-1].startswith("  ran eagerly: ")
        return found

    for a, b in zip(run(lambda f: f), run(graphc.compile), strict=True):
        torch.testing.assert_close(b, a)


def test_what_goes_back_to_its_places_is_not_counted() -> None:
    def f(x: Any, y: Any) -> Any:
        x[y < 0] += 10
        x[:, y[0] > 0] *= 2
        x[y > 0.5] = y[y > 0.5].log1p() / y[y > 0.5]
        return x[x > 1].mean() + x[y < 0].sum()

    compiled = graphc.compile(f)
    for k in range(4):
        y = (torch.arange(12.0) + k).sin().reshape(3, 4)
        a, b = y.clone(), y.clone()
        torch.testing.assert_close(compiled(a, y), f(b, y))
        torch.testing.assert_close(a, b)
    assert str(compiled.explain()).count("because:") == 1
    assert "size by values" not in compiled.explain()


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "x[mask]": (lambda x: x[x > 0], r"x\[x > 0\]\n.*torch.where\(x > 0, x, 0\)"),
    "torch.masked_select": (lambda x: torch.masked_select(x, x > 0), r"torch.where\(x > 0, x, 0\)"),
    "torch.nonzero": (lambda x: torch.nonzero(x), r"torch.nonzero_static\(x, size=n\)"),
    "one_hot": (lambda x: torch.nn.functional.one_hot(x.long()), "num_classes"),
    "repeat_interleave": (lambda x: x.repeat_interleave(x.long(), 0), "output_size"),
    "unique": (lambda x: x.unique(), "torch.sort"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_graph_for_any_values_names_the_line_and_the_form_that_works(name: str) -> None:
    f, form = REFUSED[name]
    x = torch.arange(3.0)
    with pytest.raises(CaptureError, match=rf"test_counted.py:\d+\n[\s\S]*{form}"):
        graphc.trace(f, x)
    with pytest.raises(CaptureError, match=rf"test_counted.py:\d+\n[\s\S]*{form}"):
        graphc.compile(lambda xs: graphc.scan(lambda c, x: (c, f(x).sum() * 0 + len(f(x))), xs[0, 0], xs))(x[None])


def test_what_needs_no_count_is_part_of_any_graph() -> None:
    graph = graphc.trace(lambda x: x[x > 0].exp().sum(), torch.ones(3))
    run = graphc.lower(graphc.optimize(graph))
    assert run(torch.tensor([0.0, -1.0, 0.0])).item() == 0.0
    compiled = graphc.compile(lambda xs: graphc.scan(lambda c, x: (c + x[x > 0].sum(), c), torch.tensor(0.0), xs)[0])
    assert compiled(torch.tensor([[1.0, -1.0], [2.0, 3.0]])).item() == 6.0


def test_a_wrong_count_is_told_from_a_failing_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another count the program divides what is not selected: that is no error of the call."""
    monkeypatch.setattr(paths, "MOST_COUNTS", 4)  # no call is to run eagerly because there are enough programs
    compiled = graphc.compile(lambda i: 100 // i[i != 0])
    for values in ([1, 2, 0, 4], [0, 5, 0, 0], [0, 0, 0, 0], [1, 2, 3, 4]):
        i = torch.tensor(values)
        assert compiled(i).tolist() == (100 // i[i != 0]).tolist()
    assert "ran eagerly" not in compiled.explain()
    assert str(compiled.explain()).count("because:") == 4


def test_each_way_through_a_branch_is_traced_once():
    traced: list[bool] = []

    @graphc.compile
    def f(x):
        positive = bool(x.sum() > 0)
        traced.append(positive)
        return x * 2 if positive else x - 1

    for k in range(6):
        x = torch.full((2,), (-1.0) ** k)
        assert f(x).tolist() == [2.0 if k % 2 == 0 else -2.0] * 2
    assert traced == [True, False]


@pytest.mark.filterwarnings("ignore:routed is compiled for 2 of the values:UserWarning")
@pytest.mark.parametrize("read", ["counts", "elements"])
def test_routing_to_experts_is_compiled_a_few_times(read: str) -> None:
    """Each batch selects other numbers of rows: a program for each would cost its compilation at almost every call."""
    gate, experts = torch.nn.Linear(4, 3), torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def routed(x: Any) -> Any:
        chosen, y = gate(x).topk(2, dim=-1).indices, torch.zeros_like(x)
        counts = torch.bincount(chosen.flatten(), minlength=3).tolist() if read == "elements" else [1, 1, 1]
        for k, expert in enumerate(experts):
            if counts[k] > 0:
                rows = torch.where(chosen == k)[0]
                y.index_add_(0, rows, expert(x[rows]))
        return y.square().sum()

    compiled = graphc.compile(routed)
    for k in range(6):
        x = torch.randn(20, 4, generator=torch.Generator().manual_seed(k)).requires_grad_()
        torch.testing.assert_close(compiled(x), routed(x))
    assert len(compiled.explain().programs) == MOST_COUNTS
    assert "than the 2 compiled for" in compiled.explain()


@pytest.mark.on_numpy
def test_what_comes_again_and_again_is_compiled_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", itertools.count().__next__)  # each call takes as long as each stage
    compiled = graphc.compile(lambda x, mask: x[mask].exp())
    x, _ = some(12, 0)
    for _ in range(200):
        for count in range(5):
            compiled(x, some(12, count)[1])
    assert len(compiled.explain().programs) == 5
