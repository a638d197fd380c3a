"""Elements at constant places, and functions of arrays with zeros around: what becomes of them, and the same values."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.ir.check import check
from graphc.ops import OPS
from graphc.passes.fold import fold_constants
from graphc.passes.places import regular_places
from graphc.passes.support import shrink

# places in an axis of 12, and whether they are regular
PLACES = {
    "all": (range(12), True),
    "every third": (range(1, 12, 3), True),
    "backwards": (range(11, -1, -1), True),
    "from the end": ([-3, -2, -1], True),
    "repeated": ([0, 0, 1, 1, 2, 2], True),
    "tiled": ([4, 5, 6, 4, 5, 6], True),
    "one, often": ([7] * 5, True),
    "columns of a matrix": ([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11], True),
    "repeated and tiled": ([2, 2, 3, 3, 2, 2, 3, 3], True),
    "overlapping": ([0, 1, 1, 2], False),
    "any": ([3, 1, 4, 1, 5], False),
    "almost": ([0, 1, 2, 3, 5], False),
}


def _ran(graph: Graph, *given: np.ndarray) -> np.ndarray:
    return graph.evaluate(*given)[graph.outputs[0]]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", PLACES)
def test_what_is_picked(name: str, axis: int) -> None:
    places, is_regular = PLACES[name]
    x = np.random.default_rng(0).standard_normal((12, 12))

    def picked(x):
        index = torch.tensor([*places])
        return x[index] if axis == 0 else x[:, index]

    graph = fold_constants(graphc.trace(picked, torch.from_numpy(x)))
    found = regular_places(graph)
    check(found)
    assert (OPS["index"] not in found.ops) == is_regular
    np.testing.assert_array_equal(_ran(found, x), np.take(x, [*places], axis))
    assert regular_places(found) is found


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", PLACES)
def test_what_is_put(name: str, accumulate: bool) -> None:
    places, is_regular = PLACES[name]
    values = np.random.default_rng(0).standard_normal((len(places), 3))

    def put(v):
        index = torch.tensor([*places])
        return torch.zeros(12, 3, dtype=torch.float64).index_put((index,), v, accumulate=accumulate)

    graph = fold_constants(graphc.trace(put, torch.from_numpy(values)))
    found = regular_places(graph)
    check(found)
    meet = len({p % 12 for p in places}) < len(places)
    assert (OPS["index_put"] not in found.ops) == (is_regular and (accumulate or not meet))
    expected = np.zeros((12, 3))
    for k, place in enumerate(places):
        expected[place] = values[k] + (expected[place] if accumulate else 0)
    np.testing.assert_allclose(_ran(found, values), expected, rtol=1e-14)


def test_what_is_not_zero_is_not_put_into() -> None:
    x = np.ones((4, 3))

    def put(v):
        return torch.ones(12, 3, dtype=torch.float64).index_put((torch.arange(4),), v, accumulate=True)

    graph = graphc.trace(put, torch.from_numpy(x))
    assert _ran(regular_places(fold_constants(graph)), x)[0, 0] == 2


# functions of a 3 x 4 array, laid into 12 x 12 zeros, whether they keep the zeros
FUNCTIONS = {
    "relu": (torch.relu, True),
    "tanh": (torch.tanh, True),
    "square": (torch.square, True),
    "exp": (torch.exp, False),
    "cos": (torch.cos, False),
    "sigmoid": (torch.sigmoid, False),
    "negative": (lambda p: -p, True),
    "product": (lambda p: p * torch.arange(144.0).reshape(12, 12), True),
    "product with a row": (lambda p: torch.arange(12.0) * p, True),
    "product of both": (lambda p: p * torch.roll(p, 0), True),
    "sum": (lambda p: p + 1, False),
    "quotient": (lambda p: p / torch.arange(1, 145.0).reshape(12, 12), False),
    "mask": (lambda p: torch.where(torch.arange(12) % 3 > 0, p, 0.0), True),
    "other mask": (lambda p: torch.where(torch.arange(12) % 3 > 0, 0.0, p), True),
    "mask with ones": (lambda p: torch.where(torch.arange(12) % 3 > 0, p, 1.0), False),
    "lower triangle": (torch.tril, True),
    "upper triangle": (lambda p: torch.triu(p, 1), True),
    "transposed": (lambda p: torch.relu(p.T), True),
    "with an axis more": (lambda p: torch.relu(p.unsqueeze(1)), True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zeros_around(name: str) -> None:
    f, keeps = FUNCTIONS[name]
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    traced = graphc.trace(lambda x: f(torch.nn.functional.pad(x, (3, 5, 4, 5))), torch.from_numpy(x))
    graph = fold_constants(traced)
    found = shrink(graph)
    check(found)
    assert (found is not graph) == keeps
    assert found.nodes[found.outputs[0]].op is OPS["pad_zeros"] or not keeps
    np.testing.assert_allclose(_ran(found, x), _ran(graph, x), rtol=1e-6)
    assert shrink(found) is found


def test_triangles_of_few_rows_read_no_more_columns() -> None:
    x = np.random.default_rng(0).standard_normal((3, 50))
    graph = graphc.trace(lambda x: torch.tril(torch.exp(x), 2), torch.from_numpy(x))
    found = shrink(graph)
    assert max(node.size for node in found.nodes.values() if node.op is OPS["tril"]) == 3 * 5
    np.testing.assert_array_equal(_ran(found, x), np.tril(np.exp(x), 2))
