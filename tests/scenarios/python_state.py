"""Python state that a function reads and changes: counters, hidden states, caches, configuration."""

from __future__ import annotations

import enum
import types
from typing import Any

import numpy as np

import eager as torch
from eager import nn
from tests.scenarios.harness import program

X = torch.tensor([1.0, 2.0, 3.0])
SCALE = 1.0
COUNT = 0
CONFIG = types.SimpleNamespace(scale=1.0, layers=types.SimpleNamespace(width=3, act="tanh"), flags={"debug": False})


@program
def counters_everywhere(compile):
    global COUNT
    COUNT = 0
    n = 0
    box = {"n": 0, "list": [0, 0]}

    class Owner:
        calls = 0

    owner = Owner()

    @compile
    def f(x):
        global COUNT
        nonlocal n
        COUNT += 1
        n += 2
        box["n"] += 3
        box["list"][1] -= 1
        owner.calls += 1
        Owner.calls += 10
        return x * n + COUNT + box["n"] + box["list"][1] + owner.calls

    found = [f(X) for _ in range(6)]
    n = 100
    return [*found, f(X), n, COUNT, box, owner.calls, Owner.calls]


@program
def lists_that_grow(compile):
    losses, numbers = [], []

    @compile
    def step(x):
        loss = (x * x).sum()
        losses.append(loss)
        numbers.append(loss.item())
        return loss - (losses[-2] if len(losses) > 1 else 0)

    return [step(X * k) for k in (1.0, 2.0, 3.0, 4.0, 5.0)], losses, numbers


@program
def exponential_moving_averages(compile):
    class Average:
        def __init__(self):
            self.value = None
            self.updates = 0

        @compile
        def update(self, x):
            self.updates += 1
            decay = min(0.9, (1 + self.updates) / (10 + self.updates))
            self.value = x if self.value is None else decay * self.value + (1 - decay) * x
            return self.value.sum()

    average = Average()
    return [average.update(X + i) for i in range(8)], average.value, average.updates


@program
def hidden_states_in_a_dict(compile):
    hidden = {"h": torch.zeros(3), "c": torch.zeros(3)}
    w = torch.eye(3) * 0.5

    @compile
    def step(x):
        hidden["h"] = torch.tanh(hidden["h"] @ w + x)
        hidden["c"] = hidden["c"] * 0.9 + hidden["h"]
        return hidden["c"].sum()

    found = [step(X * i) for i in range(5)]
    hidden["h"], hidden["c"] = torch.ones(3), torch.ones(3)
    return [*found, step(X), dict(hidden)]


@program
def a_key_value_cache_that_grows(compile):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.keys = self.values = None

        def forward(self, x):
            k, v = self.k(x), self.v(x)
            self.keys = k if self.keys is None else torch.cat([self.keys, k])
            self.values = v if self.values is None else torch.cat([self.values, v])
            return torch.softmax(self.q(x) @ self.keys.t() / 2, -1) @ self.values

    layer = Attention()
    f = compile(layer)
    with torch.no_grad():
        found = [f(torch.full((1, 4), float(i))) for i in range(5)]
        layer.keys = layer.values = None
        found += [f(torch.full((1, 4), float(i))) for i in range(5)]
    return found, layer.keys.shape


@program
def a_cache_of_tensors_by_key(compile):
    cache: dict[Any, Any] = {}

    @compile
    def mask(n):
        if n not in cache:
            cache[n] = torch.tril(torch.ones(n, n))
        return cache[n]

    a, b = mask(3), mask(2)
    a[0, 0] = 7
    return mask(3), mask(2), mask(3) is cache[3], mask(4), sorted(cache), b


@program
def attributes_of_attributes(compile):
    CONFIG.scale, CONFIG.layers.width, CONFIG.layers.act, CONFIG.flags["debug"] = 1.0, 3, "tanh", False

    @compile
    def f(x):
        y = getattr(torch, CONFIG.layers.act)(x[: CONFIG.layers.width]) * CONFIG.scale
        return -y if CONFIG.flags["debug"] else y

    found = [f(X)]
    CONFIG.layers.act = "exp"
    found.append(f(X))
    CONFIG.layers.width = 2
    found.append(f(X))
    CONFIG.flags["debug"] = True
    found.append(f(X))
    CONFIG.flags = {"debug": False}
    CONFIG.layers = types.SimpleNamespace(width=1, act="sin")
    return [*found, f(X)]


@program
def globals_rebound_between_calls(compile):
    global SCALE
    SCALE = 1.0
    f = compile(lambda x: x * SCALE)
    found = [f(X)]
    for value in (2.0, 3.0, 4, torch.tensor(2.0), torch.tensor([1.0, 0.0, 1.0]), np.float64(3.0), True):
        SCALE = value
        found.append(f(X))
    SCALE = 1.0
    return found


@program
def functions_rebound_between_calls(compile):
    class Space:
        @staticmethod
        def act(x):
            return x * 2

    f = compile(lambda x: Space.act(x) + helper(x))

    def identity(x):
        return x

    helper = identity
    found = [f(X)]
    Space.act = staticmethod(torch.tanh)
    found.append(f(X))
    helper = torch.neg
    return [*found, f(X)]


class Phase(enum.Enum):
    WARM = 0
    RUN = 1
    STOP = 2


@program
def a_state_machine_of_enums(compile):
    class Machine:
        def __init__(self):
            self.phase, self.steps = Phase.WARM, 0

        @compile
        def step(self, x):
            self.steps += 1
            if self.phase is Phase.WARM:
                if self.steps >= 2:
                    self.phase = Phase.RUN
                return x * 0.1
            if self.phase is Phase.RUN and x.sum() > 10:
                self.phase = Phase.STOP
            return x if self.phase is Phase.RUN else x * 0

    m = Machine()
    return [(m.step(X * k), m.phase, m.steps) for k in (1.0, 1.0, 1.0, 2.0, 1.0)]


@program
def attributes_asked_for_as_a_whole(compile):
    o = types.SimpleNamespace(a=1.0)

    @compile
    def f(x):
        return x * len(vars(o)) + sum(o.__dict__.values())

    found = [f(X)]
    for name, value in (("b", 2.0), ("b", 3.0), ("b", 4.0), ("c", torch.ones(3))):
        setattr(o, name, value)
        found.append(f(X))
    del o.a
    found.append(f(X))

    class Owner:
        pass

    owner = Owner()

    @compile
    def g(x):
        for name in "uv":
            setattr(owner, f"{name}1", x * 2)
        return sum(vars(owner).values())

    found += [(g(X * k), dict(vars(owner))) for k in range(3)]
    return found


@program
def tensors_of_which_only_the_kind_is_asked_for(compile):
    w = torch.ones(2)
    held = types.SimpleNamespace(a=torch.ones(2, 3))
    f = compile(lambda: (w.requires_grad, tuple(w.shape), w.dtype))
    g = compile(lambda x: x * held.a.numel() if held.a.requires_grad else x + held.a.ndim)
    found = [f(), g(X)]
    w.requires_grad_()
    found.append(f())
    w.requires_grad_(False)
    found.append(f())
    w.data = torch.ones(3).double()
    found += [f(), f()]
    for a in (torch.ones(4), torch.ones(5, requires_grad=True), torch.ones(6, requires_grad=True)):
        held.a = a
        found += [g(X), g(X)]
    held.a.data = torch.ones(7, 1)
    return [*found, g(X), g(X)]
