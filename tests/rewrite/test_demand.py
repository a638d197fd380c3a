"""Parts that nobody reads are not computed: the same values, from smaller arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Builder, Graph, Ref, Symbol
from graphc.ir.check import check
from graphc.ops.aval import Aval
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.demand import narrow
from graphc.rewrite.cost import node_cost

ROWS, COLUMNS = 200, 10


def traced(f: Callable[..., Any], *given: Any) -> Graph:
    return eliminate_common_subexpressions(eliminate_dead_code(graphc.trace(f, *given)))


def cost(graph: Graph) -> float:
    return sum(node_cost(node, graph.nodes) for node in graph.nodes.values())


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "row of a pointwise op": lambda x: torch.tanh(x.exp() + 1)[2],
    "column, transposed": lambda x: torch.sin(x.T)[3],
    "row of softmax": lambda x: torch.softmax(x, 1)[3:5],
    "row of log_softmax, every other column": lambda x: torch.log_softmax(x, 1)[1, ::2],
    "sum of rows, then few": lambda x: x.exp().sum(1)[:4],
    "mean kept": lambda x: x.exp().mean(1, keepdim=True)[4:6],
    "two parts": lambda x: x.exp()[2:4] + x.exp()[5:7],
    "a part and a part of that": lambda x: (lambda y: (y[:8], torch.tanh(y[:8])[1]))(x.exp()),
    "row of a triangle": lambda x: torch.tril(x.exp(), 1)[3:5, 2:6],
    "column of a triangle": lambda x: torch.triu(x.exp())[:, 4],
    "flipped": lambda x: x.exp().flip(0)[1:3],
    "row of a new axis": lambda x: x.exp()[:, None, :, None][2:4],
    "axis gone": lambda x: x.exp().mean(1, keepdim=True).squeeze(1)[4:6],
    "two axes as one, beside another": lambda x: x.exp()[:, None].expand(-1, 3, -1).reshape(ROWS, -1)[1:3, 4:9],
    "broadcast": lambda x: (x[:, None] * x[None].exp())[3, :, 2:4],
    "end of cumsum": lambda x: torch.cumsum(x, 0)[-1],
    "in the middle of cumsum": lambda x: torch.cumsum(x, 0)[5:8],
    "end of cumprod": lambda x: torch.cumprod(x, 0)[-1, 2],
    "logcumsumexp": lambda x: torch.logcumsumexp(x, 1)[:, 3],
    "largest": lambda x: torch.sort(x, 0).values[-1],
    "smallest": lambda x: torch.sort(x, 0).values[0],
    "smallest and its place": lambda x: tuple(part[0] for part in torch.sort(x, 0)),
    "largest and its place": lambda x: tuple(part[-1] for part in torch.sort(x, 0)),
    "descending, first": lambda x: tuple(part[0] for part in torch.sort(x, 0, descending=True)),
    "descending, last": lambda x: tuple(part[-1] for part in torch.sort(x, 0, descending=True)),
    "the first of those at the top": lambda x: tuple(part[:2] for part in torch.topk(x, 4, 0)),
    "smallest few, and where": lambda x: (torch.sort(x, 0).values[:3], torch.argsort(x, 0)[:5]),
    "argmax of few": lambda x: torch.argmax(x.exp(), 1)[:3],
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_for_less(name: str):
    torch.manual_seed(0)
    x = torch.randn(ROWS, COLUMNS)
    graph = traced(PROGRAMS[name], x)
    narrowed = eliminate_dead_code(narrow(graph))
    check(narrowed)
    assert cost(narrowed) < 0.85 * cost(graph), narrowed
    for found, expected in zip(_several(narrowed(x.numpy())), _several(graph(x.numpy())), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert found.dtype == expected.dtype
    assert narrow(narrowed) is narrowed


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if any(w in name for w in ("est", "desc", "top"))])
def test_ends_of_sorted_rows_with_equal_and_special_numbers(name: str):
    rng = np.random.default_rng(0)
    x = rng.choice(SPECIAL, (4, 400)).astype(np.float32)
    x[:, :2] = np.nan
    x[:, 2] = [np.nan, np.inf, np.inf, np.nan]
    graph = traced(PROGRAMS[name], torch.from_numpy(x))
    for found, expected in zip(_several(narrow(graph)(x)), _several(graph(x)), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("f", [
    lambda x: torch.tanh(x),
    lambda x: torch.tanh(x)[: ROWS - 1],
    lambda x: (x.exp(), x.exp()[2]),
    lambda x: torch.softmax(x, 0)[2],
    lambda x: torch.linalg.inv(x[:COLUMNS])[2],
])  # fmt: skip
def test_what_is_read_stays(f: Callable[[Any], Any]):
    graph = traced(f, torch.ones(ROWS, COLUMNS))
    assert narrow(graph) is graph


def _several(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def random_program(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    builder = Builder()
    F = builder.language
    known: list[Symbol] = [builder.input(f"x{k}", Aval((5, 6), np.dtype(np.int64))) for k in range(2)]
    for _ in range(int(rng.integers(4, 12))):
        x = known[rng.integers(max(0, len(known) - 4), len(known))]
        known.append(_step(rng, F, x, known))
    return builder.graph("f", tuple([Ref(s.id) for s in known[-2:]]))


def _step(rng: np.random.Generator, F: Any, x: Symbol, known: list[Symbol]) -> Symbol:
    n = len(x.shape)
    axis = int(rng.integers(n)) if n else 0

    def cut() -> Symbol:
        start = [int(rng.integers(0, k)) for k in x.shape]
        stop = [int(rng.integers(a + 1, k + 1)) for a, k in zip(start, x.shape, strict=True)]
        return F.slice(x, start=tuple(start), stop=tuple(stop), step=tuple(int(rng.integers(1, 3)) for _ in x.shape))

    def pointwise() -> Symbol:
        others = [y for y in known if y.shape == x.shape or not y.shape]
        return getattr(F, str(rng.choice(["add", "mul", "maximum"])))(x, others[rng.integers(len(others))])

    steps = [
        cut, cut, cut, pointwise, pointwise,
        lambda: F.permute(x, dims=tuple(int(k) for k in rng.permutation(n))),
        lambda: F.flip(x, axis=(axis,)) if n else x + 1,
        lambda: F.sum(x, axis=(axis,), keepdims=bool(rng.integers(2))) if n else x + 1,
        lambda: F.amax(x, axis=(axis,), keepdims=bool(rng.integers(2))) if n else x + 1,
        lambda: F.cumsum(x, axis=axis, reverse=bool(rng.integers(2))) if n else x + 1,
        lambda: F.sort(x, axis=axis, descending=bool(rng.integers(2)))[rng.integers(2)] if n else x + 1,
        lambda: F.broadcast_to(x, shape=(2, *x.shape)) if n < 4 else x + 1,
        lambda: F.sub(x, int(rng.integers(-3, 4))),
    ]  # fmt: skip
    return steps[rng.integers(len(steps))]()


def check_programs(seeds: range) -> int:
    changed = 0
    for seed in seeds:
        graph = eliminate_dead_code(random_program(seed))
        rng = np.random.default_rng(seed)
        arrays = [rng.integers(-3, 4, aval.shape) for aval in graph.input_avals()]
        narrowed = narrow(graph)
        check(narrowed)
        for found, expected in zip(narrowed(*arrays), graph(*arrays), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=f"seed {seed}\n{graph}\n{narrowed}")
        changed += narrowed is not graph
    return changed


def test_random_programs():
    assert check_programs(range(500)) > 100


@pytest.mark.deep
def test_many_random_programs():
    assert check_programs(range(500, 10_000)) > 2000
