"""Text, choices and objects made of values, copies made inside, state with gradients."""

from __future__ import annotations

import asyncio
import copy
import functools
import types
import warnings
from typing import Any

import numpy as np

import eager as torch
from eager import nn
from tests.scenarios.harness import program

X = torch.tensor([1.0, 2.0, 3.0])


@program
def text_that_depends_on_values(compile):
    table = {"0": 1.0, "1": 2.0, "2": 3.0}

    @compile
    def f(x):
        k = x.argmax().item()
        name = f"layer{k}"
        return (
            x * table[str(k)],
            name,
            name.upper(),
            f"{x.sum().item():.1f}",
            {name: 1},
            f"k={k}",
            len(f"{10**k}"),
        )

    return [f(torch.tensor(v)) for v in ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 5.0, 1.0], [3.0, 2.0, 1.0])]


@program
def attributes_chosen_by_values(compile):
    class Bank:
        def __init__(self):
            self.expert0, self.expert1 = torch.full((3,), 2.0), torch.full((3,), 3.0)
            self.turn = 0

        @compile
        def __call__(self, x):
            self.turn += 1
            return x * getattr(self, f"expert{self.turn % 2}") + getattr(self, f"expert{(x.sum() > 0).long().item()}")

    bank = Bank()
    return [bank(X * k) for k in (1.0, 1.0, -1.0, -1.0, 1.0)], bank.turn


@program
def copies_made_inside(compile):
    base = {"w": torch.ones(3), "opts": {"lr": 0.5}}

    @compile
    def f(x):
        mine, shallow = copy.deepcopy(base), copy.copy(base)
        mine["w"].add_(x)
        mine["opts"]["lr"] *= 2
        shallow["opts"]["lr"] += 0.25
        return mine["w"] * mine["opts"]["lr"], base["opts"]["lr"]

    return [f(X) for _ in range(4)], base


@program
def modules_made_inside(compile):
    torch.manual_seed(1)

    @compile
    def f(x):
        layer = nn.LayerNorm(3)
        return layer(x) + nn.Softmax(-1)(x)

    return f(X), f(X + 1)


@program
def warnings_are_given_when_traced(compile):
    @compile
    def f(x):
        if x.sum() < 0:
            warnings.warn("negative", stacklevel=1)
        return x * 2

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [f(X), f(-X)]
    return found, [str(w.message) for w in caught]


@program
def coroutines_that_call_compiled_functions(compile):
    f = compile(lambda x, k: x * k)

    async def work(k):
        y = f(X, k)
        await asyncio.sleep(0)
        return f(y, k)

    async def everything():
        return await asyncio.gather(*map(work, range(4)))

    return asyncio.run(everything())


@program
def gradients_of_state_kept_between_calls(compile):
    w = torch.ones(3, requires_grad=True)
    state = types.SimpleNamespace(total=None)

    @compile
    def f(x):
        y = (w * x).sum()
        state.total = y if state.total is None else state.total + y
        return y

    for i in range(4):
        f(X * i)
    state.total.backward()
    return w.grad, state.total


@program
def hidden_state_with_truncated_gradients(compile):
    cell = nn.Linear(6, 3)
    state = types.SimpleNamespace(h=torch.zeros(1, 3))

    @compile
    def step(x):
        state.h = torch.tanh(cell(torch.cat([x, state.h.detach()], 1)))
        return state.h.pow(2).sum()

    found = []
    for i in range(4):
        loss = step(torch.full((1, 3), float(i)))
        loss.backward()
        found.append((loss, cell.weight.grad.clone(), state.h.requires_grad))
    return found


@program
def caches_by_functools(compile):
    @functools.lru_cache
    def table(n):
        return torch.arange(n).float()

    f = compile(lambda x: x + table(len(x)))
    return f(X), f(X), f(torch.ones(2)), table(3), f(X)


@program
def numpy_state_and_arguments_of_each_call(compile):
    f = compile(lambda x, a, k: (x * float(a.sum()) + torch.as_tensor(a).float(), k))
    return [f(X, np.full(3, float(i % 2)), np.float32(i % 2)) for i in range(5)]


@program
def text_of_tensors(compile):
    f = compile(lambda x: (f"{x.sum()}", str(x), repr(x.long()), f"{x.max():.2f}"))
    return [f(X * k) for k in (1.0, 2.0, 1.0)]


@program
def meters_and_the_best_so_far(compile):
    class Meter:
        def __init__(self):
            self.sum = self.count = self.average = 0
            self.history = {}

        def update(self, value, n=1):
            self.sum += value * n
            self.count += n
            self.average = self.sum / self.count
            self.history.setdefault("value", []).append(value)

    meter, best, w = Meter(), {"loss": float("inf"), "w": None, "bad": 0}, torch.zeros(3)

    @compile
    def step(x):
        w.add_(x)
        loss = (w - 3).pow(2).sum()
        meter.update(loss.item(), len(x))
        if loss < best["loss"]:
            best["loss"], best["w"], best["bad"] = loss.item(), w.clone(), 0
        else:
            best["bad"] += 1
        return best["bad"] >= 2

    stopped = [step(X * k) for k in (1.0, 0.1, 1.0, 1.0, 1.0)]
    return stopped, best, meter.sum, meter.count, meter.average, meter.history


@program
def branches_on_random_numbers(compile):
    def f(x):
        i = torch.multinomial(torch.ones(3) / 3, 1).item()
        if torch.rand(1) < 0.5:
            return x[i], i
        return -x, "other"

    c = compile(f)
    return [c(X) for _ in range(8)], torch.rand(1)


@program
def gradient_modes_and_default_dtypes(compile):
    w = torch.ones(3, requires_grad=True)
    f, g = compile(lambda x: (w * x).sum()), compile(lambda: torch.zeros(1))
    found: list[Any] = [f(X).requires_grad]
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            found.append(f(X).requires_grad)
    w.requires_grad_(False)
    found.append(f(X).requires_grad)
    for kind in (torch.float64, torch.float32):
        torch.set_default_dtype(kind)
        found.append(g())
    return found


@program
def properties_and_slots_that_change(compile):
    class Box:
        __slots__ = ("_k", "log", "t")

        def __init__(self):
            self._k, self.log, self.t = 1.0, 0, torch.zeros(3)

        @property
        def k(self):
            return self._k

        @k.setter
        def k(self, value):
            self._k = value
            self.log += 1

    box = Box()

    @compile
    def f(x):
        box.k = box.k * 2
        box.t = box.t + x
        return box.t * box.k

    return [f(X) for _ in range(4)], box._k, box.log, box.t


@program
def errors_collected_in_a_loop(compile):
    def f(xs):
        found = []
        for x in xs:
            try:
                if x.min() < 0:
                    raise ValueError(x.min().item())
                found.append(x.sqrt().sum())
            except ValueError as error:
                found.append(error.args[0])
        return found

    c = compile(f)
    return [c([X * a, X * b]) for a in (1.0, -1.0) for b in (1.0, -2.0)]
