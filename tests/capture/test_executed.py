"""Where too much code can be reached, it is followed as it is called."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import eager as torch
import graphc
from graphc.capture.state.environment import Environment

X = torch.ones(2)
LIBRARY = 30


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphc.capture.state.environment.MOST", LIBRARY // 2)


class Library:
    """Many functions, each with state of its own, of which a program calls one."""

    def __init__(self) -> None:
        self.chosen = 3
        self.states = [SimpleNamespace(scale=float(k), calls=0, last=None) for k in range(LIBRARY)]
        self.functions = [self._function(k) for k in range(LIBRARY)]

    def _function(self, k: int) -> Any:
        def scaled(x: Any, state: Any = self.states[k]) -> Any:
            state.last = x * state.scale
            remember(state)
            return state.last

        return scaled

    def __call__(self, x: Any) -> Any:
        return self.functions[self.chosen](x) + 1


def remember(state: Any) -> None:
    state.calls += 1


def test_what_is_called_is_guarded_and_nothing_else():
    library = Library()
    compiled = graphc.compile(library)
    assert compiled(X).tolist() == [4, 4]
    for state in library.states[:3]:
        state.scale = 100.0
    assert compiled(X).tolist() == [4, 4]
    assert len(compiled._log) <= 2  # the number of calls, at most
    library.states[3].scale = 5.0
    assert compiled(X).tolist() == [6, 6]
    library.chosen = 1
    assert compiled(X).tolist() == [101, 101]


def test_effects_are_those_of_eager_mode():
    eager, compiled = Library(), Library()
    run = graphc.compile(compiled)
    for k in (1, 2, 3, 4, -1):
        eager.chosen = compiled.chosen = 3 if k > 0 else 7
        assert run(X * k).tolist() == eager(X * k).tolist()
        for ours, theirs in zip(compiled.states, eager.states, strict=True):
            assert ours.calls == theirs.calls
            assert (ours.last is None) == (theirs.last is None)
            if theirs.last is not None:
                assert ours.last.tolist() == theirs.last.tolist()


def test_what_fails_is_undone():
    library = Library()

    def failing(x: Any) -> Any:
        library(x)
        return x @ torch.ones(3)

    with pytest.raises(RuntimeError, match="mat"):
        graphc.trace(failing, X)
    before = library.states[3].calls
    with pytest.raises(RuntimeError):
        graphc.compile(failing)(X)
    assert library.states[3].calls == before + 1  # as in eager mode: what it has changed before


def test_a_profiler_goes_on_and_sees_the_calls():
    library = Library()
    environment = Environment(library, (X,))
    with environment.watching():
        assert sys.getprofile() is not None
        library(X)
    assert sys.getprofile() is None
    watched = len(environment._places)
    calls: list[str] = []
    sys.setprofile(lambda frame, event, argument: calls.append(event))  # as cProfile did before Python 3.12
    try:
        found = Environment(library, (X,))
    finally:
        sys.setprofile(None)
    assert calls
    assert len(found._places) > watched  # it is followed as a whole: Python tells of calls to one listener alone


def test_what_calls_change_becomes_an_input():
    library, weight = Library(), torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    config = SimpleNamespace(step=0, kept=torch.zeros(2), rates={"one": 1.0})

    @graphc.compile
    def step(x: Any) -> Any:
        config.step += 1
        config.rates["one"] *= 0.5
        loss = (library(x * weight) * config.rates["one"] + config.kept).sum()
        config.kept = x + config.step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(6):
        step(X)
        schedule.step()
    assert len(step._log) <= 3
    assert config.step == 6 and config.rates["one"] == 0.5**6 and config.kept.tolist() == [7, 7]
