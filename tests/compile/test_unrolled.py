"""A Python loop on the values of tensors ends in bounded work, compiled or refused; what is no such loop is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import eager as torch
import graphc
from graphc import errors
from graphc.capture import unrolling
from graphc.compiling import compiled as compiling
from graphc.compiling import paths, specializations
from graphc.compiling.options import Options
from tests.depth import one_in
from tests.work import lines_run

COUNTS = 300


class Form(NamedTuple):
    """A function whose number of rounds the values decide, its arguments for `k` rounds, and the lines that do."""

    function: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    lines: tuple[int, ...] = (1,)  # after the first of the function


def until_norm(x: Any, limit: Any) -> Any:
    while x.norm() < limit:
        x = x * 1.01
    return x


def until_break(x: Any, limit: Any) -> Any:
    while True:
        if x.abs().max() > limit:
            break
        x = (x * 1.01).sin() + x * 0.01
        x = x + 0.01
    return x


def by_number(n: Any, x: Any) -> Any:
    for i in range(int(n.item())):
        x = x * 0.5 + i
    return x


def by_sum(x: Any) -> Any:
    n = int(x.sum())
    for _ in range(n):
        x = x * 0.99
    return x


def counting_down(n: Any, x: Any) -> Any:
    while n > 0:
        n = n - 1
        x = x.tanh()
    return x


def changing_module(n: Any, x: Any) -> Any:
    state = {"x": x, "rounds": 0}
    while state["rounds"] < n:
        state["x"] = state["x"] + x
        state["rounds"] += 1
    return state["x"]


def nested(n: Any, x: Any) -> Any:
    while n > 0:
        m = n.clamp(max=2)
        while m > 0:
            m = m - 1
            x = x * 0.9
        n = n - 1
    return x


def ones() -> Any:
    return torch.ones(3)


FORMS = {
    "a norm": Form(until_norm, lambda k: (ones(), torch.tensor(1.74 * 1.01**k))),
    "a norm below a number": Form(until_norm, lambda k: (ones(), 1.74 * 1.01**k)),
    "a break": Form(until_break, lambda k: (ones(), torch.tensor(1 + 0.01 * k)), (2,)),
    "a range": Form(by_number, lambda k: (torch.tensor(k), ones())),
    "a range of a sum": Form(by_sum, lambda k: (torch.tensor([k / 2, k / 2]),)),
    "a count": Form(counting_down, lambda k: (torch.tensor(k), ones())),
    "a number and a count": Form(changing_module, lambda k: (torch.tensor(k), ones()), (2,)),
    "loops in a loop": Form(nested, lambda k: (torch.tensor(k), ones()), (1, 3)),
}


def refused(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except errors.CaptureError as error:
        return str(error)
    return None


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:by_sum is traced and compiled again:UserWarning")  # which is so
@pytest.mark.parametrize("name", FORMS)
def test_any_number_of_rounds_ends_in_bounded_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolling, "ROUNDS", 32)  # as the others, but sooner
    monkeypatch.setattr(unrolling, "LONG", 32)
    monkeypatch.setattr(paths, "MOST_WORK", 512)
    form = FORMS[name]
    made: list[int] = []
    real = compiling.Runner
    monkeypatch.setattr(
        compiling, "Runner", lambda program, *rest: made.append(len(program.graph)) or real(program, *rest)
    )
    compiled = graphc.compile(form.function)
    first = form.function.__code__.co_firstlineno
    told = [f"{__name__.rpartition('.')[2]}.py:{first + line}" for line in form.lines]
    refusals = 0
    for k in np.random.default_rng(0).permutation(COUNTS):
        arguments = form.arguments(int(k))
        try:
            found = compiled(*arguments)
        except errors.CaptureError as error:
            refusals += 1
            assert any(line in str(error) for line in told), str(error)
            assert "graphc.while_loop" in str(error)
        else:
            np.testing.assert_allclose(found.numpy(), form.function(*arguments).numpy(), rtol=1e-3)
    assert refusals and len(made) <= paths.MOST_PATHS
    if made:
        assert sum(made) - len(made) * min(made) <= paths.MOST_WORK + 2 * max(made)
        assert max(made) <= unrolling.UNROLLED + unrolling.STRIDE
    assert "refused" in compiled.explain()


def never(x: Any) -> Any:
    while True:
        x = x * 2


def slowly(x: Any) -> Any:
    while x.norm() < 1000:
        x = x * 1.0001
    return x


def stuck(x: Any) -> Any:
    y = x
    while x.sum() > 0:
        y = y + 1
    return y


def far(n: Any, x: Any) -> Any:
    for i in range(int(n)):
        x = x * 0.5 + i
    return x


def counting(n: Any, x: Any) -> Any:
    i = 0
    while i < n:
        x = x * 0.5 + i
        i += 1
    return x


def wide(x: Any) -> Any:
    parts = [x]
    while len(parts) * x.sum() < 1e6:
        parts = parts + [p + 1 for p in parts]
    return sum(parts)


ENDLESS = {
    "without a condition": (never, lambda: (ones(),)),
    "70,000 rounds": (slowly, lambda: (ones(),)),
    "a condition that stays": (stuck, lambda: (ones(),)),
    "a large number": (far, lambda: (torch.tensor(10**6), ones())),
    "a counter of Python's": (counting, lambda: (torch.tensor(10**6), ones())),
    "rounds that grow": (wide, lambda: (ones(),)),
}


@pytest.mark.parametrize("name", one_in(2, ENDLESS))
def test_one_trace_is_bounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what eager itself would run for ever."""
    monkeypatch.setattr(unrolling, "LARGEST", 16 * unrolling.STRIDE)
    function, arguments = ENDLESS[name]
    kept: list[int] = []

    def noting(*given: Any) -> Any:
        kept.append(1)
        return function(*given)

    compiled = graphc.compile(noting)
    for _ in range(2):
        with pytest.raises(errors.UnrolledError) as caught:
            compiled(*arguments())
        assert f"{__name__.rpartition('.')[2]}.py:" in str(caught.value) and "graphc.while_loop" in str(caught.value)
        assert kept == []  # as if it had not been called
    assert "refused, 2 calls" in compiled.explain()
    assert refused(lambda: graphc.trace(never, ones())) is not None


def test_a_refused_call_costs_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound, no call traces the loop to refuse it."""
    monkeypatch.setattr(paths, "MOST_WORK", 100)
    compiled = graphc.compile(by_number)
    compiled(torch.tensor(3), ones())
    compiled(torch.tensor(100), ones())
    trace = lines_run(lambda: graphc.trace(lambda x: by_number(torch.tensor(20), x), ones()))
    assert lines_run(lambda: refused(lambda: compiled(torch.tensor(200), ones()))) < trace / 2
    assert refused(lambda: compiled(torch.tensor(201), ones())) is not None
    np.testing.assert_allclose(compiled(torch.tensor(3), ones()).numpy(), by_number(torch.tensor(3), ones()).numpy())


def checked(*tensors: Any) -> Any:
    for t in tensors:
        if not torch.isfinite(t * 2).all():
            raise ValueError("not finite")
    return sum(t.sum() for t in tensors)


def deep(x: Any) -> Any:
    if x.sum() > 0:
        for _ in range(1500):
            x = x * 1.001
    return x


def layered(x: Any) -> Any:
    for k in range(100):
        x = (x * 1.01 + k).sin()
        if x.isnan().any():
            raise ValueError("nan")
    return x


def counted(n: Any, x: Any) -> Any:
    n = int(n)
    for _ in range(300):
        x = x * 1.001
    return x[:n] * n


LEGITIMATE = {
    "a check of each of many": (checked, lambda: [torch.full((2,), float(k)) for k in range(400)]),
    "a long program behind a branch": (deep, lambda: [ones()]),
    "a check in each layer": (layered, lambda: [ones()]),
    "a large number that is no count of rounds": (counted, lambda: [torch.tensor(2000), ones()]),
}


@pytest.mark.parametrize("name", LEGITIMATE)
def test_what_is_no_loop_on_values_is_not_refused(name: str) -> None:
    function, arguments = LEGITIMATE[name]
    graph = compiling.Compiled(function, Options(dynamic=False))
    with pytest.MonkeyPatch.context() as patch:  # what XLA makes of it is of no interest
        patch.setattr(compiling, "Runner", Halted)
        with pytest.raises(Reached):
            graph(*arguments())


class Reached(Exception):
    """The trace has ended."""


def Halted(*_: Any) -> Any:
    raise Reached


def test_a_round_decides_on_what_the_one_before_has_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolling, "ROUNDS", 8)
    monkeypatch.setattr(compiling, "Runner", Halted)
    message = refused(lambda: graphc.compile(counting_down)(torch.tensor(20), ones()))
    assert "asks the values of tensors whether to go on" in (message or "")
    with pytest.raises(Reached):
        graphc.compile(checked)(*[torch.full((2,), float(k)) for k in range(20)])


def test_the_form_in_the_graph_takes_any_number_of_rounds() -> None:
    def function(x: Any, limit: Any) -> Any:
        return graphc.while_loop(lambda x: x.norm() < limit, lambda x: x * 1.01, x)

    compiled = graphc.compile(function)
    for k in range(0, COUNTS, 7):
        arguments = FORMS["a norm"].arguments(k)
        np.testing.assert_allclose(compiled(*arguments).numpy(), until_norm(*arguments).numpy(), rtol=1e-3)
    assert str(compiled.explain()).startswith("function: 1 program")


def test_programs_that_had_to_go_count_as_work(monkeypatch: pytest.MonkeyPatch):
    """Else a loop of ever other lengths would be compiled for ever, of which few programs are kept at a time."""
    monkeypatch.setattr(specializations, "LARGEST", 3)
    monkeypatch.setattr(paths, "MOST_WORK", 100)
    function, arguments, _ = FORMS["a count"]
    fast = graphc.compile(function)
    outcomes = [refused(lambda k=k: fast(*arguments(k))) for k in range(1, 12)]
    assert outcomes[:3] == [None] * 3 and "operations" in (outcomes[-1] or ""), outcomes
