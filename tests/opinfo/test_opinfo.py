"""PyTorch's own op tests as a witness: where PyTorch is installed, each op of its list on some of its samples."""

from __future__ import annotations

import functools
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.depth import one_in
from tests.opinfo.accepted import accepted

pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which PyTorch's samples need

SAMPLES = 6 if os.environ.get("GRAPHC_TEST_XLA") else 2  # of each op and dtype: the whole survey takes an hour
NAMES = Path(__file__).with_name("names.txt").read_text().split()


@functools.cache
def survey() -> Any:
    """The survey, which loads PyTorch's list: that takes seconds, of each process that runs such a test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tests.opinfo import survey
    return survey


def is_failure(finding: Any) -> bool:
    """Whether there is no result, or one of another kind: which no reason excuses, but a dtype that is missing here."""
    text = finding.difference
    return text.startswith(("raises", "no ", "dtype", "shape")) and "complex32" not in text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_agrees_with_pytorch(name: str) -> None:
    ops = [op for op in survey().op_db if op.name == name]
    assert ops, "PyTorch's list does not have it"
    for op in ops:
        full = f"{op.name} {op.variant_test_name}".strip()
        for aspect in ("value", "gradient", "view"):
            _, found = survey().survey(op, aspect, SAMPLES)
            if accepted(full, aspect):
                found = [f for f in found if is_failure(f)]
            assert not "\n".join(f"{f.op} [{f.aspect} {f.dtype}] ({f.sample}): {f.difference}" for f in found)
