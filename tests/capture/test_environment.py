"""What a function sees besides its arguments: every change is noticed and named, and nothing else is."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import math
import operator
import os
import random
import sys
import time
import types
import weakref

import numpy as np
import pytest

import eager as torch
from graphc.capture.state.environment import Environment
from graphc.capture.state.snapshots import MISSING
from tests.capture.changes import CHANGED, UNCHANGED, Config, Net, X, containers, layers, objects, unrelated, variables

MODULES = (variables, objects, containers, layers, unrelated, sys.modules[__name__])
SCALE = 2.0


def started(case):
    generator = case()
    given = next(generator)
    fn, args = given if isinstance(given, tuple) else (given, (X,))
    environment = Environment(fn, args)
    assert environment.holds(), environment.broken()
    assert environment.broken() == []
    return environment, generator, fn, args


@pytest.fixture(params=["code", pytest.param("calls", marks=pytest.mark.deep)])
def walk(request, monkeypatch):
    if request.param == "calls":  # as in large libraries
        monkeypatch.setattr("graphc.capture.state.environment.MOST", -1)


@pytest.fixture(autouse=True)
def same_globals():
    before = [(module, dict(vars(module))) for module in MODULES]
    yield
    for module, names in before:
        vars(module).clear()
        vars(module).update(names)


@pytest.mark.usefixtures("walk")
@pytest.mark.parametrize(("case", "messages"), CHANGED)
def test_a_change_is_noticed_and_named(case, messages):
    environment, generator, fn, args = started(case)
    with environment.watching():
        fn(*args)
    assert environment.holds(), (environment.broken(), "after the function has run")
    next(generator, None)
    assert not environment.holds()
    found = environment.broken()
    for message in messages:
        assert message in found, found


@pytest.mark.usefixtures("walk")
@pytest.mark.parametrize("case", UNCHANGED)
def test_what_does_not_matter_breaks_nothing(case):
    environment, generator, fn, args = started(case)
    with environment.watching():
        fn(*args)
    next(generator, None)
    assert environment.holds(), environment.broken()
    assert environment.broken() == []


@pytest.fixture(autouse=True)
def default_dtype_kept():
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(autouse=True)
def no_environment_variable(monkeypatch):
    monkeypatch.delenv("GRAPHC_TEST", raising=False)
    yield
    os.environ.pop("GRAPHC_TEST", None)


def test_enough_cases():
    assert len(CHANGED) >= 80
    assert len(UNCHANGED) >= 30


# --- names of tensors


def names_of(fn, *args):
    return Environment(fn, args).names


def test_tensors_are_named_as_the_function_knows_them():
    net, w, ws = Net(), torch.ones(3), [torch.ones(3)]
    names = names_of(lambda x: net(x) + w + ws[0], X)
    assert names[id(w)] == "w"
    assert names[id(ws[0])] == "ws.0"
    assert names[id(net.blocks[1].weight)] == "net.blocks.1.weight"
    assert names[id(net.norm.running_mean)] == "net.norm.running_mean"
    assert names_of(net, X)[id(net.w)] == "w"
    assert names_of(net.forward, X)[id(net.out[0].bias)] == "out.0.bias"


def test_a_tensor_in_an_object_is_named_by_its_path():
    state = types.SimpleNamespace(inner=types.SimpleNamespace(h=torch.ones(3)))
    assert names_of(lambda x: x + state.inner.h, X)[id(state.inner.h)] == "state.inner.h"


# --- what the function writes


def written(fn, *args):
    environment = Environment(fn, args)
    fn(*args)
    return environment, {change.path: change for change in environment.written()}


def test_what_the_function_writes_is_reported_and_can_be_written_again():
    cfg = types.SimpleNamespace(calls=0)

    def f(x):
        cfg.calls += 1
        cfg.last = "now"
        return x

    environment, changes = written(f, X)
    assert not environment.holds()  # it reads the counter
    assert set(changes) == {"cfg.calls", "cfg.last"}
    assert (changes["cfg.calls"].before, changes["cfg.calls"].after) == (0, 1)
    assert changes["cfg.last"].before is MISSING
    changes["cfg.calls"].write(0)
    changes["cfg.last"].write(MISSING)
    assert cfg == types.SimpleNamespace(calls=0)
    assert environment.holds()
    assert environment.written() == []


def test_written_globals_cells_entries_and_lists():
    count, stats, history = 0, {}, []

    def f(x):
        nonlocal count
        global SCALE
        count = 5
        SCALE = 7.0
        stats["n"] = 1
        history.append(2)
        return x

    environment, changes = written(f, X)
    assert {path: change.after for path, change in changes.items()} == {
        "count": 5, "SCALE": 7.0, "stats['n']": 1, "history": [2],
    }  # fmt: skip
    assert environment.holds()  # nothing that it reads
    assert changes["history"].before == []
    changes["history"].write([])
    changes["count"].write(0)
    assert (history, count) == ([], 0)


def test_a_function_that_writes_nothing():
    assert written(lambda x: x * SCALE, X)[1] == {}
    net = Net()
    assert written(net, X)[1] == {}


# --- what no guard can hold


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: x * random.random(), "random.random() at "),
        (lambda x: x * random.gauss(0, 1), "random.gauss() at "),
        (lambda x: x * float(np.random.rand()), "np.random.rand() at "),
        (lambda x: x * float(RNG.normal()), "RNG.normal() at "),
        (lambda x: x * PYTHON_RNG.random(), "PYTHON_RNG.random() at "),
        (lambda x: x * time.time(), "time.time() at "),
        (lambda x: x * now(), "now() at "),
        (lambda x: x * next(NUMBERS), "`NUMBERS` "),
    ],
)
def test_impure_calls_are_listed(fn, message):
    (found,) = Environment(fn, (X,)).impure
    assert found.startswith(message)
    assert "test_environment.py:" in found
    assert "when the function is traced" in found


RNG = np.random.default_rng(0)
PYTHON_RNG = random.Random(0)
NUMBERS = itertools.count()
now = time.perf_counter


def test_pure_calls_are_not_listed():
    assert Environment(lambda x: x * math.sin(1.0) * np.prod([1]) * torch.rand(3), (X,)).impure == []
    assert Environment(Net(), (X,)).impure == []


# --- the environment itself


def test_it_can_be_collected():
    net = Net()
    ref = weakref.ref(net)
    environment = Environment(net, (X,))
    environment.holds()
    net.environment = environment
    del net, environment
    gc.collect()
    assert ref() is None


def test_large_and_deep_state_is_followed_without_recursion():
    first = last = types.SimpleNamespace(scale=1.0, next=None)
    for _ in range(5000):
        last.next = types.SimpleNamespace(scale=1.0, next=None)
        last = last.next

    def f(x):
        node = first
        while node is not None:
            x = x * node.scale
            node = node.next
        return x

    environment = Environment(f, (X,))
    assert environment.holds()
    last.scale = 2.0
    assert not environment.holds()


def test_user_code_is_not_run():
    class Careful:
        def __init__(self):
            self.scale = 1.0

        def __eq__(self, other):
            raise AssertionError("compared")

        __hash__ = object.__hash__

        @property
        def value(self):
            raise AssertionError("evaluated")

        def __getattr__(self, name):
            raise AssertionError(name)

        def __len__(self):
            raise AssertionError("measured")

    careful, boxed = Careful(), [Careful()]
    environment = Environment(lambda x: x * careful.value * boxed[0].scale, (X,))
    assert environment.holds()
    boxed[0] = Careful()
    assert not environment.holds()
    assert environment.broken() == ["`boxed[0]` is another Careful"]


def test_unusual_callables():
    for fn in (len, print, torch.add, functools.partial(torch.add, X), operator.itemgetter(0), Config, np.add):
        with contextlib.suppress(TypeError):
            assert Environment(fn, (X,)).holds()
