"""Steps compiled across a mesh of processes come to what one process computes of the whole batch; see compiled_job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.jobs import results


@pytest.mark.deep  # test_meshes.py has a case for the quick suite
@pytest.mark.parametrize("size", [2, 4])
def test_compiled_steps(size: int, tmp_path: Path):
    results("compiled_job", size, tmp_path)
