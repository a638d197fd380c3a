"""Common factors before brackets, and runs of terms as one: the same bits in a ring."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.normal.affine import Unsolved
from graphc.normal.factor import factored
from graphc.normal.form import Algebra, Form, atom
from graphc.normal.merge import merged
from tests.normal import rings
from tests.normal.test_forms import named

N = Algebra()
SIZE = 6
SQUARES = dict.fromkeys(range(3), (SIZE, SIZE))


def random_sum(seed: int) -> Form:
    """A sum of chains of few matrices, some transposed, with numbers before them."""
    rng = np.random.default_rng(seed)

    def matrix() -> Form:
        k = int(rng.integers(3))
        x = atom(k, SQUARES[k])
        return N.take(x, x.shape, lambda i, j: (j, i)) if rng.integers(2) else x

    def chain() -> Form:
        product = matrix()
        for _ in range(int(rng.integers(1, 4))):
            product = N.product([product, matrix()], [[0, 1], [1, 2]], [0, 2])
        return N.scale(product, int(rng.choice([1, 1, 2, -1, 3])))

    return N.add(*[chain() for _ in range(int(rng.integers(2, 6)))])


def check_sums(seeds: range) -> int:
    changed = 0
    for seed in seeds:
        try:
            form = random_sum(seed)
        except Unsolved:  # terms that cancel
            continue
        rng = np.random.default_rng(seed)
        values = {k: rings.integers(rng, shape) for k, shape in SQUARES.items()}
        expected = rings.value(form, values)
        np.testing.assert_array_equal(named(factored, form, values), expected, err_msg=f"seed {seed}: {form}")
        changed += factored(form, lambda inner: -2) != form
    return changed


def test_sums_of_chains_with_common_factors():
    assert check_sums(range(60)) > 20


@pytest.mark.deep
def test_many_sums_of_chains():
    assert check_sums(range(60, 2000)) > 600


def _nameless(inner: Form) -> int:
    raise AssertionError(inner)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_terms_in_equal_steps_are_one(together: bool, backwards: bool, step: int, count: int):
    rng = np.random.default_rng(0)
    shapes = {0: (count * step + 2, 4), 1: (3, 4), 2: (count, 3)}
    values = {k: rings.integers(rng, shape) for k, shape in shapes.items()}
    x, w, scale = (atom(k, shape) for k, shape in shapes.items())

    def row(t: int) -> Form:
        place = (count - 1 - t if backwards else t) * step + 1
        own = N.take(x, (4,), lambda j: (j * 0 + place, j))
        product = N.product([w, own], [[0, 1], [1]], [0])
        return N.mul(product, N.take(scale, (3,), lambda j: (j * 0 + t, j)))

    rows = [row(t) for t in range(count)]
    total = N.add(*rows) if together else N.join(*[
        N.put(r, (count, 3), lambda j, t=t: (j * 0 + t, j)) for t, r in enumerate(rows)
    ])  # fmt: skip
    found = merged(total, _nameless)
    assert len(found.terms) == (1 if count > 2 else 2)
    np.testing.assert_array_equal(rings.value(found, values), rings.value(total, values))


def test_terms_in_unequal_steps_stay():
    x = atom(0, (9, 2))
    rows = [N.take(x, (2,), lambda j, t=t: (j * 0 + t, j)) for t in (0, 1, 3, 7)]
    assert len(merged(N.add(*rows), _nameless).terms) == 4


@pytest.mark.parametrize("overlap", [False, True])
def test_scaled_terms_in_equal_steps_are_one_with_a_vector(overlap: bool):
    """Windows that overlap stay: no product slides."""
    values = {0: rings.integers(np.random.default_rng(0), (12,))}
    x = atom(0, (12,))
    parts = [N.scale(N.take(x, (3,), lambda j, t=t: (j + t * (1 if overlap else 3),)), 2 + t % 3) for t in range(4)]
    total, vectors = N.add(*parts), list[Form]()

    def name(vector: Form) -> int:
        vectors.append(vector)
        return -1 - len(vectors)

    found = merged(total, name)
    assert len(found.terms) == (4 if overlap else 1)
    known = values | {-2 - k: rings.value(vector, {}) for k, vector in enumerate(vectors)}
    np.testing.assert_array_equal(rings.value(found, known), rings.value(total, values))
