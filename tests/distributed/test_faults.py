"""`compare.check(modes=["ranks"])` finds errors of data-parallel programs, and says which they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.distributed import faults
from tests.distributed.jobs import results

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def found(tmp_path_factory: Any) -> list[Any]:
    folder: Path = tmp_path_factory.mktemp("faults")
    return results("faults_job", 2, folder)


@pytest.mark.parametrize("name", [make.__name__ for make in faults.RIGHT])
def test_right_programs_are_right(name: str, found: list[Any]):
    for reports in found:
        assert "bug" not in reports[name][0], reports[name][0]


@pytest.mark.parametrize("name", [make.__name__ for make in faults.WRONG])
def test_errors_are_named(name: str, found: list[Any]):
    for reports in found:
        text, names = reports[name]
        assert names
        for expected in names:
            assert expected in text, f"{expected!r} is not in\n{text}"
