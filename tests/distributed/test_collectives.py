"""Collectives, messages and objects between processes: against what they must give, and against PyTorch."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from tests.distributed.cases import BEYOND_GLOO, CASES, assert_same
from tests.distributed.jobs import results
from tests.oracle import torch_or_skip


@cache
def found(size: int, side: str) -> list[Any]:
    return results("collectives_job", size, Path(mkdtemp()), side)


@pytest.mark.deep  # two processes do it in test_meshes.py, which start once
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_collectives(name: str, size: int):
    for rank, got in enumerate(found(size, "eager")):
        assert_same(got[name], CASES[name].expected(rank, size))


@pytest.mark.deep
@pytest.mark.parametrize("size", [2, 4])
def test_pytorch_agrees(size: int):
    torch_or_skip()
    theirs = found(size, "torch")
    for name, case in CASES.items():
        for rank, got in enumerate(theirs):
            if name not in BEYOND_GLOO:
                assert_same(got[name], case.expected(rank, size))


def test_a_wrong_result_is_noticed():
    with pytest.raises(AssertionError):
        assert_same((np.ones(2), [1]), (np.ones(2), [2]))
