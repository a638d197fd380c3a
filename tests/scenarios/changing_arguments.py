"""Arguments and containers whose numbers, tensors and arrays change from call to call."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import types
from typing import Any

import numpy as np

import eager as torch
import graphc
from eager import nn
from tests.scenarios.harness import attempt, program, refused

X = torch.tensor([1.0, 2.0, 3.0])


@program
def numbers_that_vary_in_every_use(compile):
    @compile
    def f(x, a, n):
        plain = (
            a + n, a / 2, n // 2, n % 3, a**2, -a, abs(a), a < 0.5, n == 3, round(a, 2), int(a * 10), math.sqrt(a),
            max(a, n), [1, 2, 3, 4, 5, 6][n], "x" * n, f"{a:.2f}", n in (1, 2), {n: a}, range(n), a.is_integer(),
            n << 1, 2**n, n and a, not n, hash(a), isinstance(n, int), isinstance(a, float),
        )  # fmt: skip
        tensors = (
            x * a, x + n, x**a, a / x, torch.full((n,), a), x[n % 3], x[:n], x.clamp(min=a), torch.where(x > a, x, a),
            x.add(x, alpha=a), torch.arange(n), torch.tensor([a, n]), x.roll(n), torch.lerp(x, -x, a),
        )  # fmt: skip
        return plain, tensors

    return [f(X, 0.1 * i, i) for i in (1, 2, 3, 4)]


@program
def numbers_in_containers_that_vary(compile):
    @dataclasses.dataclass
    class Options:
        rate: float
        sizes: tuple[int, ...] = (1, 2)
        seen: dict[str, Any] = dataclasses.field(default_factory=dict)

    @compile
    def f(x, options, cfg):
        cfg["count"] = cfg.get("count", 0) + 1
        cfg["opt"]["lr"] *= 0.5
        options.seen["rate"] = options.rate
        y = x * options.rate + sum(options.sizes) + cfg["opt"]["lr"]
        return (y if options.rate < 0.25 else -y), cfg

    cfg, options, found = {"opt": {"lr": 1.0}}, Options(0.0), []
    for i in range(5):
        options.rate = i / 10
        y, returned = f(X, options, cfg)
        found.append((y, returned is cfg, cfg["count"], cfg["opt"]["lr"], dict(options.seen)))
    return found


@program
def numbers_that_vary_and_python_takes(compile):
    @compile
    def f(x, n, rate):
        if type(n) is not int:
            raise TypeError("int wanted")
        if n == 3:
            raise ValueError(f"{n} is not allowed")
        return x * n, json.dumps({"n": n, "rate": rate})

    return [attempt(f, X, n, n / 2) for n in (1, 2, 3, 1.5, 2.5, 4, 3, 5)]


@program
def numbers_that_vary_with_gradients_and_control_flow(compile):
    @compile
    def f(w, decay, n):
        h, ys = graphc.scan(lambda h, x: (h * decay + x, h * n), torch.tensor(0.0), w)
        z = graphc.cond(w.sum() > n, lambda v: v * decay, lambda v: v - n, w)
        return h + ys.sum() + z.sum()

    found = []
    for i in range(5):
        w = X.clone().requires_grad_()
        loss = f(w, 0.1 * i, 2 * i)
        loss.backward()
        found.append((loss.detach(), w.grad))
    return found


@program
def numbers_at_the_edges_that_vary(compile):
    f = compile(lambda x, a: (x * a, a))
    g = compile(lambda x, n: (x + n, n))
    return [f(X, a) for a in (0.0, -0.0, math.inf, math.nan, 1e30)], [
        g(X, n) for n in (1, 2, 2**53 + 1, 2**61, 2**63, True, 3)
    ]


@program
def ndarrays_as_arguments(compile):
    @compile
    def f(x, a):
        a[0] += 1
        return x * torch.as_tensor(a), a.sum(), a

    a, found = np.ones(3, np.float32), []
    for i in range(3):
        a[1] = i
        y, total, returned = f(X, a)
        found.append((y, total, returned is a, a.copy()))
    g = compile(lambda x, big: x + big.sum())
    big = np.zeros(40_000, np.float32)
    for i in range(3):
        big[i] = 1
        found.append(g(X, big))
    return found, f(X, a.copy()), a


@program
def ndarrays_that_are_made_anew_at_each_call(compile):
    table = np.arange(3.0)
    f = compile(lambda x: (x * 2, np.arange(3), table, [np.ones(2)]))
    first = f(X)
    first[1][0] = first[3][0][0] = 100
    second = f(X)
    return first, second, second[2] is table


@refused("shares memory with an ndarray")
def ndarrays_written_through_a_tensor(compile):
    array = np.zeros(3, np.float32)

    @compile
    def f(x):
        torch.from_numpy(array).add_(x)
        return array.sum()

    return f(X)


@program
def hidden_states_in_tuples(compile):
    cell = nn.LSTMCell(3, 3)

    class Recurrent:
        def __init__(self):
            self.state = None
            self.log = []

        @compile
        def step(self, x):
            self.state = cell(x, self.state)
            self.log.append(self.state[0].detach())
            return self.state[0].detach()

    net = Recurrent()
    found = [net.step(torch.ones(2, 3) * i) for i in range(5)]
    net.state = None
    return found, net.step(torch.ones(2, 3)), net.step(torch.ones(2, 3)), net.log


@program
def states_in_nests_of_containers(compile):
    s = types.SimpleNamespace(m={"layers": [(torch.zeros(3), 0), (torch.ones(3), 1)], "t": 0.0, "name": "a"})

    @compile
    def f(x):
        layers = s.m["layers"]
        for i in range(len(layers)):
            h, n = layers[i]
            layers[i] = h * 0.5 + x, n + 1
        s.m["t"] += 0.5
        return layers[0][0] * s.m["t"] + layers[1][0] * layers[1][1], layers

    found = []
    for i in range(6):
        y, layers = f(X + i)
        found.append((y, layers is s.m["layers"]))
        if i == 3:
            s.m = {"layers": [(torch.ones(3) * i, 9), (torch.ones(3), 1)], "t": 1.0, "name": "b"}
        if i == 4:
            s.m["name"] = "c"
    return found, s.m


@program
def lists_that_are_written_and_replaced(compile):
    s = types.SimpleNamespace(h=[torch.zeros(3), torch.zeros(3)])
    history = [s.h]

    @compile
    def f(x):
        old = s.h
        s.h[0] = s.h[0] + x
        s.h = [s.h[1], s.h[0] * 2]
        return old, s.h

    found = []
    for i in range(5):
        a, b = f(X + i)
        found.append((a is history[-1], b is s.h))
        history.append(s.h)
    return found, history


@program
def tensors_in_two_moving_places(compile):
    t = torch.zeros(3)
    s = types.SimpleNamespace(a=[t, torch.ones(3)], b=t)

    @compile
    def f(x):
        s.a[0] = s.a[0] + x
        s.b = s.b + 1
        s.a.reverse()
        return s.a[0] + s.b

    found = [f(X) for _ in range(4)]
    s.b = s.a[0]
    found += [f(X), f(X)]
    s.a = [s.b, s.b]
    return found, f(X), f(X), s.a, s.b


@program
def a_window_of_the_latest_tensors(compile):
    window = collections.deque(maxlen=3)

    @compile
    def f(x):
        window.append(x * 2)
        return torch.stack(list(window)).mean(0)

    return [f(X + i) for i in range(7)], list(window)


@program
def special_methods_of_moving_numbers(compile):
    class Gate:
        v, n = 1.0, 1

        def __bool__(self):
            return self.v > 0

        def __float__(self):
            return self.v * 2

        def __hash__(self):
            return self.n

    gate = Gate()
    f = compile(lambda x: (x * float(gate) if gate else -x, len({gate: 1})))
    found = []
    for v in (1.0, 2.0, -1.0, 3.0):
        gate.v, gate.n = v, gate.n + 1
        found.append(f(X))
    return found


@program
def sizes_that_become_state(compile):
    s, sizes, memo = types.SimpleNamespace(n=0), [], {}

    @compile(dynamic=True)
    def f(x):
        s.n, s.shape = x.shape[0], x.shape
        sizes.append(x.shape[0])
        key = "sum", tuple(x.shape)
        if key not in memo:
            memo[key] = x.shape[0] // 2
        return x.sum() / s.n, {"n": x.shape[0] * 2}, list(x.shape)

    found = []
    for n in (4, 5, 50):
        found.append((f(torch.ones(n, 2)), s.n, type(s.n), tuple(s.shape), type(s.shape[0])))
    return found, sizes[0], {type(n) for n in sizes}, memo, {type(key[1][0]) for key in memo}


@program
def attributes_of_a_metaclass(compile):
    class Meta(type):
        def __call__(cls, *args):
            made = super().__call__(*args)
            made.tag = cls.base
            return made

        @property
        def factor(cls):
            return cls.base * 2

    class Scaled(metaclass=Meta):
        base = 2.0

        def __init__(self, s):
            self.s = s

        def __matmul__(self, x):
            return x * self.s * self.tag

    f = compile(lambda x: (Scaled(3) @ x) * Scaled.factor)
    found = [f(X)]
    for base in (4.0, 5.0, 6.0):
        Scaled.base = base
        found.append(f(X))
    return found
