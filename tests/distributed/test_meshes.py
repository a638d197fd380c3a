"""Meshes of processes: each has its part of a tensor, and what they compute together is what one process does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.distributed.jobs import results
from tests.oracle import torch_or_skip


def agree(found: Any, expected: Any, where: str) -> None:
    if isinstance(expected, dict):
        for name in expected:
            agree(found[name], expected[name], f"{where}.{name}")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), where
        for k, pair in enumerate(zip(found, expected, strict=True)):
            agree(*pair, f"{where}[{k}]")
    elif isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5, err_msg=where)
    elif expected is not None:
        assert found == expected, where


@pytest.mark.parametrize(
    ("size", "names"),
    [(2, "gradients,sharded_data,errors,compiled_training,collectives"),
     pytest.param(2, "every", marks=pytest.mark.deep), pytest.param(4, "every", marks=pytest.mark.deep)],
)  # fmt: skip
def test_what_processes_compute_together_is_what_one_does(size: int, names: str, tmp_path: Path):
    results("meshes_job", size, tmp_path, names)  # each case holds itself to it


@pytest.mark.deep
@pytest.mark.parametrize("size", [2, 4])
def test_each_process_has_what_it_has_in_pytorch(size: int, tmp_path: Path):
    torch_or_skip()
    sides = []
    for name in ("ours", "torch"):
        (tmp_path / name).mkdir()
        sides.append(results("meshes_job", size, tmp_path / name, "every", name))
    for rank, (found, expected) in enumerate(zip(*sides, strict=True)):
        found.pop("two_dims")
        expected.pop("two_dims")
        agree(found, expected, f"rank {rank}")
