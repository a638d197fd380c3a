"""Threads of the libraries of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ops import OPS, threads


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    pools = [pool for pool in map(threads.pool, threads.MODULES) if pool is not None]
    before = [pool.get() for pool in pools]
    yield
    for pool, count in zip(pools, before, strict=True):
        pool.set(count)
    threads._count = None


def test_both_libraries_are_reached():
    found = [threads.pool(package) for package in threads.MODULES]
    for count in (2, 1):
        torch.set_num_threads(count)
        assert torch.get_num_threads() == count
        assert [pool.get() for pool in found if pool is not None] == [count, count]


def test_small_matrices_are_left_to_one_thread(monkeypatch: pytest.MonkeyPatch):
    present, seen = [4], []
    fake = threads.Pool(lambda: present[0], lambda count: present.__setitem__(0, count))
    monkeypatch.setattr(threads, "pool", lambda package: fake)

    @threads.small_alone("numpy")
    def kernel(x: np.ndarray) -> None:
        seen.append(present[0])
        if not x.any():
            raise ValueError

    for rows in (threads.SMALL, threads.SMALL + 1):
        kernel(np.ones((1, rows, 1)))
    with pytest.raises(ValueError):
        kernel(np.zeros((2, 2)))
    assert seen == [1, 4, 1]
    assert present == [4]


@pytest.mark.parametrize("name", ["cholesky", "det", "eigh", "inv", "lu", "qr", "solve_triangular", "svd"])
def test_the_kernels_that_take_small_matrices(name: str, monkeypatch: pytest.MonkeyPatch):
    counts: list[int] = []
    monkeypatch.setattr(threads, "pool", lambda package: threads.Pool(lambda: 2, counts.append))
    op = OPS[name]
    op.kernel(*[np.eye(3) for _ in op.args], **op.params)
    assert counts == [1, 2]


@pytest.mark.own_xla
def test_a_program_that_is_compiled_for_one_thread_has_no_others():
    from graphc.lowering.executable import ALONE

    graph = graphc.trace(lambda x: x @ x, torch.ones(2, 2))
    for count, expected in ((2, None), (1, ALONE)):
        torch.set_num_threads(count)
        executable = graphc.lower(graph)
        assert executable._options == expected
        np.testing.assert_array_equal(np.asarray(executable(torch.ones(2, 2))), np.full((2, 2), 2.0))
