"""Uneven batches, communication hooks and divided optimizers: what PyTorch gives, or alone what is known of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from eager.futures import Future, collect_all, wait_all
from tests.distributed.jobs import results
from tests.oracle import torch_or_skip


def same(got: Any, expected: Any, path: str) -> None:
    if isinstance(expected, np.ndarray):
        np.testing.assert_allclose(got, expected, rtol=2e-3 if "float16" in path else 1e-5, atol=1e-5, err_msg=path)
    elif isinstance(expected, dict):
        assert list(got) == list(expected), path
        for key in expected:
            same(got[key], expected[key], f"{path}, {key}")
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), path
        for k, (a, b) in enumerate(zip(got, expected, strict=True)):
            same(a, b, f"{path}, {k}")
    else:
        assert got == expected, path


@cache
def found(size: int, side: str) -> list[Any]:
    return results("joining_job", size, Path(mkdtemp()), side)


@pytest.mark.deep  # several processes
@pytest.mark.parametrize("size", [2, 4])
def test_processes_join(size: int) -> None:
    first = found(size, "eager")[0]
    for own in found(size, "eager"):
        same(own["float16"], own["average"], "float16 and whole")
        same(own["uneven"], first["uneven"], "all have the model of the last")
        same(own["divided, uneven"][0][:3], first["divided, uneven"][0][:3], "and the parameters that others update")
        assert not np.allclose(own["uneven"][0], own["uneven, without those that have joined"][0])


@pytest.mark.deep
@pytest.mark.parametrize("size", [2, 4])
def test_it_is_what_pytorch_does(size: int) -> None:
    torch_or_skip()
    for got, expected in zip(found(size, "eager"), found(size, "torch"), strict=True):
        same(got, expected, "")


def test_futures() -> None:
    first, late = Future(), Future(source=lambda: [3])
    doubled = first.then(lambda done: done.value() * 2)
    failed = first.then(lambda done: done.value() / 0)
    assert not first.done() and not doubled.done()
    first.set_result(2)
    assert doubled.wait() == 4 and late.then(lambda done: done.value()[0] + 1).wait() == 4
    assert wait_all([first, doubled]) == [2, 4] and collect_all([first]).wait()[0] is first
    with pytest.raises(RuntimeError, match="running the callback: ZeroDivisionError"):  # as PyTorch has it
        failed.wait()
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        first.set_result(3)
