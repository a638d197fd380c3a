"""`tests/long.txt` names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import LONG

ROOT = Path(__file__).resolve().parents[1]


def test_each_line_names_a_test():
    for line in LONG:
        if not line.startswith("#"):
            path, _, rest = line.partition("::")
            name = re.sub(r"\[.*", "", rest).rpartition("::")[2]
            assert f"def {name}(" in (ROOT / path).read_text(), line


def test_they_are_deep(request: pytest.FixtureRequest):
    for item in request.session.items:
        assert item.nodeid not in LONG or item.get_closest_marker("deep"), item.nodeid
