"""Graphs with structured operations, made by hand: each is (graph, arguments)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ir import Builder, Graph, Ref, Symbol
from graphc.ir.structure import SCAN, SWITCH, WHILE, emit
from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL, FLOAT64, INT32

F64 = FLOAT64
SCALAR = Aval((), F64)


def build(name: str, avals: list[Aval], make: Callable[..., Any]) -> Graph:
    """The graph of `make(F, *symbols)`, which returns one symbol or several."""
    builder = Builder()
    inputs = [builder.input(f"x{k}", aval) for k, aval in enumerate(avals)]
    results = make(builder.language, *inputs)
    results = results if isinstance(results, (tuple, list)) else (results,)
    results = [r if isinstance(r, Symbol) else builder.constant(np.asarray(r)) for r in results]
    return builder.graph(name, tuple(Ref(r.id) for r in results))


def cell() -> tuple[Graph, list[Any]]:
    """A recurrent cell: constants (w, b), two carries, of which one counts, xs and ys."""
    w, b, h, n, x = Aval((4, 4), F64), Aval((4,), F64), Aval((3, 4), F64), Aval((), INT32), Aval((3, 4), F64)

    def step(F: Any, w: Any, b: Any, h: Any, n: Any, x: Any) -> Any:
        new = F.tanh(h @ w + x * F.sin(h) + b)
        return new, n + F.full(shape=(), value=1, dtype=INT32), F.sum(new * x, axis=(0,), keepdims=False)

    body = build("body", [w, b, h, n, x], step)

    def whole(F: Any, w: Any, b: Any, h: Any, xs: Any) -> Any:
        zero = F.full(shape=(), value=0, dtype=INT32)
        operands = [F.square(w), b, h, zero, xs]
        last, count, ys = emit(F._builder, SCAN, operands, body=body, consts=2, carries=2, length=6, reverse=False,
                               unroll=1)  # fmt: skip
        return F.sum(last, axis=(0, 1), keepdims=False) + F.sum(F.square(ys), axis=(0, 1), keepdims=False), count

    rng = np.random.default_rng(0)
    avals = [w, b, h, Aval((6, 3, 4), F64)]
    return build("cell", avals, whole), [rng.normal(size=a.shape) for a in avals]


def choice(index: int = 1) -> tuple[Graph, list[Any]]:
    """Three branches, of which each uses other operands."""
    avals = [SCALAR, Aval((3,), F64)]
    branches = tuple(
        build("branch", avals, make)
        for make in (
            lambda F, a, x: F.sum(x * a, axis=(0,), keepdims=False),
            lambda F, a, x: F.sum(F.exp(x) * x, axis=(0,), keepdims=False),
            lambda F, a, x: F.sin(a) * a,
        )
    )

    def whole(F: Any, i: Any, a: Any, x: Any) -> Any:
        (r,) = emit(F._builder, SWITCH, [i, a, F.square(x)], branches=branches)
        return r * a

    arguments = [np.int32(index), np.float64(0.7), np.array([0.3, -0.5, 0.9])]
    return build("choice", [Aval((), INT32), *avals], whole), arguments


def loop(steps: int = 11) -> tuple[Graph, list[Any]]:
    """A loop whose length is data, with a constant that has a gradient and a carry that has none."""
    avals = [Aval((), INT32), SCALAR, Aval((2,), F64), Aval((), INT32)]  # steps, a, x, n

    def step(F: Any, steps: Any, a: Any, x: Any, n: Any) -> Any:
        return F.sin(x) * a + x * x * 0.1 + 0.01, n + F.full(shape=(), value=1, dtype=INT32)

    condition = build("condition", avals, lambda F, steps, a, x, n: F.lt(n, steps))
    body = build("body", avals, step)

    def whole(F: Any, steps: Any, a: Any, x: Any) -> Any:
        zero = F.full(shape=(), value=0, dtype=INT32)
        x, n = emit(F._builder, WHILE, [steps, a, x, zero], condition=condition, body=body, consts=2)
        return F.sum(F.square(x), axis=(0,), keepdims=False) * a, n

    return build("loop", avals[:3], whole), [np.int32(steps), np.float64(1.02), np.array([0.6, 0.8])]


def nested() -> tuple[Graph, list[Any]]:
    """A scan over a loop over a switch."""
    sign = (
        build("branch", [SCALAR, SCALAR], lambda F, c, a: c * a),
        build("branch", [SCALAR, SCALAR], lambda F, c, a: F.sin(c) * 0.1 + c * a),
    )
    avals = [SCALAR, SCALAR, SCALAR]  # a, bound, c

    def step(F: Any, a: Any, bound: Any, c: Any) -> Any:
        index = F.cast(F.gt(c, F.full(shape=(), value=1.5, dtype=F64)), dtype=INT32)
        (r,) = emit(F._builder, SWITCH, [index, c, a], branches=sign)
        return F.abs(r) + 0.2

    inner = build("body", avals, step)
    condition = build("condition", avals, lambda F, a, bound, c: F.lt(c, bound))

    def outer(F: Any, a: Any, total: Any, x: Any) -> Any:
        bound = F.full(shape=(), value=3.0, dtype=F64)
        (c,) = emit(F._builder, WHILE, [a, bound, F.square(x)], condition=condition, body=inner, consts=2)
        return total * 0.5 + F.sin(c), c

    body = build("body", avals, outer)

    def whole(F: Any, a: Any, xs: Any) -> Any:
        zero = F.full(shape=(), value=0, dtype=F64)
        total, cs = emit(F._builder, SCAN, [a, zero, xs], body=body, consts=1, carries=1, length=5, reverse=True,
                         unroll=1)  # fmt: skip
        return total + F.sum(cs, axis=(0,), keepdims=False)

    return build("nested", [SCALAR, Aval((5,), F64)], whole), [np.float64(1.27), np.array([0.3, 0.5, 1.0, 1.2, 1.6])]


PROGRAMS = {"cell": cell, "choice": choice, "loop": loop, "nested": nested}
BOOLEAN = Aval((), BOOL)
