"""State that the calls change: numbers, flags and tensors in every use."""

from __future__ import annotations

import dataclasses
import math
import random
import types
from typing import Any

import numpy as np

import eager as torch
from eager import nn
from tests.scenarios.harness import attempt, program

X = torch.tensor([1.0, 2.0, 3.0])


@program
def moving_numbers_in_every_use(compile):
    state = types.SimpleNamespace(i=0, rate=0.5)

    @compile
    def f(x):
        i, rate = state.i, state.rate
        state.i += 1
        state.rate = rate * 0.5
        numbers = i / 2, i // 2, i**2, -i, i == 2, f"{i}:{rate}", [i, {"rate": rate}]
        return x[i % 3], x * rate, torch.full((2,), rate), numbers

    return [f(X) for _ in range(6)], state.i, state.rate


@program
def moving_numbers_as_shape_key_and_flag(compile):
    state = types.SimpleNamespace(n=0, seen={})

    @compile
    def f(x):
        state.n += 1
        if state.n % 2:
            x = -x
        table = {1: "one", 2: "two", 3: "three"}
        name = table.get(state.n, "many")
        return x, torch.zeros(state.n), name, "x" * state.n, list(range(state.n)), x.repeat(state.n)

    return [f(X) for _ in range(5)]


@program
def schedules_of_python_floats(compile):
    sched = types.SimpleNamespace(t=0, base=1.0)

    def rate():
        if sched.t < 4:
            return sched.base * sched.t / 4
        return sched.base * 0.5 * (1 + math.cos(math.pi * min(1.0, (sched.t - 4) / 6)))

    @compile
    def step(x):
        sched.t += 1
        return x * rate()

    return [step(X) for _ in range(12)]


@program
def numpy_numbers_as_state(compile):
    state = types.SimpleNamespace(rate=np.float64(1.0), n=np.int64(1), table=np.arange(3.0))

    @compile
    def f(x):
        state.n += 1
        state.rate = state.rate * np.float64(0.5)
        return x * float(state.rate) + int(state.n) + torch.from_numpy(state.table).float()

    found = [f(X) for _ in range(4)]
    state.table[0] = 100
    return [*found, f(X), type(state.rate).__name__, type(state.n).__name__, state.n]


@program
def bool_flags_that_flip(compile):
    state = types.SimpleNamespace(flip=False)

    @compile
    def f(x):
        state.flip = not state.flip
        return x if state.flip else -x

    return [f(X) for _ in range(5)], state.flip


@program
def module_counters_and_flags(compile):
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)
            self.steps = 0
            self.last = None
            self.history = []

        def forward(self, x):
            self.steps += 1
            y = self.lin(x)
            if self.training and self.steps > 2:
                y = y + torch.randn(3) * 0.1
            self.last = y.detach()
            self.history.append(y.detach().mean().item())
            return y

    net = Noisy()
    f = compile(net)
    found = [f(X) for _ in range(4)]
    net.eval()
    return found, f(X), net.steps, net.last, net.history


@program
def random_of_the_library_with_a_seed(compile):
    def f(x):
        heads = torch.bernoulli(torch.full((3,), 0.5))
        return x + torch.rand(3) + torch.randn(3), torch.randperm(4), torch.randint(0, 10, (3,)), heads

    c = compile(f)
    found = [c(X), c(X)]
    torch.manual_seed(7)
    found += [c(X), torch.rand(2), c(X)]
    g = torch.Generator().manual_seed(3)
    h = compile(lambda x: x + torch.rand(3, generator=g))
    return [*found, h(X), h(X), torch.rand(1)]


@program
def sets_and_deques_as_state(compile):
    from collections import deque

    seen, recent = set(), deque(maxlen=2)

    @compile
    def f(x, name):
        new = name not in seen
        seen.add(name)
        recent.append(x.sum())
        return x * new + len(recent) + sum(recent)

    return [f(X * i, n) for i, n in enumerate("abacb")], sorted(seen), list(recent)


@program
def deleted_and_added_attributes(compile):
    class Box:
        pass

    box = Box()

    @compile
    def f(x):
        return x * box.k if hasattr(box, "k") else x

    found = [f(X)]
    box.k = 2.0
    found.append(f(X))
    del box.k
    found.append(f(X))
    Box.k = 3.0
    found.append(f(X))
    del Box.k
    return [*found, f(X)]


@program
def a_function_that_deletes_and_pops(compile):
    pending = [torch.full((3,), float(i)) for i in range(4)]
    table = {"a": 1.0, "b": 2.0}

    @compile
    def f(x):
        x = x + pending.pop()
        if table:
            x = x * table.popitem()[1]
        return x

    return [attempt(f, X) for _ in range(5)], pending, table


@program
def dataclass_state_that_is_replaced(compile):
    @dataclasses.dataclass(frozen=True)
    class State:
        h: Any
        step: int = 0

    class Model:
        def __init__(self):
            self.state = State(torch.zeros(3))

        @compile
        def step(self, x):
            self.state = dataclasses.replace(self.state, h=self.state.h * 0.5 + x, step=self.state.step + 1)
            return self.state.h.sum() / self.state.step

    model = Model()
    return [model.step(X) for _ in range(5)], model.state


@program
def structures_with_numbers_are_copied(compile):
    import copy

    @dataclasses.dataclass
    class Options:
        rate: float
        sizes: list

    options = Options(1.0, [1, 2])
    log = []

    @compile
    def f(x):
        taken = dataclasses.asdict(options)
        other = copy.deepcopy(options)
        log.append(copy.copy(other))
        return x * taken["rate"] + other.rate + sum(taken["sizes"])

    found = []
    for rate in (1.0, 2.0, 3.0, 4.0):
        options.rate = rate
        found.append(f(X))
    return found, [o.rate for o in log]


@program
def dropout_rates_that_move(compile):
    drop = nn.Dropout(0.5)
    options = types.SimpleNamespace(p=0.1)
    f = compile(lambda x: (drop(x), nn.functional.dropout(x, options.p)))
    found = []
    for p in (0.5, 0.25, 0.75, 0.5):
        drop.p = options.p = p
        found.append(f(torch.ones(20)))
    return found


@program
def tensors_swapped_between_places(compile):
    state = types.SimpleNamespace(a=torch.zeros(3), b=torch.ones(3))

    @compile
    def f(x):
        state.a, state.b = state.b, state.a + x
        return state.a * 2 + state.b

    return [f(X) for _ in range(5)], state.a, state.b


@program
def state_written_in_place_and_rebound(compile):
    state = types.SimpleNamespace(buf=torch.zeros(3), n=0)
    alias = state.buf

    @compile
    def f(x):
        state.n += 1
        state.buf.add_(x)
        if state.n % 3 == 0:
            state.buf = state.buf * 0
        return state.buf.sum()

    return [f(X) for _ in range(7)], alias, state.buf, alias is state.buf


@program
def python_random_that_the_caller_draws(compile):
    random.seed(0)
    f = compile(lambda x, p: x if p < 0.5 else -x)
    return [f(X, random.random()) for _ in range(5)]


@program
def a_ring_buffer_with_a_moving_position(compile):
    class Ring:
        def __init__(self):
            self.data, self.at, self.full = torch.zeros(3, 2), 0, False

        @compile
        def push(self, x):
            self.data[self.at] = x
            self.at = (self.at + 1) % 3
            self.full = self.full or self.at == 0
            return self.data.mean(0) if self.full else self.data[: self.at].mean(0)

    ring = Ring()
    return [ring.push(torch.tensor([i, -i]).float()) for i in range(8)], ring.data, ring.at, ring.full
