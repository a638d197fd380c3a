"""Regions written anew: cheaper by the order that is due, and the same values; in a ring, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.ir.check import check
from graphc.normal.bounds import BOUNDS
from graphc.normal.find import regions_of
from graphc.normal.gate import may_gain, may_start_gain
from graphc.normal.regions import Vain, at_stake, promising, rewrite_regions
from graphc.normal.trial import Trial
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.fold import fold_constants
from graphc.rewrite.cost import node_cost
from tests.normal import rings
from tests.normal.test_forms import random_program

N = 100
M, V = (N, N), (N,)


def clean(graph: Graph) -> Graph:
    return fold_constants(eliminate_common_subexpressions(eliminate_dead_code(graph)))


def cost(graph: Graph) -> float:
    return sum(node_cost(node, graph.nodes) for node in graph.nodes.values())


def eye() -> torch.Tensor:
    return torch.eye(N)


def _steps(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    for _ in range(6):
        x = a @ x
    return x


# (program, shapes): the best form is of another order than what is written
PROGRAMS = {
    "H'Hx": (lambda h, x: h.T @ h @ x, (M, V)),
    "H'y x'H": (lambda h, x, y: torch.outer(h.T @ y, x) @ h, (M, V, V)),
    "(AB)[2,2]": (lambda a, b: (a @ b)[2, 2], (M, M)),
    "(AB)[:,2]": (lambda a, b: (a @ b)[:, 2], (M, M)),
    "(AB)[3:7]": (lambda a, b: (a @ b)[3:7], (M, M)),
    "diag(d)B": (lambda d, b: torch.diag(d) @ b, (V, M)),
    "diag(d)A diag(x)": (lambda d, a, x: torch.diag(d) @ a @ torch.diag(x), (V, M, V)),
    "AI": (lambda a: a @ eye(), (M,)),
    "tr(AB)": (lambda a, b: torch.trace(a @ b), (M, M)),
    "diag(AB)": (lambda a, b: torch.diag(a @ b), (M, M)),
    "sum(AB)": (lambda a, b: (a @ b).sum(), (M, M)),
    "sum(AB, 1)": (lambda a, b: (a @ b).sum(1), (M, M)),
    "(A-H'H)x": (lambda a, h, x: (a - h.T @ h) @ x, (M, M, V)),
    "(A+xy')d": (lambda a, x, y, d: (a + torch.outer(x, y)) @ d, (M, V, V, V)),
    "(cA)x": (lambda a, x: (3.0 * a) @ x, (M, V)),
    "kron(A,B)x": (lambda a, b, x: torch.kron(a, b) @ x, ((6, 6), (7, 7), (42,))),
    "sum((UV')^2)": (lambda u, v: ((u @ v.T) ** 2).sum(), ((N, 4), (N, 4))),
    "ones B'": (lambda b: torch.ones(N, N) @ b.T, (M,)),
    "(AAx)/y": (lambda a, x, y: (a @ a @ x) / y, (M, V, V)),
    "A'BA'By": (lambda a, b, y: a.T @ b @ a.T @ b @ y, (M, M, V)),
    "einsum of four": (lambda x, a, b, y: torch.einsum("i,ij,jk,k->", x, a, b, y), (V, M, M, V)),
    "six steps of A'A": (lambda a, x: _steps(a.T @ a, x), (M, V)),
    "sum of outer products": (lambda e, x: (e[:, :, None] * x[:, None, :]).sum(0), ((12, N), (12, N))),
}  # fmt: skip
# the same where less is to be gained at this size
HALVES = {
    "tridiagonal B": (
        lambda d, x, y, b: (torch.diag(d) + torch.diag(x[1:], 1) + torch.diag(y[1:], -1)) @ b, (V, V, V, M),
    ),
    "blkdiag(A,B)C": (lambda a, b, c: torch.block_diag(a, b) @ torch.cat([c, c]), (M, M, M)),
    "(concat(A,B)C)[:n]": (lambda a, b, c: (torch.cat([a, b]) @ c)[:N], (M, M, M)),
    "B'AA'B": (lambda a, b: b.T @ a @ a.T @ b, (M, M)),
    "(A'B)'A'B": (lambda a, b: (a.T @ b).T @ a.T @ b, (M, M)),
    "AAAA": (lambda a: a @ a @ a @ a, (M,)),
    "(A+B)x": (lambda a, b, x: (a + b) @ x, (M, M, V)),
    "ABCD": (lambda a, b, c, d: a @ b @ c @ d, (M, (N, 8), (8, N), M)),
}  # fmt: skip


def traced(f, shapes) -> tuple[Graph, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    return clean(graphc.trace(f, *map(torch.from_numpy, arrays))), arrays


@pytest.mark.parametrize("name", [*PROGRAMS, *HALVES])
def test_the_form_that_costs_less_is_found(name):
    f, shapes = (PROGRAMS | HALVES)[name]
    graph, arrays = traced(f, shapes)
    rewritten, found = rewrite_regions(graph)
    assert len(found) == 1
    check(rewritten)
    better = clean(rewritten)
    assert cost(better) < (0.7 if name in HALVES else 0.4) * cost(graph)
    wide = [a.astype(np.float64) for a in arrays]
    expected = f(*map(torch.from_numpy, wide)).numpy() if name not in ("AI", "ones B'") else np.asarray(graph(*arrays))
    np.testing.assert_allclose(np.asarray(better(*arrays)), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    assert rewrite_regions(better)[1] == []


@pytest.mark.parametrize("sizes", [(36, 36), (30, 64)])
def test_finite_differences_on_a_grid_are_shifts(sizes: tuple[int, int]):
    def second(n: int) -> torch.Tensor:
        return torch.diag(torch.ones(n - 1), 1) + torch.diag(torch.ones(n - 1), -1) - 2 * torch.eye(n)

    def f(u):
        m, n = sizes
        return (torch.kron(torch.eye(m), second(n)) + torch.kron(second(m), torch.eye(n))) @ u

    graph, (u,) = traced(f, [(math.prod(sizes),)])
    better = clean(rewrite_regions(graph)[0])
    assert not any(node.op.flops is not None for node in better.nodes.values())
    x = np.pad(u.reshape(sizes).astype(np.float64), 1)
    expected = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1]
    np.testing.assert_allclose(np.asarray(better(u)).reshape(sizes), expected, rtol=1e-5, atol=1e-5)


def test_thin_sums_are_multiplied_out_and_others_are_atoms():
    def f(v, a):
        h = eye() - 2 * torch.outer(v, v)
        return h @ a @ h.T

    graph, arrays = traced(f, (V, M))
    better = graphc.optimize(graph)
    assert cost(better) < 0.25 * cost(graph)
    np.testing.assert_allclose(better(*arrays), graph(*arrays), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("f", [
    lambda a, b, x: a @ b,
    lambda a, b, x: (a + b) @ b,
    lambda a, b, x: torch.tanh(a @ b) @ x,
    lambda a, b, x: torch.relu(x @ a + x) @ b.T + x,
    lambda a, b, x: torch.softmax(a @ b.T / 8.0, 1) @ b,
    lambda a, b, x: ((a @ x - x) ** 2).mean(),
    lambda a, b, x: (a * b).sum(1),
])  # fmt: skip
def test_what_is_best_as_it_is_stays(f):
    graph, _ = traced(f, (M, M, V))
    rewritten, found = rewrite_regions(graph)
    assert rewritten is graph
    assert found == []


def _normalized(a, b, x):
    """What is searched in vain."""
    h = a @ b
    centred = h - h.mean(0)
    return centred * (centred * centred).mean(0).rsqrt() * x, (centred * x).sum(0)


def test_a_region_is_not_searched_again_unless_much_of_it_is_new():
    graph, _ = traced(_normalized, (M, M, V))
    tried: list[float] = []
    vain: Vain = {}

    def search() -> int:
        tried.clear()
        assert rewrite_regions(graph, watch=lambda region, price, *_: tried.append(price), vain=vain)[1] == []
        return len(tried)

    first = search()
    assert first > 0
    assert search() == 0
    cheapest, *_, dearest = sorted(vain, key=lambda id: node_cost(graph.nodes[id], graph.nodes))
    del vain[cheapest]
    assert search() == 0
    del vain[dearest]
    assert search() == first


@pytest.mark.parametrize("differentiated", [False, True])
def test_no_form_saves_more_than_is_at_stake(differentiated: bool):
    covariance = {"covariance x": (lambda h, x: (h - h.mean(0)).T @ (h - h.mean(0)) @ x, ((4 * N, N), V))}
    for name, (f, shapes) in (PROGRAMS | HALVES | covariance).items():
        graph, arrays = traced(f, shapes)
        if differentiated:
            leaves = [torch.from_numpy(a).requires_grad_() for a in arrays]
            graph = clean(graphc.gradients(graphc.trace(lambda *given, f=f: f(*given).square().sum(), *leaves)))
        users = graph.users()
        trial = Trial(graph, users)
        regions = promising(graph, users)
        stake = [trial.price(at_stake(points, region, graph.nodes, users)) for region, points in regions.items()]
        saved = [r.before - r.after for r in rewrite_regions(graph)[1]]
        assert sum(saved) <= sum(stake), name


def test_a_region_is_searched_as_long_as_there_is_at_stake():
    tried: list[float] = []
    counts: list[int] = []
    for other in (lambda g: g, lambda g: g @ torch.tanh(g)):
        graph, _ = traced(lambda a, b, x, g, other=other: (_normalized(a, b, x), other(g)), (M, M, V, (2 * N, 2 * N)))
        tried.clear()
        assert rewrite_regions(graph, watch=lambda _, price, *__: tried.append(price))[1] == []
        counts.append(len(tried))
    assert counts[0] > 2 * counts[1] > 0


@pytest.mark.parametrize("shapes", [((0, 3), (3, 0), (0, 2)), ((3, 0), (0, 0), (0, 3)), ((0, 0),) * 3])
@pytest.mark.parametrize("level", [2, 3])
def test_products_of_nothing_stay(shapes: tuple[tuple[int, ...], ...], level: int):
    for f in (lambda a, b, c: a @ b @ c, lambda a, b, c: (a @ b @ c)[:0] + (a @ b @ c)[:0]):
        graph, arrays = traced(f, shapes)
        np.testing.assert_array_equal(graphc.optimize(graph, level=level)(*arrays), graph(*arrays))


def test_a_search_goes_on_where_a_choice_is_promising():
    graph, _ = traced(*PROGRAMS["six steps of A'A"])  # the first choice costs as much as what is written
    short = BOUNDS._replace(region=4000)
    assert rewrite_regions(graph, short)[1] == []
    assert len(rewrite_regions(graph, short._replace(promising=math.inf))[1]) == 1


@pytest.mark.parametrize("differentiated", [False, True])
def test_regions_that_may_gain_have_a_node_at_which_that_starts(differentiated: bool):
    graphs = [traced(f, shapes)[0] for f, shapes in (PROGRAMS | HALVES).values()]
    graphs += [random_program(seed, 1 + seed % 3) for seed in range(40)]
    alone = [lambda x, y, z: x[:, None] * y + x[:, None] * z, lambda x, y, z: torch.cat([x[9:], x[:5], x[5:9]])]
    graphs += [traced(f, (V, V, V))[0] for f in alone]
    if differentiated:
        leaves = [[a.requires_grad_() for a in map(torch.ones, shapes)] for _, shapes in PROGRAMS.values()]
        losses = [lambda *given, f=f: f(*given).square().sum() for f, _ in PROGRAMS.values()]
        graphs = [graphc.gradients(graphc.trace(f, *given)) for f, given in zip(losses, leaves, strict=True)]
    found = 0
    for graph in graphs:
        nodes, users = graph.nodes, graph.users()
        for region in regions_of(graph, users, set(nodes)):
            if may_gain(region.members, nodes, users):
                found += 1
                assert any(may_start_gain(nodes[id], nodes) for id in region.members), str(graph)
    assert found >= len(PROGRAMS) + 2 * (not differentiated)


def check_regions(seeds: range) -> int:
    changed = 0
    for seed in seeds:
        graph = random_program(seed, 1 + seed % 3)
        rng = np.random.default_rng(seed)
        arrays = [rings.integers(rng, aval.shape) for aval in graph.input_avals()]
        rewritten, found = rewrite_regions(graph)
        check(rewritten)
        for found_here, expected in zip(_several(rewritten(*arrays)), _several(graph(*arrays)), strict=True):
            np.testing.assert_array_equal(found_here, expected, err_msg=f"seed {seed}\n{graph}\n{rewritten}")
        changed += bool(found)
    return changed


def _several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def test_random_programs_in_a_ring():
    assert check_regions(range(300)) > 15


@pytest.mark.deep
def test_many_random_programs_in_a_ring():
    check_regions(range(300, 10_000))
