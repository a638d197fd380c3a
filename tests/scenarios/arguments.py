"""Arguments and results: nests, Python values, aliases."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Any

import eager as torch
from tests.scenarios.harness import program

Pair = namedtuple("Pair", "first second")


@dataclass
class Batch:
    x: Any
    y: Any
    scale: float = 1.0


@program
def nests_in_and_out(compile):
    f = compile(lambda a, b: {"sum": a["x"] + b[0], "pair": Pair(a["x"] * 2, [b[1], None, 3])})
    return [f({"x": torch.full((2,), float(i))}, (torch.ones(2), torch.zeros(2))) for i in range(3)]


@program
def dataclasses_in_and_out(compile):
    f = compile(lambda batch: Batch(batch.x @ batch.y * batch.scale, batch.y, batch.scale + 1))
    return [f(Batch(torch.ones(2, 2) * i, torch.ones(2), s)) for i in range(3) for s in (1.0, 2.0)]


@program
def ordered_dicts_keep_their_type_and_order(compile):
    f = compile(lambda d: OrderedDict((k + "!", v * 2) for k, v in d.items()))
    return f(OrderedDict(b=torch.ones(1), a=torch.zeros(1))), f(OrderedDict(a=torch.ones(1), b=torch.zeros(1)))


@program
def the_same_tensor_twice(compile):
    def f(a, b):
        a.add_(1)
        return a * b

    c = compile(f)
    x, y = torch.ones(2), torch.ones(2)
    return c(x, x), x, c(x, y), x, y, c(y, y), c(x, x)


@program
def inputs_are_returned_as_they_are(compile):
    f = compile(lambda x, y: (x, y * 2, x))
    x, y = torch.ones(2), torch.ones(2)
    a, b, c = f(x, y)
    a.add_(5)
    return x, a is x, c is x, b, f(x, y)


@program
def results_that_share_memory(compile):
    def f(x):
        y = x * 2
        return y, y[0], y.view(-1)

    c = compile(f)
    y, row, flat = c(torch.ones(2, 2))
    flat[0] = 9
    row.add_(1)
    return y, row, flat


@program
def a_view_of_an_input_is_returned(compile):
    f = compile(lambda x: (x[1:], x.t()))
    x = torch.arange(6.0).reshape(3, 2)
    a, b = f(x)
    a.zero_()
    b[0, 0] = 7
    return x, a, b


@program
def partial_functions(compile):
    f = compile(partial(lambda w, x, k=1: x @ w * k, torch.eye(2), k=3))
    return f(torch.ones(2)), f(torch.ones(2), k=4)
