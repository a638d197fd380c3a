"""Steps compiled across a mesh of processes come to what one process computes of the whole batch; see compiled_job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.jobs import results


@pytest.mark.parametrize(
    ("size", "cases"),
    [(2, ("cnn:fsdp",)), *(pytest.param(size, (), marks=pytest.mark.deep) for size in (2, 4))],
)  # fmt: skip
def test_compiled_steps(size: int, cases: tuple[str, ...], tmp_path: Path):
    results("compiled_job", size, tmp_path, *cases)
