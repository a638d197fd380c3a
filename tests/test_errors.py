"""Errors of graphc itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphc.errors import MissingExtraError, require

ROOT = Path(__file__).resolve().parents[1]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"the digits demo needs sklearn, .* pip install 'graphc\[demo\]'"):
        require("sklearn", "the digits demo", "demo")


def test_the_demo_names_its_extra_before_anything_fails_for_the_want_of_it():
    hide = "import sys; sys.modules['rich'] = None; sys.path[:0] = ['.', 'examples']"
    code = f"{hide}; import runpy; runpy.run_path('examples/digits.py')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the digits demo needs rich, which is not installed. Remedy: pip install 'graphc[demo]'" in done.stderr


def test_what_is_installed_is_returned():
    assert require("json", "this test", "none").dumps([1]) == "[1]"
