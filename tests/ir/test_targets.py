"""Functions that command lines name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from graphc.targets import callable_named


def test_a_file_is_read_anew_though_its_time_and_length_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Bytecode that is kept would be that of before."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "program.py"
    found: list[float] = []
    for factor in (2, 3):
        file.write_text(f"def f(x):\n    return {factor} * x\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        found.append(callable_named(f"{file}:f")(1.0))
    assert found == [2.0, 3.0]
