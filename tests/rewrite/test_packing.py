"""Packed graphs compute what the graphs compute, bit for bit on NumPy, and are as small as they should be."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph, Ref
from graphc.passes import layers_of_packs, optimize
from graphc.passes.packing import DEEPEST, LARGE, Packed, pack_state
from graphc.passes.rolling import MANY
from graphc.passes.settings import DEFAULT

SHAPES = [(3, 4), (4,), (2, 3, 1), (1,), (5, 2), (6,)]


def run(graph: Graph, values: dict[int, np.ndarray]) -> list[np.ndarray]:
    found = graph.evaluate(*[values[i] for i in graph.inputs])
    return [found[id] for id in graph.outputs]


def run_packed(graph: Graph, packed: Packed, values: dict[int, np.ndarray]) -> list[np.ndarray]:
    """The outputs of `graph`, by the packed one."""
    inside = {i for pack in packed.packs for i in pack.inputs}
    given = [values[i] for i in graph.inputs if i not in inside]
    for pack in packed.packs:
        if pack.equal:
            given.append(values[pack.inputs[0]])
        elif pack.inputs:
            given.append(np.concatenate([values[i].reshape(-1) for i in pack.inputs]))
    found = packed.graph.evaluate(*given)
    outputs = [found[id] for id in packed.graph.outputs]
    count = len(outputs) - len(packed.packs)
    taken = {k for pack in packed.packs for k in pack.outputs}
    result = dict(zip((k for k in range(len(graph.outputs)) if k not in taken), outputs[:count], strict=True))
    for pack, array in zip(packed.packs, outputs[count:], strict=True):
        start = 0
        for k in pack.outputs:
            shape = graph.nodes[graph.outputs[k]].shape
            size = int(np.prod(shape))
            result[k] = array if pack.equal else array[start : start + size].reshape(shape)
            start += size
    return [result[k] for k in range(len(graph.outputs))]


def traced(update: Callable[..., Any], shapes: list[tuple[int, ...]], slots: int, counted: bool = False) -> Any:
    """The graph of update(parameter, gradient, *slots) for each shape: (graph, state, fresh, numbers, values).

    Gradients are sums over a batch of twice what is given, to be computed; they are returned as well.
    """
    rng = np.random.default_rng(0)
    state = [[torch.tensor(rng.standard_normal(s).astype(np.float32)) for s in shapes] for _ in range(1 + slots)]
    counts = [torch.tensor(3.0) for _ in shapes] if counted else []
    given = [torch.tensor(rng.standard_normal((2, *s)).astype(np.float32)) for s in shapes]

    def f(state, counts, given):
        gradients = [(g * 2.0).sum(0) for g in given]
        steps = [t + 1 for t in counts]
        rows = [update(*row, *([t] if counted else [])) for *row, t in
                zip(state[0], gradients, *state[1:], steps or gradients, strict=True)]  # fmt: skip
        return [list(column) for column in zip(*rows, strict=True)], steps, gradients

    graph = optimize(graphc.trace(f, state, counts, given))
    flat = [t for column in state for t in column]
    ids = graph.inputs
    values = dict(zip(ids, [t.numpy() for t in (*flat, *counts, *given)], strict=True))
    positions = {i: k for k, i in enumerate(ids[: len(flat) + len(counts)])}
    fresh = range(len(positions), len(positions) + len(shapes))
    numbers = ids[len(flat) : len(flat) + len(counts)]
    return graph, positions, fresh, [numbers], values


def same(graph: Graph, packed: Packed | None, values: dict[int, np.ndarray]) -> Packed:
    assert packed is not None
    packed.graph.check()
    for a, b in zip(run(graph, values), run_packed(graph, packed, values), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    return packed


def momentum(p, g, m):
    m = 0.9 * m + g
    return p - 0.1 * m, m


def adam(p, g, m, v, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 0.01 / (1 - 0.9**t) * m / ((v / (1 - 0.999**t)).sqrt() + 1e-8), m, v


def test_a_slot_is_one_array():
    graph, state, fresh, _, values = traced(momentum, SHAPES, 1)
    packed = same(graph, pack_state(graph, state, fresh, []), values)
    assert [len(p.inputs) for p in packed.packs] == [len(SHAPES), len(SHAPES), 0]
    assert len(packed.graph.inputs) == len(SHAPES) + 2  # gradients' operands, and two packs
    elementwise = [
        n
        for n in packed.graph.operations()
        if n.op.name in ("mul", "sub", "add") and n.shape == (12 + 4 + 6 + 1 + 10 + 6,)
    ]
    assert len(elementwise) == 4  # one for all tensors


def test_slots_lie_in_the_order_of_their_parameters():
    """Though their new values are returned in another: else each pack would be updated by expressions of its own."""
    graph, state, fresh, _, values = traced(momentum, SHAPES, 1)
    count, order = len(SHAPES), [4, 2, 0, 5, 1, 3]
    outputs = graph.outputs
    moved = (*outputs[:count], *(outputs[count + k] for k in order), *outputs[2 * count :])
    turned = graph.replace(graph.nodes, tuple(map(Ref, moved)))
    state = {i: count + order.index(k - count) if k >= count else k for i, k in state.items()}
    packed = same(turned, pack_state(turned, state, fresh, []), values)
    parameters, slots = (pack.inputs for pack in packed.packs if pack.inputs)
    assert [i - parameters[0] for i in parameters] == [i - slots[0] for i in slots]
    assert sum(n.op.name == "cat" for n in packed.graph.operations()) == 1  # of the gradients


def test_equal_numbers_are_one():
    graph, state, fresh, numbers, values = traced(adam, SHAPES, 2, counted=True)
    packed = same(graph, pack_state(graph, state, fresh, numbers), values)
    assert [p.equal for p in packed.packs if p.inputs].count(True) == 1
    assert len(packed.graph.outputs) == 5  # parameters, two moments, the count, gradients


def test_numbers_that_differ_are_not():
    graph, state, fresh, numbers, values = traced(adam, SHAPES, 2, counted=True)
    values[numbers[0][0]] = np.float32(7.0).reshape(())
    packed = same(graph, pack_state(graph, state, fresh, [numbers[0][1:]]), values)
    # the parameters depend on them, and stay by themselves; the moments do not
    assert sorted(len(p.inputs) for p in packed.packs) == [0, 5, 6, 6]


def test_numbers_that_do_not_stay_equal_are_not():
    """They are equal now, and get new values from what differs."""

    def update(p, g, m, t):
        return p - g * t, m + g

    rng = np.random.default_rng(0)
    given = [torch.tensor(rng.standard_normal(3).astype(np.float32)) for _ in range(6)]
    counts = [torch.tensor(1.0) for _ in range(6)]
    arrays = [torch.tensor(rng.standard_normal(3).astype(np.float32)) for _ in range(6)]

    def f(arrays, counts, given):
        return [a + 1 for a in arrays], [t + g.sum() for t, g in zip(counts, given, strict=True)]

    graph = optimize(graphc.trace(f, arrays, counts, given))
    state = {i: k for k, i in enumerate(graph.inputs[:12])}
    values = dict(zip(graph.inputs, [t.numpy() for t in (*arrays, *counts, *given)], strict=True))
    packed = same(graph, pack_state(graph, state, [], [graph.inputs[6:12]]), values)
    assert not any(p.equal for p in packed.packs)


def test_groups_of_parameters_with_other_rates():
    def f(ps, gs):
        return [p - (0.1 if k < 4 else 0.2) * g.sum(0) for k, (p, g) in enumerate(zip(ps, gs, strict=True))]

    ps = [torch.randn(3, k + 1) for k in range(9)]
    gs = [torch.randn(2, 3, k + 1) for k in range(9)]
    graph = optimize(graphc.trace(f, ps, gs))
    values = dict(zip(graph.inputs, [t.numpy() for t in (*ps, *gs)], strict=True))
    packed = same(graph, pack_state(graph, {i: k for k, i in enumerate(graph.inputs[:9])}, [], []), values)
    assert sorted(len(p.inputs) for p in packed.packs) == [4, 5]


def test_parts_of_equal_numbers_are_equal():
    """Two optimizers with one count for all: what each makes of its own counts is one number."""

    def f(ps, ms, ts, gs):
        rates = [0.1] * 4 + [0.2] * 4
        ms, ts = [0.9 * m + g.sum(0) for m, g in zip(ms, gs, strict=True)], [t + 1 for t in ts]
        ps = [p - r / (1 - 0.9**t) * m for p, m, t, r in zip(ps, ms, ts, rates, strict=True)]
        return ps, ms, ts

    ps, ms = ([torch.randn(3, k + 1) for k in range(8)] for _ in range(2))
    ts, gs = [torch.tensor(3.0) for _ in range(8)], [torch.randn(2, 3, k + 1) for k in range(8)]
    graph = optimize(graphc.trace(f, ps, ms, ts, gs))
    values = dict(zip(graph.inputs, [t.numpy() for t in (*ps, *ms, *ts, *gs)], strict=True))
    state = {i: k for k, i in enumerate(graph.inputs[:24])}
    packed = same(graph, pack_state(graph, state, [], [graph.inputs[16:24]]), values)
    assert sorted(len(p.inputs) for p in packed.packs) == [4, 4, 4, 4, 8]


def test_what_is_read_elsewhere_is_still_there():
    """Updated parameters are read by the next layer's gradient, and state by the result."""

    def f(ps, x):
        new = []
        for p in ps:
            p2 = p - 0.1 * (x * p).sum(0)
            x = x + p2  # what follows depends on the new value
            new.append(p2)
        return new, x, ps[2] * 2

    ps, x = [torch.randn(4) for _ in range(6)], torch.randn(3, 4)
    graph = optimize(graphc.trace(f, ps, x))
    values = dict(zip(graph.inputs, [t.numpy() for t in (*ps, x)], strict=True))
    same(graph, pack_state(graph, {i: k for k, i in enumerate(graph.inputs[:6])}, [], []), values)


def test_relu_is_no_copy():
    """It moves elements, and is idempotent; and yet it is none."""

    def f(ps, gs):
        return [p - g.sum(0).relu() for p, g in zip(ps, gs, strict=True)]

    ps, gs = [torch.randn(4) for _ in range(6)], [torch.randn(2, 4) for _ in range(6)]
    graph = optimize(graphc.trace(f, ps, gs))
    values = dict(zip(graph.inputs, [t.numpy() for t in (*ps, *gs)], strict=True))
    same(graph, pack_state(graph, {i: k for k, i in enumerate(graph.inputs[:6])}, [], []), values)


@pytest.mark.parametrize("case", ["one", "large", "two of some size", "another shape", "empty"])
def test_what_is_not_packed(case):
    count = {"one": 1, "two of some size": 2}.get(case, 5)
    shape = {"large": (LARGE + 1,), "two of some size": (LARGE // 2 + 1,), "empty": (0,)}.get(case, (3,))
    ps = [torch.randn(*shape) for _ in range(count)]
    new = (lambda p: p.sum() + 1) if case == "another shape" else (lambda p: p + 1)
    graph = optimize(graphc.trace(lambda ps: [new(p) for p in ps], ps))
    assert pack_state(graph, {i: k for k, i in enumerate(graph.inputs)}, [], []) is None


def test_long_expressions_end_somewhere():
    def f(ps):
        for _ in range(3 * DEEPEST):
            ps = [p * 1.01 + 0.1 for p in ps]
        return ps

    ps = [torch.randn(3) for _ in range(5)]
    graph = optimize(graphc.trace(f, ps), passes=())
    values = dict(zip(graph.inputs, [t.numpy() for t in ps], strict=True))
    same(graph, pack_state(graph, {i: k for k, i in enumerate(graph.inputs)}, [], []), values)


@pytest.mark.parametrize("seed", range(20))
def test_random_updates(seed):
    rng = np.random.default_rng(seed)
    unary = [torch.tanh, torch.abs, lambda x: -x, lambda x: x * 0.5, torch.relu, lambda x: x.detach()]
    forms = []
    for _ in range(3):  # kinds of parameters, each with its own update
        steps = [(rng.integers(len(unary)), rng.integers(4)) for _ in range(rng.integers(1, 7))]
        forms.append(steps)

    def update(steps, p, m, g, c):
        terms = [p, m, g, c]
        for which, other in steps:
            terms.append(unary[which](terms[-1]) + terms[other])
        return terms[-1] + p * 0, terms[-1] * 0.5 + m

    kinds = rng.integers(3, size=12)
    shapes = [SHAPES[k] for k in rng.integers(len(SHAPES), size=12)]
    ps, ms, gs = ([torch.tensor(rng.standard_normal(s).astype(np.float32)) for s in shapes] for _ in range(3))
    c = torch.tensor(0.25)

    def f(ps, ms, gs, c):
        rows = [update(forms[k], p, m, g.flip(0), c) for k, p, m, g in zip(kinds, ps, ms, gs, strict=True)]
        return [p for p, _ in rows], [m for _, m in rows], [g.flip(0) for g in gs]

    graph = optimize(graphc.trace(f, ps, ms, gs, c))
    values = dict(zip(graph.inputs, [t.numpy() for t in (*ps, *ms, *gs, c)], strict=True))
    packed = pack_state(graph, {i: k for k, i in enumerate(graph.inputs[:24])}, range(24, 36), [])
    if packed is not None:
        same(graph, packed, values)


def test_many_layers_are_loops_over_packs():
    """Forward and backward, in which weights and gradients are rows of the packs."""
    layers = [(torch.randn(3, 3, requires_grad=True), torch.randn(3, requires_grad=True)) for _ in range(MANY + 2)]

    def f(layers, x):
        for w, b in layers:
            x = torch.tanh(x @ w.T + b)
        flat = [*itertools.chain(*layers)]
        gradients = torch.autograd.grad(x.sum(), flat)
        return [t - 0.5 * g for t, g in zip(flat, gradients, strict=True)]

    x = torch.randn(2, 3)
    graph = optimize(graphc.trace(f, layers, x))
    values = dict(zip(graph.inputs, [t.detach().numpy() for t in (*itertools.chain(*layers), x)], strict=True))
    packed = pack_state(graph, {i: k for k, i in enumerate(graph.inputs[:-1])}, [], [])
    assert packed is not None
    rolled = layers_of_packs(packed.graph, DEFAULT)
    assert [node.op.name for node in rolled.nodes.values()].count("scan") == 2 and len(rolled) < 60
    found = run_packed(graph, packed._replace(graph=rolled), values)
    for ours, expected in zip(found, run(graph, values), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
